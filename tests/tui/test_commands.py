"""Every command of the table: it works, or it says why it cannot."""

from __future__ import annotations

from backend.domain.errors import HostKeyUnknown, Refused
from pdtui.commands import catalog, keymap
from pdtui.commands.handlers import HANDLERS
from pdtui.commands.model import Context
from pdtui.screens.dialogs.confirm import Confirm
from pdtui.screens.dialogs.error import ErrorDialog
from pdtui.screens.dialogs.help import HelpDialog
from pdtui.screens.events import EventsScreen
from pdtui.screens.group import GroupScreen
from pdtui.screens.groups import GroupsScreen
from pdtui.screens.hosts import HostsScreen
from pdtui.screens.logs import LogScreen
from pdtui.screens.text import TextScreen
from pdtui.widgets.log_pane import LogPane
from tests.tui.conftest import Driver, Start
from tests.tui.factories import running

# the table itself


def test_every_command_is_whole() -> None:
    for command in catalog.COMMANDS:
        assert command.title, command.id
        assert command.help, command.id
        assert (command.owner == "widget") == bool(command.action), command.id
        assert (command.owner == "handler") == (command.id in HANDLERS), command.id
        if command.effect != "read":
            assert command.why_not(Context(read_only=True)) == "This console is read-only."
            assert command.why_not(Context(connected=False)) == "Not connected to a backend."
    assert set(HANDLERS) == {c.id for c in catalog.COMMANDS if c.owner == "handler"}


def test_a_key_means_one_thing_wherever_it_is_live() -> None:
    for one in catalog.COMMANDS:
        assert not set(one.keys) & set(keymap.RESERVED), one.id
        for other in catalog.COMMANDS:
            if one.id < other.id and keymap.together(one.scope, other.scope):
                assert not set(one.keys) & set(other.keys), (one.id, other.id)


def test_the_same_key_does_the_same_in_the_list_and_on_the_panel() -> None:
    for command in catalog.of("groups"):
        twin = catalog.BY_ID[command.id.replace("groups.", "group.")]
        assert (twin.keys, twin.title, twin.effect) == (
            command.keys,
            command.title,
            command.effect,
        )


def test_a_users_keys_are_checked() -> None:
    good, bad = keymap.check(
        {
            "groups.restart": "f6",
            "groups.scale": "ctrl+b",
            "groups.logs": "D",
            "nothing.here": "x",
            "app.quit": "Q",
        }
    )
    assert good == {"groups.restart": "f6"}
    assert len(bad) == 4
    assert any("groups.delete" in sentence for sentence in bad)


async def test_a_users_key_works_and_is_shown(start: Start) -> None:
    async with start(keys={"groups.restart": "f6"}) as d:
        d.table.select("qwen3-32b")
        await d.settle()
        assert "f6 restart" in d.text
        await d.press("f6")
        assert isinstance(d.console.screen, Confirm)


# going places


async def test_areas_help_palette_and_back(start: Start) -> None:
    async with start() as d:
        await d.press("2")
        assert isinstance(d.console.screen, HostsScreen)
        await d.press("3")
        assert isinstance(d.console.screen, EventsScreen)
        await d.press("1", "enter")
        assert isinstance(d.console.screen, GroupScreen)
        await d.press("2", "1")
        assert isinstance(d.console.screen, GroupScreen), "an area is as it was left"
        await d.press("escape")
        assert isinstance(d.console.screen, GroupsScreen)
        for key in ("question_mark", "f1"):
            await d.press(key)
            assert isinstance(d.console.screen, HelpDialog)
            await d.press("escape")


async def test_the_palette_runs_commands_and_goes_to_groups(start: Start) -> None:
    async with start() as d:
        d.table.select("qwen3-32b")
        await d.settle()
        await d.press("ctrl+p")
        await d.pilot.press(*"glm")
        await d.until(lambda: "Go to group glm-5" in d.text)
        await d.press("enter")
        await d.until(lambda: isinstance(d.console.screen, GroupScreen))
        await d.press("colon")
        await d.pilot.press(*"copy curl")
        await d.until(lambda: "Not now: glm-5 has no registered endpoint yet." in d.text)
        await d.press("enter")
        await d.until(lambda: d.message == "glm-5 has no registered endpoint yet.")


async def test_filter(start: Start) -> None:
    async with start() as d:
        await d.press("slash", *"mode:mooncake !glm")
        assert [r.key for r in d.table.rows] == ["deepseek-v31"]
        await d.press("enter", "r")
        assert isinstance(d.console.screen, Confirm), "the keys are the table's again"
        await d.press("escape", "escape")
        assert len(d.table.rows) == 5
        await d.press("slash", *"zzz")
        assert "Nothing matches" in d.text
        await d.press("escape")
        assert len(d.table.rows) == 5


# reading


