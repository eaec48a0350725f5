"""What breaks below a group: wedged engines, orphans, reboots, foreign ports, crash loops."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from contextlib import suppress
from pathlib import Path

import pytest

from backend.domain.views import GroupView, MemberView
from tests.live.lab import Lab, deployment, serving
from tests.live.watch import pairs, starts_at

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]


def only(group: GroupView, role: str) -> MemberView:
    (found,) = (m for m in group.members if m.role == role)
    return found


def engines(group: GroupView) -> list[MemberView]:
    return [m for m in group.members if m.role != "router"]


async def switch(lab: Lab, **switches: object) -> None:
    for host in lab.inventory:
        await lab.order(host["name"], engine=switches)


async def test_a_wedged_start_is_killed_and_started_again(lab: Lab) -> None:
    """Engines that neither serve nor end: killed after their limit, well on the next start."""
    lab.env["PDTUI_START_LIMIT_S"] = "4"
    await lab.add_hosts()
    await switch(lab, start_delay=600.0)
    await lab.asked(lambda c: c.apply(deployment(lab.model)))
    wedged = await lab.until(
        "chat",
        lambda g: [m.state for m in g.members if m.pid] == ["starting", "starting"],
    )
    await lab.until("chat", lambda g: all(m.failures == 1 for m in engines(g)))
    await switch(lab)
    well = await lab.until("chat", serving(1, 1))
    for role in ("prefill", "decode"):
        old, new = only(wedged, role), only(well, role)
        assert (new.id, new.generation, new.port) == (old.id, 2, old.port)
        assert starts_at(old.pid) is None
    events = await lab.asked(lambda c: c.events("chat"))
    said = [e for e in events if e.kind == "wedged"]
    assert {e.instance for e in said} == {m.id for m in engines(wedged)}
    assert all("has not answered for" in e.message for e in said)


async def test_a_hung_member_leaves_the_router_and_is_started_again(lab: Lab) -> None:
    """SIGSTOP to all of a decode: it lives, answers nothing, and is killed all the same."""
    lab.env["PDTUI_HANG_LIMIT_S"] = "3"
    await lab.add_hosts()
    await lab.asked(lambda c: c.apply(deployment(lab.model, decode=2)))
    group = await lab.until("chat", serving(1, 2))
    victim = next(m for m in group.members if m.role == "decode")
    for pid in session(victim.pid):
        os.kill(pid, signal.SIGSTOP)
    out = await lab.until(
        "chat", lambda g: any(m.id == victim.id and m.state == "unhealthy" for m in g.members)
    )
    assert out.status == "Running"
    well = await lab.until("chat", serving(1, 2))
    assert next(m for m in well.members if m.id == victim.id).generation == 2
    assert starts_at(victim.pid) is None


def session(leader: int) -> list[int]:
    """The living processes of a leader's session."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == leader:
            found.append(int(stat.parent.name))
    return found


async def test_orphaned_children_are_found_and_killed(lab: Lab) -> None:
    """kill -9 of an API process leaves its engine core: it is gone before the next start."""
    await lab.add_hosts()
    await switch(lab, orphan=True)
    await lab.asked(lambda c: c.apply(deployment(lab.model)))
    group = await lab.until("chat", serving(1, 1))
    victim = only(group, "decode")
    children = [p for p in session(victim.pid) if p != victim.pid]
    assert children
    os.kill(victim.pid, signal.SIGKILL)
    await lab.until("chat", lambda g: serving(1, 1)(g) and only(g, "decode").generation == 2)
    assert [p for p in children if starts_at(p) is not None] == []


async def test_a_rebooted_host_starts_its_members_anew(lab: Lab) -> None:
    """Everything of the host ends without a word, and the boot id of its records is another."""
    await lab.add_hosts()
    await lab.asked(lambda c: c.apply(deployment(lab.model)))
    group = await lab.until("chat", serving(1, 1))
    host = only(group, "prefill").host
    await lab.order(host, faults={"refuse": True})
    await lab.order(host, drop=True)
    reboot(lab, host)
    gone = {m.id for m in group.members if m.host == host}
    await lab.until(
        "chat", lambda g: all(m.state == "unreachable" for m in g.members if m.id in gone)
    )
    await lab.order(host, faults={"refuse": False})
    back = await lab.until("chat", serving(1, 1))
    for m in back.members:
        assert m.generation == (2 if m.id in gone else 1), m
    assert back.endpoint == group.endpoint


def reboot(lab: Lab, host: str) -> None:
    """End every recorded process of a host at once, supervisors first, under another boot id."""
    for run in lab.root.glob(f"sandbox/hosts/{host}/*/instances/*/g*/run"):
        facts = pairs(run.read_text())
        for pid, start in ((facts["sup"], facts["supstart"]), (facts["pid"], facts["start"])):
            if starts_at(int(pid)) == int(start):
                for each in (int(pid), *session(int(pid))):
                    with suppress(ProcessLookupError):
                        os.kill(each, signal.SIGKILL)
        facts["boot"] = "00000000-0000-0000-0000-000000000000"
        run.write_text("".join(f"{k}={v}\n" for k, v in facts.items()))


async def test_a_taken_port_holds_a_start_back_until_it_is_free(lab: Lab) -> None:
    """A stranger listens on a dead member's side channel: said by name, healed when it leaves."""
    await lab.add_hosts()
    await lab.asked(lambda c: c.apply(deployment(lab.model)))
    group = await lab.until("chat", serving(1, 1))
    victim = only(group, "prefill")
    band = victim.bands[0].base
    os.kill(victim.pid, signal.SIGKILL)
    with socket.socket() as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        async with asyncio.timeout(20):
            while True:
                try:
                    stranger.bind((victim.address, band))
                    break
                except OSError:
                    await asyncio.sleep(0.005)
        stranger.listen()
        held = await lab.until("chat", lambda g: str(band) in only(g, "prefill").note)
        assert "listened on" in only(held, "prefill").note
    back = await lab.until("chat", serving(1, 1))
    assert (only(back, "prefill").id, only(back, "prefill").port) == (victim.id, victim.port)


async def test_a_crash_loop_waits_for_a_person(lab: Lab) -> None:
    """Three ends without having served: shown, left alone, and cured by a restart of the group."""
    await lab.add_hosts()
    await switch(lab, die=3, die_message="CUDA error: out of memory")
    await lab.asked(lambda c: c.apply(deployment(lab.model)))
    looping = await lab.until(
        "chat",
        lambda g: [m.state for m in engines(g)] == ["crash_loop"] * 2,
    )
    assert {m.generation for m in engines(looping)} == {3}
    assert {m.id for m in looping.marks} >= {"crash_loop"}
    await switch(lab)
    await asyncio.sleep(1.0)
    still = await lab.asked(lambda c: c.group("chat"))
    assert [(m.id, m.state) for m in still.members] == [(m.id, m.state) for m in looping.members]
    await lab.asked(lambda c: c.restart("chat"))
    await lab.until("chat", serving(1, 1))
