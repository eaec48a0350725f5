"""The instances, the cache services, the settings; sorting, marking, many groups at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.domain.errors import Invalid
from backend.domain.views import CacheView
from pdtui.i18n import current, use
from pdtui.present.cells import Cell, Column, Row
from pdtui.screens.dialogs.cache import CacheDialog
from pdtui.screens.dialogs.choose import ChooseDialog
from pdtui.screens.dialogs.confirm import Confirm
from pdtui.screens.group import GroupScreen
from pdtui.screens.instances import InstancesScreen
from pdtui.screens.logs import LogScreen
from pdtui.screens.text import TextScreen
from pdtui.settings import Settings, read, write
from pdtui.state import cacheform
from pdtui.state.query import Sorting, ordered
from pdtui.widgets.log_pane import LogPane
from tests.tui.conftest import Start
from tests.tui.factories import DOCUMENTS, event, running, site
from tests.tui.fake_client import FakeClient

# sorting


def rows(*texts: str) -> list[Row]:
    return [Row(t, (Cell.of(t),)) for t in texts]


COLUMNS = (Column("name", "NAME"),)


def test_numbers_in_names_sort_as_numbers() -> None:
    found = ordered(rows("gpu-10", "gpu-9", "Gpu-1"), COLUMNS, Sorting("name"))
    assert [r.key for r in found] == ["Gpu-1", "gpu-9", "gpu-10"]


def test_rows_stay_below_their_heading() -> None:
    heads = [Row(f"h{i}", (Cell.of("a"),), heading=True) for i in (1, 2)]
    given = [heads[0], *rows("b", "a"), heads[1], *rows("d", "c")]
    found = ordered(given, COLUMNS, Sorting("name", down=True))
    assert [r.key for r in found] == ["h1", "b", "a", "h2", "d", "c"]


def test_the_same_column_again_turns_the_order_round() -> None:
    once = Sorting().by("name")
    assert (once.column, once.down) == ("name", False)
    assert once.by("name").down
    assert not once.by("name").by("name").down
    assert once.by("") == Sorting()


async def test_the_sort_menu_sorts_by_what_is_meant(start: Start) -> None:
    async with start(size=(160, 40)) as d:
        await d.press("O")
        assert isinstance(d.console.screen, ChooseDialog)
        d.table.select("age")
        await d.press("enter")
        ages = [r.cells[5].text for r in d.table.rows]
        assert ages == ["2m10s", "1h21m", "1h21m", "3d00h", "-"]
        assert "AGE↑" in d.text
        await d.press("O", "enter")
        assert d.table.rows[0].cells[5].text == "-"
        assert "AGE↓" in d.text
        await d.press("greater_than_sign", "less_than_sign", "less_than_sign")
        assert "MODE↑" in d.text


async def test_the_forms_rows_are_not_sorted(start: Start) -> None:
    async with start() as d:
        await d.press("7", "O")
        assert d.message == "The order of these rows has a meaning; they are not sorted."
        await d.press("space")
        assert d.message == "Nothing here can be done to several rows at once."


# marks


async def test_marked_groups_are_restarted_together(start: Start) -> None:
    async with start(size=(120, 40)) as d:
        d.table.select("deepseek-v31")
        await d.press("space")
        assert d.table.cursor_key == "glm-5"
        await d.press("space", "space")
        assert "3 marked" in d.text
        assert d.line("glm-5")[1] == "◆"
        await d.press("r")
        assert "Restart 2 groups?" in d.text
        assert "Left out: llama-70b llama-70b is restarting" in d.words
        await d.press("enter")
        done = [c for c in d.client.calls if c[0] == "restart"]
        assert sorted(c[1] for c in done) == ["deepseek-v31", "glm-5"]
        assert "marked" not in d.text


async def test_deleting_marked_groups_needs_their_number_typed(start: Start) -> None:
    async with start(size=(120, 40)) as d:
        await d.press("asterisk", "D")
        assert isinstance(d.console.screen, Confirm)
        await d.press("enter")
        assert not d.client.calls
        await d.press("5", "enter")
        assert sorted(c[1] for c in d.client.calls) == sorted(d.console.store.groups)


async def test_escape_takes_marks_away_first(start: Start) -> None:
    async with start() as d:
        await d.press("space", "asterisk")
        assert "5 marked" in d.text
        await d.press("escape")
        assert "marked" not in d.text


# instances


async def test_instances_of_all_groups(start: Start) -> None:
    async with start(size=(160, 40)) as d:
        await d.press("5")
        assert isinstance(d.console.screen, InstancesScreen)
        assert len(d.table.rows) == sum(len(g.members) for g in site().groups)
        await d.press("exclamation_mark")
        assert "deepseek-v31-p1" in d.text
        assert "qwen3-32b-p0" not in d.text
        d.table.select("deepseek-v31-p1")
        await d.press("l")
        assert isinstance(d.console.screen, LogScreen)
        await d.press("escape", "d")
        assert isinstance(d.console.screen, TextScreen)
        await d.press("escape", "y")
        assert d.console.clipboard == "deepseek-v31-p1"
        await d.press("X")
        assert isinstance(d.console.screen, Confirm)
        await d.press("escape", "enter")
        assert isinstance(d.console.screen, GroupScreen)
        assert d.table.cursor_key == "deepseek-v31-p1"


async def test_the_palette_finds_an_instance(start: Start) -> None:
    async with start() as d:
        await d.press("colon")
        await d.pilot.press(*"glm-5-d1")
        await d.until(lambda: "Go to instance glm-5-d1" in d.text)
        await d.press("enter")
        await d.until(lambda: isinstance(d.console.screen, InstancesScreen))
        await d.until(lambda: d.table.cursor_key == "glm-5-d1")


# cache services


def with_caches() -> FakeClient:
    client = FakeClient(site(), documents=DOCUMENTS)
    client.known_caches = {
        "pool": CacheView(
            name="pool",
            provider="mooncake",
            endpoint="10.20.0.9:50051",
            settings={"config_path": "/etc/mooncake.json", "api_key": "hush"},
            used_by=("deepseek-v31",),
        ),
        "near": CacheView(name="near", provider="lmcache", endpoint=":5555"),
    }
    return client


async def test_cache_services_are_listed_described_and_kept_from_harm(start: Start) -> None:
    async with start(with_caches(), size=(140, 30)) as d:
        await d.press("6")
        assert ":5555 on each member's own host" in d.line("near")
        assert "hush" not in d.text
        await d.press("enter")
        assert "nobody" in d.words
        await d.press("escape")
        d.table.select("pool")
        await d.press("D")
        assert d.message == "pool is used by deepseek-v31."
        d.table.select("near")
        await d.press("D", *"near", "enter")
        assert d.client.calls == [("delete_cache", "near")]
        assert "near" not in [r.key for r in d.table.rows]


async def test_a_cache_service_is_added_and_a_refusal_stands_at_its_field(start: Start) -> None:
    async with start(with_caches(), size=(100, 30)) as d:
        await d.press("6", "n")
        d.client.errors["apply_cache"] = Invalid.of(
            "structure.value",
            "'x' is no HOST:PORT",
            path="spec.endpoint",
            remedy="Write HOST:PORT.",
        )
        await d.press(*"team", "tab", *"lmcache", "tab", "x", "enter")
        assert isinstance(d.console.screen, CacheDialog)
        assert "is no HOST:PORT" in d.words
        assert d.console.focused is not None
        assert d.console.focused.id == "box-endpoint"
        await d.press("ctrl+u", *"10.0.0.1:6", "tab", *"extra=4", "enter")
        document = d.client.calls[-1][1]
        assert document["spec"] == {
            "provider": "lmcache",
            "endpoint": "10.0.0.1:6",
            "settings": {"extra": 4},
        }
        assert "team" in [r.key for r in d.table.rows]
        assert d.message == "team: saved."


async def test_keys_typed_before_a_dialog_opens_reach_it(start: Start) -> None:
    async with start(with_caches()) as d:
        await d.press("6")
        d.table.select("near")
        await d.pilot.press("E", "ctrl+u", *"mooncake", "enter")
        await d.until(lambda: d.client.calls)
        assert d.client.calls[-1][1]["spec"]["provider"] == "mooncake"


async def test_the_list_follows_changes_of_others(start: Start) -> None:
    async with start(with_caches()) as d:
        await d.press("6")
        d.client.known_caches["late"] = CacheView(name="late", provider="lmcache")
        d.client.put(event(101, "", "cache service late is added", kind="cache_added"))
        await d.until(lambda: "late" in d.text)


@pytest.mark.parametrize(
    "spec",
    [
        {"provider": "mooncake"},
        {"provider": "lmcache", "endpoint": ":5", "settings": {"a": 1, "b": "x y", "c": "7"}},
        {"provider": "lmcache", "settings": {"q": 'say "hi"', "e": "", "l": [1, "two"]}},
        {"provider": "lmcache", "hosts": {"names": ["gpu-1"], "labels": {"rack": "a"}}},
    ],
)
def test_a_cache_document_survives_its_boxes(spec: dict[str, object]) -> None:
    document = {
        "apiVersion": "pdtui/v1",
        "kind": "CacheService",
        "metadata": {"name": "a", "labels": {"x": "y"}},
        "spec": spec,
    }
    assert cacheform.document(cacheform.texts(document), document) == document


# settings


@pytest.fixture
def english() -> Iterator[None]:
    yield
    use("en")


@pytest.mark.usefixtures("english")
async def test_settings_hold_at_once_and_are_kept(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "conf" / "settings.json"
    async with start(settings_file=file, size=(100, 30)) as d:
        await d.press("7")
        assert "state/pdtui" in d.text
        await d.press("enter", "down", "down", "enter")
        await d.until(lambda: "简体中文" in d.text)
        assert current() == "zh"
        assert d.table.cursor_key == "language"
        await d.press("1")
        assert "部分就绪" in d.text
        await d.press("7")
        d.table.select("theme")
        await d.press("enter", "down", "down", "enter")
        assert not d.console.current_theme.dark
        d.table.select("read_only")
        await d.press("enter", "down", "enter")
        await d.press("1", "r")
        assert d.message == "此控制台为只读。"
        await d.until(lambda: file.exists() and "read_only" in file.read_text())
    assert json.loads(file.read_text()) == {"language": "zh", "theme": "light", "read_only": "yes"}
    assert read(file) == (Settings(language="zh", theme="light", read_only="yes"), [])


async def test_a_row_that_only_tells_cannot_be_changed(start: Start) -> None:
    async with start() as d:
        await d.press("7", "G", "enter")
        assert d.message == "This row is only shown."


@pytest.mark.usefixtures("english")
async def test_screens_keep_their_place_in_another_language(start: Start) -> None:
    async with start(size=(100, 30)) as d:
        await d.open_group("glm-5", "glm-5-d1")
        await d.press("7", "enter", "down", "down", "enter")
        await d.until(lambda: "简体中文" in d.text)
        await d.press("1")
        assert isinstance(d.console.screen, GroupScreen)
        assert d.table.cursor_key == "glm-5-d1"
        assert "部分就绪" in d.text


def test_a_bad_settings_file_is_said_and_the_rest_holds(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    assert read(path) == (Settings(), [])
    path.write_text('{"language": "zh", "theme": "pink", "colour": "red"}')
    found, bad = read(path)
    assert found == Settings(language="zh")
    assert len(bad) == 2
    assert "pink" in bad[0]
    assert "auto, dark, light" in bad[0]
    for text in ("{", "[]", "\xff"):
        path.write_bytes(text.encode("latin-1"))
        found, bad = read(path)
        assert found == Settings()
        assert len(bad) == 1
    write(path, Settings(pace="calm"))
    assert read(path) == (Settings(pace="calm"), [])


async def test_a_stream_that_starts_over_replaces_everything(start: Start) -> None:
    from backend.domain.views import Change

    async with start() as d:
        fresh = site().model_copy(update={"seq": 500, "groups": (running("only"),)})
        d.client._queue.put_nowait(
            Change(seq=500, kind="snapshot", body=fresh.model_dump(mode="json"))
        )
        await d.until(lambda: list(d.console.store.groups) == ["only"])


# a fault on the panel


async def test_keys_that_explain_a_fault_come_first_while_it_lasts(start: Start) -> None:
    async with start(size=(160, 40)) as d:
        d.table.select("deepseek-v31")
        await d.settle()
        assert list(d.hints)[:2] == ["groups.diagnose", "groups.first_error"]
        d.table.select("qwen3-32b")
        await d.settle()
        assert next(iter(d.hints)) == "list.open"
        await d.open_group("deepseek-v31")
        assert list(d.hints)[:4] == [
            "group.diagnose",
            "group.first_error",
            "group.logs",
            "group.changes",
        ]
        assert "◷ Config changed (c shows it)" in d.text
        assert "✗ crash loop: deepseek-v31-p1 ended 3 times" in d.text
        d.client.put(running("deepseek-v31"))
        await d.settle()
        assert next(iter(d.hints)) == "list.open"


async def test_the_first_error_of_the_worst_member_is_a_key_away(start: Start) -> None:
    async with start(size=(160, 40)) as d:
        await d.press("j", "f")
        assert isinstance(d.console.screen, LogScreen)
        assert d.console.screen.instance == "deepseek-v31-p1"
        await d.until(lambda: "Address already in use" in d.text)
        await d.press("escape", "5")
        d.table.select("qwen3-32b-p0")
        await d.press("f")
        pane = d.console.screen.query_one(LogPane)
        await d.until(lambda: pane.current_match == 4)
        assert "EngineCore failed to start." in d.text


async def test_a_blocked_restart_offers_its_force_first(start: Start) -> None:
    async with start(size=(160, 40)) as d:
        d.table.select("llama-70b")
        await d.settle()
        assert next(iter(d.hints)) == "groups.restart"


async def test_the_replica_editor_shows_the_membership_policy(start: Start) -> None:
    async with start(size=(100, 40)) as d:
        d.table.select("deepseek-v31")
        await d.press("S")
        assert "Router updates: restart, a new router" in d.words
