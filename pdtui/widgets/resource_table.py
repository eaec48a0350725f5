"""A live table: rows replaced by key, the cursor kept on its key, only changed rows repainted."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from pdtui.commands import keymap
from pdtui.present.cells import Column, Line, Row, Span, fit, plain
from pdtui.present.cells import width as cells_of
from pdtui.present.status import glyphs
from pdtui.state.query import Sorting
from pdtui.widgets.paint import TONE_CLASSES, Toned

GUTTER = 2
GAP = 2


@dataclass(frozen=True)
class _Shown:
    """A column that fits: its place in a row's cells, and its width."""

    at: int
    column: Column
    size: int


def layout(
    columns: Sequence[Column],
    natural: Sequence[int],
    room: int,
    hollow: Collection[int] = (),
) -> list[tuple[int, int]]:
    """Which columns fit in `room` cells, as (place, width).

    Where not all are as wide as they want, the `hollow` ones, of which no row has anything to show,
    leave first; then the least important, once those that may shrink are at their least. What is
    left goes to the most important ones until they are as wide as they want, at last to the one
    that grows: its text is cut before a name is.
    """
    kept = list(range(len(columns)))
    if sum(natural) + GAP * (len(columns) - 1) > room:
        kept = [i for i in kept if i not in hollow or not columns[i].priority]
    sizes = {i: min(c.least, natural[i]) if c.shrink else natural[i] for i, c in enumerate(columns)}

    def left() -> int:
        return room - sum(sizes[i] for i in kept) - GAP * (len(kept) - 1)

    while left() < 0 and (droppable := [i for i in kept if columns[i].priority]):
        kept.remove(max(droppable, key=lambda i: columns[i].priority))
    while (over := -left()) > 0:
        widest = max(kept, key=lambda i: sizes[i] - columns[i].least)
        if (spare := sizes[widest] - columns[widest].least) <= 0:
            break
        sizes[widest] -= min(over, spare)
    for i in sorted(kept, key=lambda i: (columns[i].grow, columns[i].priority)):
        if columns[i].shrink and left() > 0:
            sizes[i] += min(left(), max(0, natural[i] - sizes[i]))
    for i in kept:
        if columns[i].grow and left() > 0:
            sizes[i] += left()
    return [(i, sizes[i]) for i in kept]


