"""A scrollable page of lines: help, describe, changes, errors."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from typing import ClassVar

from rich.cells import cell_len
from textual.binding import BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from pdtui.commands import keymap
from pdtui.present.cells import Line, Span, plain
from pdtui.present.cells import width as cells_of
from pdtui.widgets.paint import TONE_CLASSES, Toned

LABEL = 18
"""Cells of a label column: what is wrapped beside one stays beside it."""
_OPENING = "（《“‘【「([{'\""
"""No line ends with these."""
_CLOSING = "，。；：！？、）》”’】」…,.;:!?)]}'\""
"""No line begins with these."""


def wrap(line: Line, size: int) -> list[Line]:
    """`line` in pieces of at most `size` cells; the later ones keep its indentation."""
    if size < 8 or cells_of(line) <= size:
        return [line]
    hang = _hang(line, size)
    out: list[Line] = []
    current: list[Span] = []
    used = 0
    for span in line:
        for word in _words(span.text):
            length = cells_of((Span(word),))
            if used + length > size and used > (hang if out else 0):
                out.append(tuple(current))
                current, used = [Span(" " * hang)], hang
                word = word.lstrip()
            while cells_of((Span(word),)) > size - used:
                head, word = _split(word, size - used)
                out.append((*current, Span(head, span.tone)))
                current, used = [Span(" " * hang)], hang
            current.append(Span(word, span.tone))
            used += cells_of((Span(word),))
    return [*out, tuple(current)]


def _hang(line: Line, size: int) -> int:
    """Cells that the later pieces of a line are indented by."""
    for n, span in enumerate(line):
        if span.hang and (before := cells_of(line[:n])) <= size // 2:
            return before
    first = line[0].text
    labelled = len(line) > 1 and cells_of(line[:1]) == LABEL
    return min(LABEL if labelled else len(first) - len(first.lstrip()), size // 3)


def _words(text: str) -> list[str]:
    """Pieces a line may end after: at blanks, and between the letters of Chinese."""
    out: list[str] = []
    word = ""
    for char, after in zip_longest(text, text[1:], fillvalue=""):
        word += char
        if char == " " or (after and _may_end(char, after)):
            out.append(word)
            word = ""
    return [*out, word] if word else out


def _may_end(char: str, after: str) -> bool:
    wide = cell_len(char) == 2 or cell_len(after) == 2
    return wide and char not in _OPENING and after not in _CLOSING and after != " "


def _split(word: str, room: int) -> tuple[str, str]:
    used = 0
    for i, char in enumerate(word):
        used += cells_of((Span(char),))
        if used > room and i:
            return word[:i], word[i:]
    return word, ""


class LinesView(ScrollView, Toned, can_focus=True):
    """Lines that wrap at the width and scroll with the keys of every text view."""

    DEFAULT_CSS = """
    LinesView {
        height: 1fr; overflow-x: hidden; scrollbar-size: 0 1; scrollbar-gutter: stable;
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = set(TONE_CLASSES)
    BINDINGS: ClassVar[list[BindingType]] = [*keymap.bindings("text", owner="widget")]

    def __init__(self, lines: Iterable[Line] = (), *, widget_id: str | None = None) -> None:
        super().__init__(id=widget_id)
        self._lines = list(lines)
        self._wrapped: list[Line] = []

    @property
    def text(self) -> str:
        """The whole page as text."""
        return "\n".join(plain(line) for line in self._lines)

    def show(self, lines: Iterable[Line]) -> None:
        """Replace the page; the place in it stays."""
        new = list(lines)
        if new != self._lines:
            self._lines = new
            self._wrap()

    def action_scroll_home(self) -> None:
        """To the first line."""
        self.scroll_to(y=0, animate=False)

    def action_scroll_end(self) -> None:
        """To the last line."""
        self.scroll_to(y=self.max_scroll_y, animate=False)

    def on_resize(self) -> None:
        """Wrap at the new width."""
        self._wrap()

    def notify_style_update(self) -> None:
        """The theme changed."""
        super().notify_style_update()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """One wrapped line."""
        at = y + self.scroll_offset.y
        return self.strip(
            self._wrapped[at] if at < len(self._wrapped) else (),
            self.scrollable_content_region.width,
        )

    def _wrap(self) -> None:
        size = self.scrollable_content_region.width
        self._wrapped = [piece for line in self._lines for piece in wrap(line, size)]
        self.virtual_size = Size(size, len(self._wrapped))
        self.refresh()
