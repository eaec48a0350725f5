"""A log: a ring of plain strings, styled only where it is visible."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len, chop_cells
from rich.segment import Segment
from rich.style import Style
from textual.binding import BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.timer import Timer

from pdtui.commands import keymap
from pdtui.present.cells import Tone
from pdtui.present.safe import lines
from pdtui.state.logs import first_error, is_error, is_probe
from pdtui.widgets.paint import TONE_CLASSES, Toned

MOST_LINES = 20_000
PAINT_S = 0.1
"""Seconds between two paints of arriving lines: ten a second at most."""

_WARN = re.compile(r"\b(WARNING|WARN)\b|^W\d{4} ")
_DIM = re.compile(r"\b(DEBUG|TRACE)\b")


def level(text: str) -> Tone:
    """The tone of a log line, by the levels that engines and routers write."""
    if is_error(text):
        return "bad"
    if _WARN.search(text):
        return "warn"
    return "dim" if _DIM.search(text) else "text"


class LogPane(ScrollView, Toned, can_focus=True):
    """Lines that arrive at the end.

    While it follows, the end stays in view; moving up stops that. Posts `Moved` when following
    starts or stops by itself.
    """

    DEFAULT_CSS = """
    LogPane {
        height: 1fr; overflow-x: hidden; overflow-y: scroll; scrollbar-size: 1 1;
        padding: 0 0 0 1;
    }
    LogPane > .log--match { background: $match; color: $match-text; }
    LogPane > .log--current { background: $tone-warn; color: $background; text-style: bold; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {*TONE_CLASSES, "log--match", "log--current"}
    BINDINGS: ClassVar[list[BindingType]] = [*keymap.bindings("text", owner="widget")]

    @dataclass
    class Moved(Message):
        """Following is now on or off."""

        following: bool

    def __init__(self, *, widget_id: str | None = None) -> None:
        super().__init__(id=widget_id)
        self._lines: list[str] = []
        self._partial = ""
        self._rows: list[tuple[int, str]] = []  # line number and the piece of it on that row
        self._wrap = True
        self._following = True
        self._query = ""
        self._match = -1  # line number of the match that n and N leave from
        self._widest = 0
        self._dirty: Timer | None = None
        self._probes = False
        self.hidden = 0
        """Lines held that are not shown: probes of ours."""
        self.tags: dict[str, Tone] = {}
        """Words that a line may begin with, to tell whose it is, and their tones."""

    @property
    def lines_held(self) -> Sequence[str]:
        """The lines in the ring, oldest first."""
        return self._lines

    @property
    def following(self) -> bool:
        """Whether the end stays in view."""
        return self._following

    @property
    def wrapping(self) -> bool:
        """Whether long lines are broken."""
        return self._wrap

    @property
    def sought(self) -> str:
        """What is searched."""
        return self._query

    @property
    def matches(self) -> list[int]:
        """Line numbers that hold the query."""
        want = self._query.casefold()
        if not want:
            return []
        return [i for i, t in enumerate(self._lines) if want in t.casefold() and not self._hides(t)]

    @property
    def current_match(self) -> int:
        """Line number of the match n and N leave from; -1 is none."""
        return self._match

    def clear(self) -> None:
        """Forget everything, keep wrap, follow and search."""
        self._lines, self._rows, self._partial = [], [], ""
        self._match, self._widest, self.hidden = -1, 0, 0
        self._settle()

    def feed(self, text: str) -> None:
        """Add a piece of log; a last line without its end waits for the rest."""
        parts = lines(self._partial + text) if "\n" in text else None
        if parts is None:
            self._partial += text
            return
        self._partial = text.rpartition("\n")[2]
        self._extend(parts[:-1])

    def flush(self) -> None:
        """Show a last line that has no end (the process has gone)."""
        if self._partial:
            rest, self._partial = self._partial, ""
            self._extend(lines(rest))

    def follow(self, on: bool) -> None:
        """Keep the end in view, or stop doing so."""
        self._following = on
        if on:
            self.scroll_to(y=self.max_scroll_y, animate=False, force=True)

    def wrap_lines(self, on: bool) -> None:
        """Break long lines, or let the pane scroll sideways."""
        self._wrap = on
        self.styles.overflow_x = "hidden" if on else "auto"
        self._rebuild()

    @property
    def showing_probes(self) -> bool:
        """Whether probes of ours are shown too."""
        return self._probes

    def show_probes(self, on: bool) -> None:
        """Show probes of ours, or count them only."""
        self._probes = on
        self._rebuild()

    def add_lines(self, new: Sequence[str]) -> None:
        """Add whole, clean lines."""
        self._extend(new)

    def first_error(self) -> bool:
        """Go to the earliest error held. False: there is none."""
        found = first_error(self._lines)
        if found is None:
            return False
        self._match = found
        self._show_match()
        self.refresh()
        return True

    def search(self, query: str) -> bool:
        """Mark every match and go to the last one above the bottom. False: there is none."""
        self._query = query
        self._match = -1
        found = self.matches
        if found:
            bottom = self._line_at(self.scroll_offset.y + self.size.height - 1)
            self._match = next((i for i in reversed(found) if i <= bottom), found[0])
            self._show_match()
        self.refresh()
        return bool(found) or not query

    def step(self, direction: int) -> bool:
        """Go to the next (1) or previous (-1) match, around the end. False if there is none."""
        found = self.matches
        if not found:
            return False
        if direction > 0:
            self._match = next((i for i in found if i > self._match), found[0])
        else:
            self._match = next((i for i in reversed(found) if i < self._match), found[-1])
        self._show_match()
        self.refresh()
        return True

    # keys

    def action_scroll_home(self) -> None:
        """To the first line."""
        self._stop_following()
        self.scroll_to(y=0, animate=False)

    def action_scroll_end(self) -> None:
        """To the last line."""
        self.scroll_to(y=self.max_scroll_y, animate=False)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Leaving the end upwards stops following."""
        super().watch_scroll_y(old_value, new_value)
        if new_value < old_value and new_value < self.max_scroll_y:
            self._stop_following()

    def on_resize(self) -> None:
        """Break lines at the new width."""
        self._rebuild()

    def on_unmount(self) -> None:
        """Stop the paint timer."""
        if self._dirty:
            self._dirty.stop()

    # painting

    def render_line(self, y: int) -> Strip:
        """One row: the line's tone, and its matches marked."""
        at = y + self.scroll_offset.y
        size = self._columns
        if at >= len(self._rows):
            return Strip.blank(size, self.rich_style)
        number, text = self._rows[at]
        style = self.tone(level(self._lines[number]))
        if number == self._match and not self._query:
            style += self.get_component_rich_style("log--match", partial=True)
        tag = text.partition(" ")[0]
        head = [Segment(tag, self.tone(self.tags[tag]))] if tag in self.tags else []
        rest = text[len(tag) :] if head else text
        strip = Strip([*head, *self._segments(rest, style, number == self._match)])
        left = self.scroll_offset.x
        return strip.crop_extend(left, left + size, self.rich_style)

    def _segments(self, text: str, style: Style, current: bool) -> list[Segment]:
        if not self._query:
            return [Segment(text, style)]
        name = "log--current" if current else "log--match"
        marked = self.get_component_rich_style(name)
        out: list[Segment] = []
        pattern = re.compile(re.escape(self._query), re.IGNORECASE)
        end = 0
        for match in pattern.finditer(text):
            out.append(Segment(text[end : match.start()], style))
            out.append(Segment(match.group(), marked))
            end = match.end()
        return [*out, Segment(text[end:], style)]

    # the sums

    def _extend(self, new: Sequence[str]) -> None:
        base = len(self._lines)
        self._lines += new
        if len(self._lines) > MOST_LINES:
            cut = len(self._lines) - MOST_LINES + MOST_LINES // 10
            self._lines = self._lines[cut:]
            self._match = max(-1, self._match - cut)
            self._rebuild()
            return
        for i, text in enumerate(new):
            self._rows += self._pieces(base + i, text)
        if self._dirty is None:
            self._dirty = self.set_timer(PAINT_S, self._settle)

    def _pieces(self, number: int, text: str) -> list[tuple[int, str]]:
        if self._hides(text):
            self.hidden += 1
            return []
        size = self._columns
        self._widest = max(self._widest, cell_len(text))
        if not self._wrap or size < 8 or cell_len(text) <= size:
            return [(number, text)]
        return [(number, piece) for piece in chop_cells(text, size)]

    def _rebuild(self) -> None:
        top = self._line_at(self.scroll_offset.y)
        self.hidden = 0
        self._rows = [p for i, t in enumerate(self._lines) for p in self._pieces(i, t)]
        self._settle()
        if not self._following:
            self.scroll_to(y=self._row_of(top), animate=False, force=True)

    def _settle(self) -> None:
        self._dirty = None
        wide = self._columns if self._wrap else max(self._widest, self._columns)
        self.virtual_size = Size(wide, len(self._rows))
        if self._following:
            self.scroll_to(y=self.max_scroll_y, animate=False, force=True)
        self.refresh()

    def _hides(self, text: str) -> bool:
        return not self._probes and is_probe(text)

    @property
    def _columns(self) -> int:
        """Cells a line may take, the scroll bar left out."""
        return self.scrollable_content_region.width

    def _line_at(self, row: int) -> int:
        if not self._rows:
            return 0
        return self._rows[max(0, min(row, len(self._rows) - 1))][0]

    def _row_of(self, number: int) -> int:
        return next((i for i, (n, _) in enumerate(self._rows) if n >= number), 0)

    def _show_match(self) -> None:
        row = self._row_of(self._match)
        self._stop_following()
        if not self.scroll_offset.y <= row < self.scroll_offset.y + self.size.height:
            self.scroll_to(y=max(0, row - self.size.height // 3), animate=False, force=True)

    def _stop_following(self) -> None:
        if self._following:
            self._following = False
            self.post_message(self.Moved(False))
