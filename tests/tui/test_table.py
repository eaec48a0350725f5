"""ResourceTable: what is repainted, where the cursor stays, which columns fit."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from pdtui.present.cells import Cell, Column, Row
from pdtui.styles import themes
from pdtui.widgets.resource_table import ResourceTable, layout

COLUMNS = (
    Column("name", "NAME", least=6, most=20),
    Column("state", "STATE", priority=1, least=5, most=12),
    Column("note", "NOTE", priority=2, least=8, most=40, shrink=True, grow=True),
)


def rows(*names: str, state: str = "up") -> list[Row]:
    return [Row(n, (Cell.of(n), Cell.of(state), Cell.of(f"about {n}"))) for n in names]


class Bench(App[None]):
    CSS_PATH = None
    CSS = ".tone--text { color: $tone-text; }"

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.highlighted: list[str | None] = []

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return themes.DEFAULTS

    def compose(self) -> ComposeResult:
        yield ResourceTable(COLUMNS)

    def on_mount(self) -> None:
        self.table.focus()

    @property
    def table(self) -> ResourceTable:
        return self.query_one(ResourceTable)

    def on_resource_table_row_opened(self, event: ResourceTable.RowOpened) -> None:
        self.opened.append(event.key)

    def on_resource_table_row_highlighted(self, event: ResourceTable.RowHighlighted) -> None:
        self.highlighted.append(event.key)


@pytest.fixture
async def bench() -> AsyncIterator[tuple[Bench, Pilot[None]]]:
    app = Bench()
    async with app.run_test(size=(60, 12)) as pilot:
        yield app, pilot


Running = tuple[Bench, Pilot[None]]


async def test_only_changed_rows_are_painted(bench: Running) -> None:
    app, pilot = bench
    names = [f"row-{i}" for i in range(8)]
    app.table.set_rows(rows(*names))
    await pilot.pause()
    app.table.painted_rows = 0
    app.table.set_rows(rows(*names))
    await pilot.pause()
    assert app.table.painted_rows == 0
    changed = rows(*names)
    changed[3] = Row("row-3", (Cell.of("row-3"), Cell.of("down"), Cell.of("about row-3")))
    app.table.set_rows(changed)
    await pilot.pause()
    assert app.table.painted_rows == 1


async def test_the_cursor_stays_on_its_key(bench: Running) -> None:
    app, pilot = bench
    app.table.set_rows(rows("b", "d", "f"))
    await pilot.press("j")
    assert app.table.cursor_key == "d"
    app.table.set_rows(rows("a", "b", "c", "d", "f"))
    assert app.table.cursor_key == "d"
    app.table.set_rows(rows("d", "a"))
    assert app.table.cursor_key == "d"
    await pilot.pause()
    assert app.highlighted == ["b", "d"]


async def test_a_lost_key_leaves_the_cursor_at_its_place(bench: Running) -> None:
    app, pilot = bench
    app.table.set_rows(rows("a", "b", "c"))
    await pilot.press("j")
    app.table.set_rows(rows("a", "c"))
    assert app.table.cursor_key == "c"
    app.table.set_rows([])
    assert app.table.cursor_key is None
    app.table.set_rows(rows("z"))
    assert app.table.cursor_key == "z"
    await pilot.pause()
    assert app.highlighted[-3:] == ["c", None, "z"]


async def test_keys_move_and_scroll(bench: Running) -> None:
    app, pilot = bench
    app.table.set_rows(rows(*(f"{i:03}" for i in range(100))))
    for keys, expected in [
        (["j", "down"], "002"),
        (["k"], "001"),
        (["G"], "099"),
        (["pageup"], "089"),
        (["g"], "000"),
        (["pagedown"], "010"),
        (["end"], "099"),
        (["home", "up"], "000"),
    ]:
        await pilot.press(*keys)
        assert app.table.cursor_key == expected, keys
        top = app.table.scroll_offset.y
        at = int(expected)
        assert top <= at < top + app.table.size.height - 1
    await pilot.press("enter")
    assert app.opened == ["000"]


async def test_the_mouse_selects_then_opens_and_scrolls(bench: Running) -> None:
    app, pilot = bench
    app.table.set_rows(rows(*(f"{i:03}" for i in range(100))))
    await pilot.pause()
    await pilot.click(app.table, offset=(5, 4))
    assert app.table.cursor_key == "003"
    assert app.opened == []
    await pilot.click(app.table, offset=(5, 4))
    assert app.opened == ["003"]
    await pilot.click(app.table, offset=(5, 0))
    assert app.table.cursor_key == "003"
    app.table.scroll_down(animate=False)
    await pilot.pause()
    assert app.table.scroll_offset.y > 0
    assert app.table.cursor_key == "003"


async def test_headings_open_sections_and_the_cursor_starts_below(bench: Running) -> None:
    app, pilot = bench
    heading = Row("role:prefill", (Cell.of("prefill 2 of 2"),), heading=True)
    app.table.set_rows([heading, *rows("p0", "p1")])
    assert app.table.cursor_key == "p0"
    await pilot.press("up")
    assert app.table.cursor_key == "role:prefill"


async def test_a_lost_member_never_leaves_the_cursor_on_a_heading(bench: Running) -> None:
    app, pilot = bench
    one = Row("role:a", (Cell.of("a"),), heading=True)
    two = Row("role:b", (Cell.of("b"),), heading=True)
    app.table.set_rows([one, *rows("a0"), two, *rows("b0")])
    assert app.table.cursor_key == "a0"
    app.table.set_rows([one, two, *rows("b0")])
    assert app.table.cursor_key == "b0"
    await pilot.pause()


async def test_columns_grow_and_never_shrink(bench: Running) -> None:
    app, pilot = bench
    app.table.set_rows(rows("a"))
    app.table.set_rows(rows("a-much-longer-name"))
    wide = app.table._natural[0]
    assert wide == len("a-much-longer-name")
    app.table.set_rows(rows("a"))
    assert app.table._natural[0] == wide
    await pilot.pause()


@pytest.mark.parametrize("name", ["gpu-1", "机器-北京-一号", "ｈｏｓｔ", "x" * 80])
async def test_every_line_is_exactly_as_wide_as_the_table(bench: Running, name: str) -> None:
    app, pilot = bench
    app.table.set_rows(rows(name, "b"))
    await pilot.pause()
    for y in range(app.table.size.height):
        assert app.table.render_line(y).cell_length == app.table.size.width


@pytest.mark.parametrize(
    ("room", "expected"),
    [
        (60, [(0, 10), (1, 6), (2, 40)]),
        (30, [(0, 10), (1, 6), (2, 10)]),
        (27, [(0, 10), (1, 6)]),
        (15, [(0, 10)]),
        (7, [(0, 7)]),
    ],
)
def test_the_least_important_columns_leave_first(
    room: int, expected: list[tuple[int, int]]
) -> None:
    assert layout(COLUMNS, [10, 6, 20], room) == expected


@pytest.mark.parametrize("room", range(1, 200, 7))
def test_columns_never_overrun_unless_at_their_least(room: int) -> None:
    chosen = layout(COLUMNS, [18, 9, 30], room)
    taken = sum(size for _, size in chosen) + 2 * (len(chosen) - 1)
    assert taken <= room or chosen == [(0, COLUMNS[0].least)]


@pytest.mark.parametrize(
    ("room", "hollow", "expected"),
    [
        (60, {2}, [(0, 18), (1, 9), (2, 29)]),
        (40, {2}, [(0, 18), (1, 9)]),
        (40, set(), [(0, 18), (1, 9), (2, 9)]),
        (40, {0, 1, 2}, [(0, 18)]),
    ],
)
def test_a_column_without_content_leaves_before_a_name_is_cut(
    room: int, hollow: set[int], expected: list[tuple[int, int]]
) -> None:
    assert layout(COLUMNS, [18, 9, 16], room, hollow) == expected


def test_names_are_whole_before_the_last_column_grows() -> None:
    columns = (
        Column("name", "NAME", least=6, most=40, shrink=True),
        Column("note", "NOTE", priority=1, least=8, most=120, shrink=True, grow=True),
        Column("group", "GROUP", priority=6, least=8, most=28, shrink=True),
    )
    assert layout(columns, [20, 100, 15], 80) == [(0, 20), (1, 41), (2, 15)]


async def test_an_empty_column_comes_back_with_its_first_text(
    bench: Running,
) -> None:
    app, pilot = bench
    await pilot.resize_terminal(30, 12)
    app.table.set_rows([Row("a", (Cell.of("a" * 20), Cell.of("up"), Cell()))])
    await pilot.pause()
    assert app.table.visible_columns == ["name", "state"]
    app.table.set_rows([Row("a", (Cell.of("a" * 12), Cell.of("up"), Cell.of("why")))])
    await pilot.pause()
    assert "note" not in app.table.visible_columns  # columns never shrink: the name was wider once
    await pilot.resize_terminal(60, 12)
    await pilot.pause()
    assert app.table.visible_columns == ["name", "state", "note"]