async def test_reading_commands_open_their_views(start: Start) -> None:
    async with start() as d:
        d.table.select("deepseek-v31")
        await d.press("e")
        assert isinstance(d.console.screen, EventsScreen)
        assert {r.cells[2].text for r in d.table.rows} == {"deepseek-v31"}
        await d.press("d")
        assert "deepseek-v31 is saved" in d.words
        await d.press("escape", "escape", "c")
        assert isinstance(d.console.screen, TextScreen)
        assert "spec.parameters[1]: 32768 → 65536" in d.words
        await d.press("y")
        assert "65536" in d.console.clipboard
        await d.press("escape")
        d.table.select("qwen3-32b")
        await d.press("d")
        await d.until(lambda: "apiVersion: pdtui/v1" in d.console.screen.text)  # type: ignore[attr-defined]
        await d.press("escape", "enter", "d")
        assert "Ports by name" in d.console.screen.text  # type: ignore[attr-defined]
        await d.press("2", "enter")
        assert "qwen3-32b-p0" in d.words


async def test_describe_of_a_lost_deployment_says_so(start: Start) -> None:
    async with start() as d:
        d.table.select("glm-5")
        await d.press("d")
        assert isinstance(d.console.screen, ErrorDialog)
        assert "There is no deployment glm-5." in d.words


async def test_refresh_reads_everything_anew(start: Start) -> None:
    async with start() as d:
        d.client._groups["late"] = running("late")
        await d.press("R")
        assert "late" in d.words


# logs


async def _log(d: Driver, name: str = "deepseek-v31", member: str = "deepseek-v31-p1") -> LogPane:
    await d.open_group(name, member)
    await d.press("enter")
    screen = d.console.screen
    assert isinstance(screen, LogScreen)
    pane = screen.query_one(LogPane)
    await d.until(lambda: pane.lines_held)
    await d.until(lambda: pane.lines_held[0] in d.text or pane.lines_held[-1] in d.text)
    return pane


async def test_log_generations(start: Start) -> None:
    async with start() as d:
        pane = await _log(d)
        assert pane.lines_held[0] == "third try"
        await d.press("p")
        await d.until(lambda: pane.lines_held and pane.lines_held[0] == "second try")
        assert "an earlier one" in d.text
        await d.press("p")
        await d.until(lambda: pane.lines_held and pane.lines_held[0] == "first try")
        await d.press("p")
        assert d.message == "There is no earlier generation."
        await d.press("P")
        await d.until(lambda: pane.lines_held and pane.lines_held[0] == "third try")


async def test_log_follow_wrap_search_copy(start: Start) -> None:
    async with start(size=(80, 20)) as d:
        pane = await _log(d, "qwen3-32b", "qwen3-32b-p0")
        await d.press("n")
        assert d.message == "Search first: /"
        assert pane.following
        await d.press("g")
        assert not pane.following
        assert "not following" in d.text
        await d.press("F")
        assert pane.following
        assert "59 reqs" in d.text
        await d.press("w")
        assert not pane.wrapping
        await d.press("w", "slash", *"error", "enter")
        assert pane.matches == [4, 5]
        first = pane.current_match
        await d.press("n")
        assert pane.current_match != first
        await d.press("N")
        assert pane.current_match == first
        await d.press("y")
        assert d.console.clipboard == "\n".join(pane.lines_held)
        await d.press("escape")
        assert pane.sought == ""
        await d.press("escape")
        assert isinstance(d.console.screen, GroupScreen)


async def test_log_grows_and_moves_to_a_new_generation(start: Start) -> None:
    async with start() as d:
        pane = await _log(d)
        d.client.logs["deepseek-v31-p1", 3] += "one more line\nhalf"
        await d.until(lambda: pane.lines_held[-1] == "one more line")
        d.client.logs["deepseek-v31-p1", 4] = "fourth try\n"
        view = d.client.group("deepseek-v31")
        members = tuple(
            m.model_copy(update={"generation": 4}) if m.id == "deepseek-v31-p1" else m
            for m in view.members
        )
        d.client.put(view.model_copy(update={"members": members}))
        await d.until(lambda: pane.lines_held and pane.lines_held[0] == "fourth try")


async def test_log_of_the_other_members_and_of_one_without(start: Start) -> None:
    async with start() as d:
        await _log(d, "qwen3-32b", "qwen3-32b-p0")
        await d.press("right_square_bracket")
        assert "qwen3-32b-p1" in d.line("pdtui")
        await d.until(lambda: "has no log" in d.message)
        await d.press("left_square_bracket")
        assert "qwen3-32b-p0" in d.line("pdtui")


# hosts


async def test_a_host_key_is_shown_and_accepted(start: Start) -> None:
    async with start() as d:
        await d.press("2")
        d.table.select("new-1")
        d.client.errors["test_host"] = HostKeyUnknown.of(
            "host.key_unknown",
            "The key of new-1 was never accepted.",
            values={"host": "new-1", "type": "ssh-ed25519", "fingerprint": "SHA256:abcDEF"},
        )
        await d.press("a")
        assert "SHA256:abcDEF" in d.text
        await d.press("y")
        assert d.client.calls[-1] == ("accept_host_key", "new-1", "SHA256:abcDEF")
        assert "● up" in d.line("new-1")


async def test_hosts_test_and_delete(start: Start) -> None:
    async with start() as d:
        await d.press("2", "t")
        assert d.client.calls == [("test_host", "gpu-1")]
        assert d.message == "gpu-1: up."
        d.client.errors["delete_host"] = Refused.of(
            "host.in_use", "gpu-1 is used by qwen3-32b.", remedy="Delete the group first."
        )
        await d.press("D", *"gpu-1", "enter")
        assert isinstance(d.console.screen, ErrorDialog)
        assert "Delete the group first." in d.text