class ResourceTable(ScrollView, Toned, can_focus=True):
    """Rows of one kind of thing.

    Posts `RowOpened` on enter or a second click, `RowHighlighted` when the cursor comes to stand
    on another key.
    """

    DEFAULT_CSS = """
    ResourceTable {
        height: 1fr;
        overflow-x: hidden;
        scrollbar-size-vertical: 1;
        & > .table--header { color: $tone-off; }
        & > .table--cursor { background: $cursor-blur; }
        &:focus > .table--cursor { background: $cursor; text-style: bold; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {*TONE_CLASSES, "table--header", "table--cursor"}
    BINDINGS: ClassVar[list[BindingType]] = [*keymap.bindings("list", owner="widget")]

    @dataclass
    class RowOpened(Message):
        """A row was chosen."""

        table: ResourceTable
        key: str

        @property
        def control(self) -> ResourceTable:
            """The table, for `@on` selectors."""
            return self.table

    @dataclass
    class RowHighlighted(Message):
        """The cursor stands on another row, or on none."""

        table: ResourceTable
        key: str | None

        @property
        def control(self) -> ResourceTable:
            """The table, for `@on` selectors."""
            return self.table

    def __init__(self, columns: Sequence[Column], *, widget_id: str | None = None) -> None:
        super().__init__(id=widget_id)
        self._columns = tuple(columns)
        self._rows: list[Row] = []
        self._places: dict[str, int] = {}
        self._cursor = 0
        self._natural = [self._title_width(c) for c in self._columns]
        self._hollow = set(range(len(self._columns)))
        self._shown: list[_Shown] = []
        self._empty: list[Line] = []
        self._marked: set[str] = set()
        self._sorting = Sorting()
        self.painted_rows = 0
        """Body rows painted so far; what a test of the diff counts."""

    # what is shown

    @property
    def columns(self) -> tuple[Column, ...]:
        """Every column, also those that do not fit."""
        return self._columns

    @property
    def rows(self) -> list[Row]:
        """The rows in order."""
        return self._rows

    @property
    def cursor_key(self) -> str | None:
        """Key of the row under the cursor."""
        return self._rows[self._cursor].key if self._rows else None

    @property
    def visible_columns(self) -> list[str]:
        """Keys of the columns that fit."""
        return [s.column.key for s in self._shown]

    @property
    def on_heading(self) -> bool:
        """Whether the cursor stands on a heading."""
        return bool(self._rows) and self._rows[self._cursor].heading

    def set_marked(self, keys: Collection[str]) -> None:
        """Which rows carry a mark."""
        turned = self._marked ^ set(keys)
        self._marked = set(keys)
        for key in turned & self._places.keys():
            self._refresh_row(self._places[key])

    def set_sorting(self, sorting: Sorting) -> None:
        """Which column's title shows an arrow."""
        if sorting != self._sorting:
            self._sorting = sorting
            self.refresh(Region(0, 0, self.size.width, 1))

    def set_empty(self, lines: Sequence[Line]) -> None:
        """What to say when there is no row."""
        if list(lines) != self._empty:
            self._empty = list(lines)
            if not self._rows:
                self.refresh()

    def set_rows(self, rows: Sequence[Row]) -> None:
        """Replace the rows. The cursor stays on its key; a lost key leaves it at its place."""
        old, old_key = self._rows, self.cursor_key
        self._rows = list(rows)
        self._places = {r.key: i for i, r in enumerate(self._rows)}
        before = self._cursor
        if old_key is None:
            self._cursor = next((i for i, r in enumerate(self._rows) if not r.heading), 0)
        elif old_key in self._places:
            self._cursor = self._places[old_key]
        else:
            self._cursor = self._nearest(before)
        changed = self._changed(old)
        wider = self._measure([self._rows[i] for i in changed])
        if len(old) != len(self._rows):
            self.virtual_size = Size(self.size.width, len(self._rows) + 1)
            self.refresh()
        elif wider:
            self.refresh()
        else:
            for i in changed if before == self._cursor else {*changed, before, self._cursor}:
                self._refresh_row(i)
        if self._cursor != before or len(old) != len(self._rows):
            self._follow_cursor()
        if self.cursor_key != old_key:
            self.post_message(self.RowHighlighted(self, self.cursor_key))

    def select(self, key: str) -> bool:
        """Put the cursor on a key; False when no row has it."""
        if key not in self._places:
            return False
        self._move(self._places[key])
        return True

    def cell_region(self, key: str, column: str) -> Region | None:
        """Where a cell stands on the screen; None when it is out of sight."""
        x = GUTTER
        for shown in self._shown:
            if shown.column.key == column:
                break
            x += shown.size + GAP
        else:
            return None
        y = self._places.get(key, -1) + 1 - self.scroll_offset.y
        if not 1 <= y < self.size.height:
            return None
        return Region(self.content_region.x + x, self.content_region.y + y, shown.size, 1)

    # keys

    def action_cursor_down(self) -> None:
        """One row down."""
        self._move(self._cursor + 1)

    def action_cursor_up(self) -> None:
        """One row up."""
        self._move(self._cursor - 1)

    def action_page_down(self) -> None:
        """One screen down."""
        self._move(self._cursor + max(1, self._body - 1))

    def action_page_up(self) -> None:
        """One screen up."""
        self._move(self._cursor - max(1, self._body - 1))

    def action_first(self) -> None:
        """To the first row."""
        self._move(0)

    def action_last(self) -> None:
        """To the last row."""
        self._move(len(self._rows) - 1)

    def action_open(self) -> None:
        """Choose the row under the cursor."""
        if (key := self.cursor_key) is not None:
            self.post_message(self.RowOpened(self, key))

    def on_click(self, event: events.Click) -> None:
        """A click puts the cursor there; a click on the cursor opens the row."""
        at = event.y - 1 + self.scroll_offset.y
        if event.y < 1 or at >= len(self._rows):
            return
        event.stop()
        if at == self._cursor:
            self.action_open()
        else:
            self._move(at)

    # painting

    def on_resize(self) -> None:
        """Choose the columns anew."""
        self.virtual_size = Size(self.size.width, len(self._rows) + 1)
        self._arrange()
        self.refresh()
        self.call_after_refresh(self._follow_cursor)

    def notify_style_update(self) -> None:
        """The theme changed."""
        super().notify_style_update()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """The header on line 0, then the rows from the scroll offset on."""
        size = self.size.width
        if y == 0:
            return self._header(size)
        at = y - 1 + self.scroll_offset.y
        if not self._rows:
            lead = (Span(" " * GUTTER),)
            text = self._empty[y - 2] if 0 <= y - 2 < len(self._empty) else ()
            return self.strip((*lead, *text), size)
        if at >= len(self._rows):
            return Strip.blank(size, self.rich_style)
        self.painted_rows += 1
        return self._row(self._rows[at], size, at == self._cursor)

    def _header(self, size: int) -> Strip:
        style = self.get_component_rich_style("table--header")
        text = " " * GUTTER
        for i, shown in enumerate(self._shown):
            named = shown.column.title
            if shown.column.key == self._sorting.column:
                arrow = glyphs().down if self._sorting.down else glyphs().up
                named = f"{plain(fit((Span(named),), shown.size - 1)).rstrip()}{arrow}"
            title = fit((Span(named),), shown.size, shown.column.align)
            text += (" " * GAP if i else "") + "".join(s.text for s in title)
        return Strip([Segment(text, style)]).adjust_cell_length(size, style)

    def _row(self, row: Row, size: int, current: bool) -> Strip:
        over = self.get_component_rich_style("table--cursor", partial=True) if current else Style()
        sign = glyphs().marked if row.key in self._marked else " "
        mark = Span(f"{glyphs().cursor if current else ' '}{sign}", "accent")
        if row.heading:
            return self.strip((mark, *row.cells[0].spans), size, over)
        spans: list[Span] = [mark]
        more = glyphs().more
        for i, shown in enumerate(self._shown):
            if i:
                spans.append(Span(" " * GAP))
            spans += fit(row.cells[shown.at].spans, shown.size, shown.column.align, more)
        return self.strip(spans, size, over)

    # the sums

    @property
    def _body(self) -> int:
        return max(1, self.size.height - 1)

    @staticmethod
    def _title_width(column: Column) -> int:
        title = cell_len(column.title)
        return title if column.shrink else max(column.least, title)

    def _nearest(self, at: int) -> int:
        """The row at a lost row's place; never a heading that has a row below it."""
        last = len(self._rows) - 1
        at = max(0, min(at, last))
        return at + 1 if at < last and self._rows[at].heading else at

    def _changed(self, old: list[Row]) -> list[int]:
        if len(old) != len(self._rows):
            known = {id(r) for r in old}
            return [i for i, r in enumerate(self._rows) if id(r) not in known]
        return [i for i, (a, b) in enumerate(zip(old, self._rows, strict=True)) if a != b]

    def _measure(self, rows: Sequence[Row]) -> bool:
        """Let columns grow for `rows`; they never shrink, so that a live table stands still."""
        natural, hollow = list(self._natural), set(self._hollow)
        for i, column in enumerate(self._columns):
            widest = natural[i]
            if i in hollow and any(not r.heading and r.cells[i].text for r in rows):
                hollow.discard(i)
            for row in rows:
                if not row.heading and widest < column.most:
                    widest = max(widest, cells_of(row.cells[i].spans))
            natural[i] = max(natural[i], min(widest, column.most))
        if natural == self._natural and hollow == self._hollow:
            return False
        self._natural, self._hollow = natural, hollow
        return self._arrange()

    def _arrange(self) -> bool:
        room = self.size.width - GUTTER - 1
        chosen = layout(self._columns, self._natural, room, self._hollow)
        shown = [_Shown(i, self._columns[i], size) for i, size in chosen]
        changed = shown != self._shown
        self._shown = shown
        return changed

    def _move(self, to: int) -> None:
        to = max(0, min(to, len(self._rows) - 1))
        if to == self._cursor or not self._rows:
            return
        before, self._cursor = self._cursor, to
        self._refresh_row(before)
        self._refresh_row(to)
        self._follow_cursor()
        self.post_message(self.RowHighlighted(self, self.cursor_key))

    def _follow_cursor(self) -> None:
        top, body = self.scroll_offset.y, self._body
        if self._cursor < top:
            # the first heading shows with the first row below it
            self.scroll_to(y=self._cursor if self._cursor > 1 else 0, animate=False, force=True)
        elif self._cursor >= top + body:
            self.scroll_to(y=self._cursor - body + 1, animate=False, force=True)

    def _refresh_row(self, at: int) -> None:
        y = at + 1 - self.scroll_offset.y
        if 1 <= y < self.size.height:
            self.refresh(Region(0, y, self.size.width, 1))
