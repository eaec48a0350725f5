"""What changes groups: each says what it will do first, and why when it cannot."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from backend.domain.errors import Conflict
from pdtui.commands import catalog
from pdtui.present import plans
from pdtui.present.cells import plain
from pdtui.screens.dialogs.confirm import Confirm, LineQuestion
from pdtui.screens.dialogs.scale import ScaleDialog
from pdtui.screens.group import GroupScreen
from pdtui.screens.groups import GroupsScreen
from pdtui.widgets.lines_view import LinesView
from tests.tui.conftest import Start
from tests.tui.factories import DOCUMENTS, LOGS, member, running, site, stopped
from tests.tui.fake_client import FakeClient

# what changes groups


async def test_scale_dialog(start: Start) -> None:
    async with start() as d:
        await d.open_group("qwen3-32b", "qwen3-32b-d0")
        await d.press("S")
        assert isinstance(d.console.screen, ScaleDialog)
        assert "Nothing would change." in d.words
        await d.press("plus", "up", "3")
        assert "prefill 2 → 3: starts 1 member." in d.words
        assert "decode 1 → 2: starts 1 member." in d.words
        assert "The router is updated through its API" in d.words
        await d.press("enter")
        assert d.client.calls == [("scale", "qwen3-32b", {"prefill": 3, "decode": 2})]
        assert "stored" in d.message


async def test_scale_dialog_says_what_stops_and_what_waits(start: Start) -> None:
    async with start() as d:
        await d.open_group("deepseek-v31", "deepseek-v31-p0")
        await d.press("S")
        assert d.console.screen.counts["prefill"] == 3, "the stored count"  # type: ignore[attr-defined]
        await d.press("plus", "down", "0")
        assert "stored only" in d.words
        assert "Without decode members the group serves nothing." in d.words
        await d.press("escape")
        assert d.client.calls == []
        await d.press("S", "enter")
        assert d.client.calls == []


async def test_scale_while_stale_is_said_not_shouted(start: Start) -> None:
    async with start() as d:
        d.client.errors["scale"] = Conflict.of("life.stale", "prefill: 4 is stored as pending.")
        await d.open_group("deepseek-v31", "deepseek-v31-p0")
        await d.press("plus")
        assert isinstance(d.console.screen, LineQuestion)
        await d.press("y")
        assert d.message == "prefill: 4 is stored as pending."
        assert isinstance(d.console.screen, GroupScreen)


@pytest.mark.parametrize(
    ("key", "cursor", "says", "counts"),
    [
        ("plus", "qwen3-32b-p0", "prefill 2 → 3: starts 1 member", {"prefill": 3}),
        ("plus", "role:decode", "decode 1 → 2: starts 1 member", {"decode": 2}),
        ("minus", "qwen3-32b-p1", "prefill 2 → 1: takes 1 member out", {"prefill": 1}),
    ],
)
async def test_more_and_fewer(
    start: Start, key: str, cursor: str, says: str, counts: dict[str, int]
) -> None:
    async with start() as d:
        await d.open_group("qwen3-32b", cursor)
        await d.press(key)
        assert says in d.words
        await d.press("n")
        assert d.client.calls == []
        await d.press(key, "enter")
        assert d.client.calls == [("scale", "qwen3-32b", counts)]


async def test_the_line_question_is_whole_on_a_narrow_terminal(start: Start) -> None:
    async with start(size=(60, 20)) as d:
        await d.open_group("deepseek-v31", "deepseek-v31-p0")
        await d.press("plus")
        assert "so it applies at the restart. y yes n no" in d.words


async def test_more_from_the_list_opens_the_dialog(start: Start) -> None:
    async with start() as d:
        d.table.select("qwen3-32b")
        await d.press("plus")
        assert isinstance(d.console.screen, ScaleDialog)


async def test_restart_lists_what_it_interrupts(start: Start) -> None:
    async with start() as d:
        d.table.select("deepseek-v31")
        await d.press("r")
        for part in ("deepseek-v31-router", "deepseek-v31-p0", "65536", "requests that outlast"):
            assert part in d.words
        await d.press("n")
        assert d.client.calls == []
        await d.press("r", "y")
        assert d.client.calls == [("restart", "deepseek-v31", False)]


async def test_a_blocked_restart_can_be_forced(start: Start) -> None:
    async with start() as d:
        d.table.select("llama-70b")
        await d.press("r")
        assert "gpu-2 has not confirmed" in d.words
        await d.press("enter")
        assert d.client.calls == [], "enter is the harmless answer here"
        await d.press("r", "y")
        assert d.client.calls == [("restart", "llama-70b", True)]


async def test_delete_needs_the_name(start: Start) -> None:
    async with start() as d:
        d.table.select("glm-5")
        await d.press("D", *"glm-4", "enter")
        assert isinstance(d.console.screen, Confirm)
        await d.press("y")
        assert d.client.calls == []
        await d.press("backspace", "backspace", "5", "enter")
        assert d.client.calls == [("delete", "glm-5")]


async def test_remove_member_says_what_the_router_needs(start: Start) -> None:
    async with start() as d:
        await d.open_group("deepseek-v31", "deepseek-v31-p1")
        await d.press("X")
        says = d.console.screen.query_one(LinesView).text
        assert "no new member is made before the restart" in says
        assert "two short interruptions" in says
        await d.press("y")
        assert d.client.calls == [("delete_instance", "deepseek-v31", "deepseek-v31-p1")]


async def test_stop_and_start(start: Start) -> None:
    async with start() as d:
        d.table.select("qwen3-32b")
        await d.press("x", "y")
        d.table.select("baseline")
        await d.press("u", "y")
        assert d.client.calls == [("pause", "qwen3-32b", True), ("pause", "baseline", False)]


async def test_copy_shows_where_it_went(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with start() as d:
        d.table.select("qwen3-32b")
        await d.press("y")
        assert d.console.clipboard.startswith("curl http://10.20.0.11:40020/v1")
        assert d.message == "Copied the request."
        monkeypatch.setenv("TMUX", "/tmp/tmux")
        await d.press("y")
        saved = tmp_path / "clipboard.txt"
        assert saved.read_text() == d.console.clipboard
        assert os.stat(saved).st_mode & 0o777 == 0o600
        assert "tmux" in d.message
        monkeypatch.delenv("TMUX")
        d.console.copy("x" * 80_000, "the log")
        await d.settle()
        assert len(saved.read_text()) == 80_000
        assert "too long" in d.message


# why not


@pytest.mark.parametrize(
    ("where", "key", "why"),
    [
        ("baseline", "l", "baseline has no members yet."),
        ("baseline", "r", "baseline is stopped; u starts it."),
        ("baseline", "x", "baseline is stopped; u starts it."),
        ("qwen3-32b", "u", "qwen3-32b is not stopped."),
        ("qwen3-32b", "c", "qwen3-32b runs what is saved."),
        ("glm-5", "y", "glm-5 has no registered endpoint yet."),
        ("llama-70b", "S", "llama-70b is restarting; wait until it has formed."),
    ],
)
async def test_a_key_that_cannot_act_says_why(start: Start, where: str, key: str, why: str) -> None:
    async with start() as d:
        d.table.select(where)
        await d.press(key)
        assert d.message == why
        assert isinstance(d.console.screen, GroupsScreen)


@pytest.mark.parametrize(
    ("cursor", "key", "why"),
    [
        ("role:router", "plus", "A group has exactly one router"),
        ("qwen3-32b-router", "X", "The router is the platform's"),
        ("role:decode", "X", "Put the cursor on a member."),
    ],
)
async def test_on_the_panel_too(start: Start, cursor: str, key: str, why: str) -> None:
    async with start() as d:
        await d.open_group("qwen3-32b", cursor)
        await d.press(key)
        assert d.message.startswith(why)


async def test_nothing_under_the_cursor(start: Start) -> None:
    empty = FakeClient(site().model_copy(update={"groups": (), "hosts": (), "events": ()}))
    async with start(empty) as d:
        assert "No groups yet." in d.text
        for key in ("S", "r", "D", "l", "d", "e", "y", "x", "u", "c", "plus", "minus"):
            await d.press(key)
            assert d.message == "No group is under the cursor.", key
        await d.press("2")
        for key in ("d", "t", "a", "D"):
            await d.press(key)
            assert d.message == "No host is under the cursor.", key
        await d.press("3", "d")
        assert d.message == "No event is under the cursor."


async def test_read_only_changes_nothing(start: Start) -> None:
    async with start(read_only=True) as d:
        assert "read-only" in d.text
        d.table.select("qwen3-32b")
        await d.settle()
        changing = [c for c in catalog.of("groups") if c.effect != "read"]
        for command in changing:
            await d.press(command.keys[0])
            assert d.message == "This console is read-only.", command.id
        assert d.client.calls == []
        assert not d.hints["groups.restart"]
        assert d.hints["groups.logs"]


async def test_a_read_only_backend_makes_a_read_only_console(start: Start) -> None:
    client = FakeClient(site(), read_only=True, documents=DOCUMENTS, logs=LOGS)
    async with start(client) as d:
        await d.press("r")
        assert d.message == "This console is read-only."


async def test_a_deleting_group_cannot_be_touched(start: Start) -> None:
    async with start() as d:
        d.client.put(stopped().model_copy(update={"deleting": True}))
        await d.settle()
        for key in ("S", "r", "D", "x", "u"):
            await d.press(key)
            assert d.message == "baseline is being deleted.", key


# plans, before anything is done


def test_the_plan_of_a_scale_down_names_whom_the_backend_would_stop() -> None:
    """The ranking is the backend's own: the two are compared on every small group."""
    from itertools import product
    from types import SimpleNamespace

    from backend.domain.decide import victims

    for states in product(("ready", "starting", "exited", "draining"), repeat=3):
        for placed in product(("gpu-1", "gpu-2"), repeat=3):
            members = [
                member(f"g-p{i}", "prefill", host, state=state, since=float(i))
                for i, (state, host) in enumerate(zip(states, placed, strict=True))
            ]
            members.append(member("g-d0", "decode", "gpu-2"))
            group = running(members=tuple(members))
            instances = [
                SimpleNamespace(
                    id=m.id, role=m.role, host=m.host, state=m.state, since=m.since,
                    leaving=m.state == "draining",
                )
                for m in members
            ]  # fmt: skip
            picture = SimpleNamespace(
                members=instances,
                of=lambda role, all_=instances: [
                    i for i in all_ if i.role == role and not i.leaving
                ],
            )
            for fewer in (1, 2):
                wanted = [i.id for i in victims(picture, "prefill", fewer)]  # type: ignore[arg-type]
                assert [m.id for m in plans.leaving(group, "prefill", fewer)] == wanted


