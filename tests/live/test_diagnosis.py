"""Why a group does not serve: read from the logs of a living laboratory."""

from __future__ import annotations

import pytest

from backend.domain.views import GroupView, MemberView
from tests.live.lab import Lab, deployment, serving
from tests.live.test_cli import pdtui

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]


def engines(group: GroupView) -> list[MemberView]:
    return [m for m in group.members if m.role != "router"]


async def test_a_crash_loops_cause_is_told_in_the_note_the_command_and_every_attempt(
    lab: Lab,
) -> None:
    await lab.add_hosts()
    broken = deployment(lab.model, parameters=("--no-such-flag",))
    await lab.asked(lambda c: c.apply(broken))
    looping = await lab.until(
        "chat",
        lambda g: (
            bool(g.members)
            and all(m.state == "crash_loop" and "--no-such-flag" in m.note for m in engines(g))
        ),
    )
    member = engines(looping)[0]
    assert "This engine version does not know the arguments: --no-such-flag" in member.note
    found = await lab.asked(lambda c: c.diagnose_group("chat"))
    assert set(found.causes) == {m.id for m in engines(looping)}
    one = found.of(member.id)
    assert one is not None
    assert one.first.rule == "arguments.unrecognized"
    assert (one.role, one.generation) == (member.role, 3)
    assert [p.generation for p in one.previous] == [2, 1]
    assert all(p.first.rule == "arguments.unrecognized" for p in one.previous)

    told = await pdtui(lab, "diagnose", "chat")
    assert told.code == 1
    assert told.out.count("[arguments.unrecognized]") == len(engines(looping))
    first = await pdtui(lab, "diagnose", member.id, "--attempt", "1", "--json")
    assert first.json["members"][0]["first"]["rule"] == "arguments.unrecognized"
    gone = await pdtui(lab, "diagnose", member.id, "--attempt", "9")
    assert "no log" in gone.out


async def test_a_serving_group_has_no_cause_to_tell(lab: Lab) -> None:
    await lab.add_hosts()
    await lab.asked(lambda c: c.apply(deployment(lab.model)))
    await lab.until("chat", serving(1, 1))
    found = await lab.asked(lambda c: c.diagnose_group("chat"))
    assert found.causes == ()
    assert {d.role for d in found.members} == {"prefill", "decode", "router"}
    assert all(not d.unread for d in found.members)
    quiet = await pdtui(lab, "diagnose", "chat")
    assert quiet.code == 0
