"""Tabs in one line: labels, the present one marked, and what is said at the right end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual import events
from textual.message import Message

from pdtui.present.cells import Line, Span, fit, width
from pdtui.present.status import glyphs
from pdtui.widgets.paint import Lines


class TabBar(Lines):
    """Posts `Chosen` when a label is clicked."""

    DEFAULT_CSS = """
    TabBar { height: 2; padding: 0 1; }
    """

    @dataclass
    class Chosen(Message):
        """A tab was clicked."""

        tab: str

    def __init__(self, *, widget_id: str | None = None) -> None:
        super().__init__([(), ()], widget_id=widget_id)
        self._ends: list[tuple[int, str]] = []
        self._given: tuple[Sequence[tuple[str, Line]], str, Line] = ((), "", ())

    def offer(self, tabs: Sequence[tuple[str, Line]], at: str, right: Line) -> None:
        """Show these tabs, `at` as the present one."""
        self._given = (tabs, at, right)
        self._paint()

    def on_resize(self) -> None:
        """The rule and the right end move with the width."""
        self._paint()

    def on_click(self, event: events.Click) -> None:
        """Choose what was clicked."""
        for end, tab in self._ends:
            if event.x - 1 < end:
                event.stop()
                self.post_message(self.Chosen(tab))
                return

    def _paint(self) -> None:
        tabs, at, right = self._given
        size = self.size.width
        spans: list[Span] = []
        rule: list[Span] = []
        used = 0
        self._ends = []
        gap = 2 if sum(width(label) + 3 for _, label in tabs) <= size else 1
        for tab, label in _in_view(tabs, at, size, gap + 1):
            piece: Line = (Span(" "), *label, Span(" " * gap))
            taken = width(piece)
            spans += piece
            mark = glyphs().under if tab == at else glyphs().rule
            rule.append(Span(mark * taken, "accent" if tab == at else "off"))
            used += taken
            self._ends.append((used, tab))
        rule.append(Span(glyphs().rule * max(0, size - used), "off"))
        room = size - used
        tail = fit(right, room, "right") if width(right) <= room else ()
        self.show([(*spans, *tail), tuple(rule)])


def _in_view(
    tabs: Sequence[tuple[str, Line]], at: str, size: int, around: int
) -> Sequence[tuple[str, Line]]:
    """The tabs from the first that lets the present one be seen whole."""
    names = [tab for tab, _ in tabs]
    last = names.index(at) if at in names else 0
    for first in range(last):
        if sum(width(label) + around for _, label in tabs[first : last + 1]) <= size:
            return tabs[first:]
    return tabs[last:]
