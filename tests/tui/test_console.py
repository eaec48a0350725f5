"""The console's life: first frame, following the backend, losing it, failing, leaving."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from backend.domain.errors import Refused, TimedOut
from backend.domain.views import Change, RoleCount
from pdtui.present.status import speaks_unicode
from pdtui.screens.dialogs.confirm import Confirm
from pdtui.screens.dialogs.error import ErrorDialog
from pdtui.screens.group import GroupScreen
from pdtui.screens.groups import GroupsScreen
from pdtui.state.store import MOST_EVENTS, Store
from pdtui.styles import themes
from pdtui.widgets.bars import KeyBar
from tests.tui.conftest import Start
from tests.tui.factories import event, host, running, site, stopped
from tests.tui.fake_client import FakeClient


def test_importing_the_app_imports_no_backend() -> None:
    code = (
        "import sys, pdtui.app\n"
        "heavy = ('backend.', 'pydantic', 'httpx', 'asyncssh', 'fastapi', 'yaml', 'plotext')\n"
        "print([m for m in sys.modules if m.startswith(heavy)])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


async def test_the_first_frame_comes_before_the_backend(start: Start) -> None:
    seen: list[str] = []
    ready = asyncio.Event()
    client = FakeClient(site())

    async def slow() -> FakeClient:
        await ready.wait()
        return client

    async with start(client, open_client=slow, loaded=False) as d:
        await d.until(lambda: "connecting" in d.text)
        seen.append(d.text)
        await d.pilot.press("S")
        assert d.message == "Not connected to a backend."
        ready.set()
        await d.until(lambda: "qwen3-32b" in d.text)
    assert "1 Groups" in seen[0]
    assert client.closed


async def test_a_backend_that_does_not_open_is_reported_and_tried_again(start: Start) -> None:
    client = FakeClient(site())
    client.errors["health"] = TimedOut.of("client.open", "No answer on the socket.", remedy="Wait.")
    async with start(client, loaded=False) as d:
        await d.until(lambda: isinstance(d.console.screen, ErrorDialog))
        assert "No answer on the socket." in d.text
        await d.pilot.press("enter")
        await d.until(lambda: "no connection (R tries again)" in d.text)
        await d.pilot.press("R")
        await d.until(lambda: d.console.store.loaded)


async def test_changes_are_drawn_and_the_cursor_stays(start: Start) -> None:
    async with start() as d:
        d.table.select("glm-5")
        d.client.put(running("aaa-first"))
        d.client.put(running("glm-5", status="Running", ratio="2:2"))
        await d.settle()
        assert d.table.cursor_key == "glm-5"
        assert "● Running" in d.line("glm-5")
        assert "aaa-first" in d.text
        d.client.drop_group("aaa-first")
        d.client.put(host("gpu-9", 0))
        await d.settle()
        assert "aaa-first" not in d.text
        await d.press("2")
        assert "gpu-9" in d.text


async def test_one_changed_group_repaints_one_row(start: Start) -> None:
    async with start() as d:
        await d.settle()
        d.table.painted_rows = 0
        d.client.put(stopped().model_copy(update={"version": 99}))
        await d.settle()
        assert d.table.painted_rows == 0, "nothing shown has changed"
        d.client.put(stopped().model_copy(update={"model": "/data/models/other"}))
        d.client.put(running("qwen3-32b", currently="1:1"))
        await d.settle()
        assert d.table.painted_rows <= 2


async def test_a_burst_of_changes_is_drawn_few_times(start: Start) -> None:
    async with start() as d:
        drawn: list[int] = []
        screen = d.console.screen
        assert isinstance(screen, GroupsScreen)
        fill = screen.fill
        screen.fill = lambda: (drawn.append(1), fill())[1]  # type: ignore[method-assign]
        for version in range(300):
            d.client.put(running("qwen3-32b", version=version))
        await d.settle()
        assert d.console.store.groups["qwen3-32b"].version == 299
        assert len(drawn) < 30


async def test_screens_that_are_covered_catch_up(start: Start) -> None:
    async with start() as d:
        await d.open_group("qwen3-32b")
        d.client.put(running("zz-new"))
        await d.settle()
        await d.press("escape")
        assert "zz-new" in d.text


async def test_a_group_that_goes_takes_its_panel_with_it(start: Start) -> None:
    async with start() as d:
        await d.open_group("qwen3-32b")
        d.client.drop_group("qwen3-32b")
        await d.until(lambda: isinstance(d.console.screen, GroupsScreen))
        await d.until(lambda: d.message == "qwen3-32b is gone.")


async def test_a_lost_backend_keeps_the_place(start: Start) -> None:
    async with start() as d:
        await d.open_group("qwen3-32b", "qwen3-32b-d0")
        d.client.connection(False)
        await d.settle()
        assert "no connection" in d.text
        await d.press("r")
        assert d.message == "Not connected to a backend."
        d.client.connection(True)
        await d.settle()
        assert isinstance(d.console.screen, GroupScreen)
        assert d.table.cursor_key == "qwen3-32b-d0"
        assert d.message == "Connected again."


async def test_an_error_shows_message_values_and_remedy(start: Start) -> None:
    async with start() as d:
        d.client.errors["restart"] = Refused.of(
            "host.accelerators",
            "gpu-1 has 2 free accelerators, the group needs 4.",
            path="spec.accelerators",
            values={"free": 2, "needed": 4},
            remedy="Free two, or select another host.",
        )
        d.table.select("qwen3-32b")
        await d.press("r", "y")
        for part in ("Refused", "2 free", "spec.accelerators", "needed", "Free two"):
            assert part in d.text
        await d.press("escape")
        assert isinstance(d.console.screen, GroupsScreen)


async def test_a_bug_in_a_call_is_shown_and_the_console_stays(start: Start) -> None:
    async with start() as d:
        d.client.errors["restart"] = RuntimeError("boom [/x]")
        d.table.select("qwen3-32b")
        await d.pilot.press("r", "y")
        await d.until(lambda: isinstance(d.console.screen, ErrorDialog))
        assert "boom [/x]" in d.text
        await d.press("escape")
        assert d.console.is_running


async def test_the_key_bar_repaints_only_when_it_differs(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with start() as d:
        d.table.select("qwen3-32b")
        await d.settle()
        painted: list[int] = []
        paint = KeyBar._paint
        monkeypatch.setattr(KeyBar, "_paint", lambda self: (painted.append(1), paint(self))[1])
        for version in range(20):
            d.client.put(running("qwen3-32b", version=version))
            await d.settle()
        assert painted == []
        d.client.put(running("qwen3-32b", deleting=True))
        await d.settle()
        assert painted == [1]


async def test_the_mouse_runs_what_the_key_bar_shows(start: Start) -> None:
    async with start() as d:
        d.table.select("qwen3-32b")
        await d.settle()
        line = d.text.splitlines()[-1]
        await d.pilot.click(offset=(line.index("restart"), len(d.text.splitlines()) - 1))
        await d.settle()
        assert isinstance(d.console.screen, Confirm)
        await d.press("escape")
        await d.pilot.click(offset=(line.index("open"), len(d.text.splitlines()) - 1))
        await d.settle()
        assert isinstance(d.console.screen, GroupScreen)


async def test_a_note_without_a_column_is_read_out(start: Start) -> None:
    async with start(size=(60, 24)) as d:
        await d.open_group("glm-5", "glm-5-d1")
        assert "torch.OutOfMemoryError" in d.message
        d.table.select("glm-5-p0")
        await d.settle()
        assert d.message == ""


# leaving


async def test_quit_asks_when_nobody_would_watch(start: Start) -> None:
    client = FakeClient(site(), embedded=True)
    async with start(client) as d:
        await d.press("q")
        assert isinstance(d.console.screen, Confirm)
        for part in ("deepseek-v31", "glm-5", "qwen3-32b", "pdtui daemon"):
            assert part in d.text
        await d.press("n")
        assert d.console.is_running
        await d.press("q", "y")
        assert not d.console.is_running
    assert client.closed


@pytest.mark.parametrize("embedded", [False, True])
async def test_quit_does_not_ask_for_nothing(start: Start, embedded: bool) -> None:
    groups = site().groups if not embedded else (stopped(),)
    client = FakeClient(site().model_copy(update={"groups": groups}), embedded=embedded)
    async with start(client) as d:
        await d.press("q")
        assert not d.console.is_running


async def test_quit_does_not_ask_when_told_not_to(start: Start) -> None:
    async with start(FakeClient(site(), embedded=True), ask_to_leave=False) as d:
        await d.press("q")
        assert not d.console.is_running


async def test_the_stream_opening_for_the_first_time_is_no_news(start: Start) -> None:
    async with start() as d:
        d.client.connection(True)
        await d.settle()
        assert d.message == ""


async def test_ctrl_c_twice_leaves_even_under_a_dialog(start: Start) -> None:
    async with start(FakeClient(site(), embedded=True)) as d:
        await d.press("q", "ctrl+c")
        assert d.console.is_running
        assert "ctrl+c again" in d.message
        await d.press("ctrl+c")
        assert not d.console.is_running


# the store


def test_the_store_counts_only_real_changes() -> None:
    store = Store()
    store.load(site())
    before = store.revision("groups")
    store.put_group(site().groups[0])
    assert store.revision("groups") == before
    store.put_group(running("x"))
    store.drop_group("x")
    store.drop_group("x")
    assert store.revision("groups") == before + 2
    with pytest.raises(TypeError):
        store.groups["y"] = running("y")  # type: ignore[index]


def test_the_store_keeps_a_bounded_history_without_doubles() -> None:
    store = Store()
    for seq in range(MOST_EVENTS + 50):
        store.add_event(event(seq, "g", "x"))
        store.add_event(event(seq, "g", "x"))
    assert len(store.events) == MOST_EVENTS
    assert store.events[-1].seq == MOST_EVENTS + 49


def test_change_bodies_are_the_views() -> None:
    view = running(roles={"prefill": RoleCount(wanted=1, ready=0, present=1, pending=3)})
    change = Change(seq=1, kind="group", body=view.model_dump(mode="json"))
    assert type(view).model_validate(change.body) == view


# the terminal


@pytest.mark.parametrize(
    ("environ", "encoding", "expected"),
    [
        ({}, "utf-8", True),
        ({"LANG": "en_US.UTF-8"}, "UTF-8", True),
        ({"LANG": "C"}, "utf-8", False),
        ({"LANG": "C", "LC_ALL": "C.UTF-8"}, "utf-8", True),
        ({"LC_ALL": "POSIX"}, "utf-8", False),
        ({"TERM": "linux"}, "utf-8", False),
        ({"PDTUI_ASCII": "1"}, "utf-8", False),
        ({}, "ascii", False),
    ],
)
def test_unicode_is_used_where_it_can_be_drawn(
    environ: dict[str, str], encoding: str, expected: bool
) -> None:
    assert speaks_unicode(environ, encoding) is expected


@pytest.mark.parametrize(
    ("asked", "terminal", "expected"),
    [
        (None, None, "dark"),
        (None, "0;15", "light"),
        (None, "15;0", "dark"),
        ("light", "15;0", "light"),
        ("dark", "0;15", "dark"),
    ],
)
def test_the_theme_follows_the_terminal(
    asked: str | None, terminal: str | None, expected: str
) -> None:
    assert themes.pick(asked, terminal) == expected


def test_both_themes_define_the_same_variables() -> None:
    dark, light = themes.DARK.variables, themes.LIGHT.variables
    assert set(light) <= set(dark)
    assert set(themes.DEFAULTS) <= set(light)


async def test_without_colour_states_are_still_words(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with start() as d:
        for word in ("Running", "Partially ready", "Pending", "Stopped", "Config changed"):
            assert word in d.text
