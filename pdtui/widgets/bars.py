"""The lines around a screen: areas and path above; messages, connection and keys below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from textual import events
from textual.message import Message
from textual.timer import Timer

from pdtui.commands import keymap
from pdtui.commands.model import Command, Context
from pdtui.present.cells import Line, Span, Tone, fit, width
from pdtui.present.status import glyphs
from pdtui.widgets.paint import Lines

_GAPS = (("   ", True), ("  ", True), (" ", True), ("  ", False), (" ", False))
"""Blanks between the areas, and whether the others' names are written out: the roomy first."""
FADE_S = 20.0
"""Seconds after which a message says nothing about the present any more."""


class TitleBar(Lines):
    """The program, its areas with the present one marked, and the path inside it."""

    DEFAULT_CSS = """
    TitleBar { dock: top; height: 1; background: $bar; padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__([()])
        self._given: tuple[Sequence[str], int, Sequence[str]] = ((), 0, ())

    def place(self, areas: Sequence[str], at: int, path: Sequence[str]) -> None:
        """Show the areas' names, which one this is, and where in it."""
        self._given = (areas, at, path)
        self._paint()

    def on_resize(self) -> None:
        """More or fewer names fit."""
        self._paint()

    def _paint(self) -> None:
        """All names where they fit; else only the present one's, the others by number."""
        areas, at, path = self._given
        steps: list[Span] = []
        for step in path:
            steps += [Span(f"{glyphs().path} ", "off"), Span(f"{step} ", "accent")]
        for gap, others in _GAPS:
            spans: list[Span] = [Span("pdtui", "strong"), Span(gap)]
            for i, name in enumerate(areas):
                current = i == at
                spans.append(Span(f"{i + 1}", "accent" if current else "off"))
                if current or others:
                    spans.append(Span(f" {name}", "strong" if current else "dim"))
                spans.append(Span(gap if current or others else " "))
            spans = [*spans, *steps] if steps else spans[:-1]
            if width(spans) <= self.size.width:
                break
        self.show([tuple(spans)])


class StatusBar(Lines):
    """The last message or reason at the left; who answers, and what there is, at the right."""

    DEFAULT_CSS = """
    StatusBar { height: 1; padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__([()])
        self._message: Span = Span("")
        self._facts: Line = ()
        self._busy = False
        self._turn = 0
        self._fade: Timer | None = None

    @property
    def message(self) -> str:
        """The message shown."""
        return self._message.text

    def say(self, text: str, tone: Tone = "dim") -> None:
        """Show a message until the next one, or until it is old."""
        self._message = Span(text, tone)
        if self._fade:
            self._fade.stop()
        self._fade = self.set_timer(FADE_S, self._forget) if text else None
        self._paint()

    def _forget(self) -> None:
        self._message = Span("")
        self._paint()

    def facts(self, spans: Line) -> None:
        """Show who answers and what there is."""
        self._facts = spans
        self._paint()

    def spin(self, busy: bool, *, turn: int = 0) -> None:
        """A one-cell spinner while a call is under way."""
        self._busy, self._turn = busy, turn
        self._paint()

    def on_resize(self) -> None:
        """The right end moves with the width."""
        self._paint()

    def _paint(self) -> None:
        size = self.size.width
        right = self._facts
        if self._busy:
            spin = glyphs().spin
            right = (Span(spin[self._turn % len(spin)] + " ", "busy"), *right)
        if width((self._message,)) + width(right) + 2 > size:
            right = right[:1]  # a long message matters more than the counts
        room = max(0, size - width(right) - (2 if right else 0))
        left = fit((self._message,), room, more=glyphs().more)
        gap = (Span("  "),) if right else ()
        self.show([(*left, *gap, *right)])


@dataclass(frozen=True)
class Hint:
    """One key of the bar and whether it can act now; a box's own keys are no commands."""

    command: Command | None
    key: str
    title: str
    able: bool


class KeyBar(Lines):
    """The keys of a screen: one line, at most nine, greyed while they cannot act.

    One widget that repaints when its content differs. A click runs the command.
    """

    DEFAULT_CSS = """
    KeyBar { dock: bottom; height: 1; background: $bar; padding: 0 1; }
    """

    @dataclass
    class Pressed(Message):
        """A hint was clicked."""

        command: Command

    def __init__(self) -> None:
        super().__init__([()])
        self._hints: list[Hint] = []
        self._placed: list[tuple[int, Command]] = []

    @property
    def hints(self) -> list[Hint]:
        """What is offered, in order."""
        return self._hints

    def offer(
        self,
        commands: Sequence[Command],
        ctx: Context,
        keys: Mapping[str, str],
        titles: Mapping[str, str],
    ) -> None:
        """Show these commands as they stand in `ctx`; `keys` are the user's own by command id, and
        `titles` the words that stand for a command's own."""
        self._show([
            Hint(c, keymap.shown(_first(keys.get(c.id), c)), titles.get(c.id, c.title),
                 c.why_not(ctx) is None)
            for c in commands
        ])  # fmt: skip

    def tell(self, keys: Sequence[tuple[str, str]]) -> None:
        """Show what the keys of the box do that is written in."""
        self._show([Hint(None, key, what, able=True) for key, what in keys])

    def _show(self, hints: list[Hint]) -> None:
        if hints != self._hints:
            self._hints = hints
            self._paint()

    def on_resize(self) -> None:
        """Fewer or more keys fit."""
        self._paint()

    def on_click(self, event: events.Click) -> None:
        """Run what was clicked."""
        for end, command in self._placed:
            if event.x - 1 < end:
                event.stop()
                self.post_message(self.Pressed(command))
                return

    def _paint(self) -> None:
        """Fill the width in order; help and quit, the last two, stay whatever the width."""
        fixed = self._hints[-2:]
        room = self.size.width - sum(width(_hint(h)) + 2 for h in fixed) + 2
        spans: list[Span] = []
        self._placed = []
        used = 0
        for hint in self._hints:
            piece = _hint(hint)
            taken = width(piece) + 2
            if hint not in fixed and used + taken > room:
                continue
            spans += [*piece, Span("  ")]
            used += taken
            if hint.command is not None:
                self._placed.append((used, hint.command))
        self.show([tuple(spans[:-1])])


def _first(own: str | None, command: Command) -> str:
    keys = own.split(",") if own else list(command.keys)
    return keys[0] if keys else ""


def _hint(hint: Hint) -> Line:
    key: Tone = "accent" if hint.able else "off"
    return (Span(hint.key, key), Span(f" {hint.title}", "dim" if hint.able else "off"))