def test_the_plan_of_a_new_deployment_says_what_it_needs_and_what_is_free() -> None:
    lines = plans.apply(DOCUMENTS["qwen3-32b"], None, None, list(site().hosts))
    text = "\n".join(plain(one) for one in lines)
    assert "prefill 2, decode 1" in text
    assert "Needs 3 accelerators" in text
    assert "gpu-2" not in text, "a host that does not answer has nothing to give"
    assert "机器-北京 (4)" in text


def test_the_plan_of_an_edit_says_that_nothing_restarts_and_shows_the_difference() -> None:
    before = DOCUMENTS["qwen3-32b"]
    after = {**before, "spec": {**before["spec"], "model": "/data/other"}}
    text = "\n".join(plain(one) for one in plans.apply(after, before, running(), []))
    assert "nothing restarts" in text
    assert "+  model: /data/other" in text
    assert "-  model: /data/models/Qwen3-32B" in text


def test_the_plan_of_changed_counts_is_the_plan_of_a_scale() -> None:
    before = DOCUMENTS["qwen3-32b"]
    roles = {"prefill": {"replicas": 1}, "decode": {"replicas": 2}}
    after = {**before, "spec": {**before["spec"], "roles": roles}}
    text = "\n".join(plain(one) for one in plans.apply(after, before, running(), []))
    assert "prefill 2 → 1" in text
    assert "qwen3-32b-p1" in text
    assert "decode 1 → 2" in text
    assert "nothing restarts" not in text
