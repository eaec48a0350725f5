"""A group's life on embedded hosts: deaths are healed, edits wait, the endpoint stays."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from pathlib import Path

import pytest

from backend.client.connect import open_client
from backend.client.http import HttpClient
from backend.domain.errors import Conflict
from backend.paths import Paths
from pdtui.cli.demo import chat, fetched_tokens
from tests.live.lab import Lab, deployment, serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]


async def test_deaths_are_healed_under_the_same_identity(lab: Lab) -> None:
    """A member and then the router are killed: generation 2, same place, endpoint unmoved."""
    await lab.add_hosts()
    await lab.asked(lambda c: c.apply(deployment(lab.model)))
    before = await lab.until("chat", serving(1, 1))
    assert before.endpoint is not None
    for role in ("decode", "router"):
        victim = next(m for m in before.members if m.role == role)
        os.kill(victim.pid, signal.SIGKILL)
        after = await lab.until(
            "chat",
            lambda g, v=victim: (
                serving(1, 1)(g) and any(m.id == v.id and m.generation == 2 for m in g.members)
            ),
        )
        healed = next(m for m in after.members if m.id == victim.id)
        assert (healed.host, healed.port) == (victim.host, victim.port)
        assert healed.pid != victim.pid
        assert after.endpoint == before.endpoint
    decode = next(m for m in after.members if m.role == "decode")
    _, _, tokens = await chat(after)
    assert await fetched_tokens(decode) >= tokens > 0
    kinds = [e.kind for e in await lab.asked(lambda c: c.events("chat"))]
    assert {"exited", "respawn", "unregistered", "registered"} <= set(kinds)
    previous = await lab.asked(lambda c: c.log(decode.id, generation=1))
    assert previous.text != ""


async def test_edits_wait_and_counts_follow_their_rules(lab: Lab) -> None:
    """Config changed: scale-up is refused and stored, scale-down acts, restart applies both."""
    await lab.add_hosts()
    await lab.asked(lambda c: c.apply(deployment(lab.model, prefill=2)))
    before = await lab.until("chat", serving(2, 1))
    edited = deployment(lab.model, prefill=2, parameters=("--max-model-len", "4096"))
    changed = await lab.asked(lambda c: c.apply(edited))
    assert changed.config_changed
    assert changed.changes == ("spec.parameters[1]: 8192 -> 4096",)
    client = await lab.client()
    with pytest.raises(Conflict) as caught:
        await client.scale("chat", {"decode": 2})
    assert caught.value.problem.rule == "life.stale"
    waiting = await client.group("chat")
    assert waiting.roles["decode"].wanted == 1
    assert waiting.roles["decode"].pending == 2

    await client.scale("chat", {"prefill": 1})
    fewer = await lab.until("chat", serving(1, 1))
    assert {m.id for m in fewer.members} < {m.id for m in before.members}

    await client.restart("chat")
    anew = await lab.until("chat", serving(1, 2))
    assert not anew.config_changed
    assert anew.endpoint == before.endpoint
    assert {m.revision for m in anew.members} == {changed.revision}
    back = await client.apply(edited)
    assert not back.config_changed or back.version > changed.version

    await client.pause("chat", True)
    stopped = await lab.until("chat", lambda g: g.status == "Stopped")
    assert stopped.members == ()
    assert lab.directories() == set()
    await client.pause("chat", False)
    await lab.until("chat", lambda g: g.status == "Running")


async def test_an_earlier_edit_taken_back_is_no_change(lab: Lab) -> None:
    await lab.add_hosts()
    await lab.asked(lambda c: c.apply(deployment(lab.model)))
    await lab.until("chat", serving(1, 1))
    client = await lab.client()
    edited = deployment(lab.model, parameters=("--max-model-len", "4096"))
    assert (await client.apply(edited)).config_changed
    assert not (await client.apply(deployment(lab.model))).config_changed


async def test_a_host_lost_and_back_keeps_its_members(lab: Lab) -> None:
    """Ten seconds without a host: its members are shown unreachable, left alone, and taken back."""
    await lab.add_hosts()
    await lab.asked(lambda c: c.apply(deployment(lab.model)))
    before = await lab.until("chat", serving(1, 1))
    victim = next(m for m in before.members if m.role == "prefill")
    await lab.order(victim.host, faults={"refuse": True})
    await lab.order(victim.host, drop=True)
    lost = await lab.until(
        "chat", lambda g: any(m.id == victim.id and m.state == "unreachable" for m in g.members)
    )
    assert any(victim.host in m.text for m in lost.marks if m.id == "unreachable_host")
    await lab.order(victim.host, faults={"refuse": False})
    back = await lab.until("chat", serving(1, 1))
    assert {(m.id, m.pid, m.generation) for m in back.members} == {
        (m.id, m.pid, m.generation) for m in before.members
    }


async def test_a_member_whose_directory_is_gone_is_ended_and_started_anew(lab: Lab) -> None:
    """Somebody cleaned up on the host: the engine that lives on without its claim must not stay."""
    await lab.add_hosts()
    await lab.asked(lambda c: c.apply(deployment(lab.model)))
    before = await lab.until("chat", serving(1, 1))
    victim = next(m for m in before.members if m.role == "prefill")
    (folder,) = lab.root.glob(f"sandbox/hosts/{victim.host}/**/instances/{victim.id}")
    shutil.rmtree(folder)
    after = await lab.until(
        "chat", lambda g: serving(1, 1)(g) and any(m.generation == 2 for m in g.members)
    )
    healed = next(m for m in after.members if m.id == victim.id)
    assert healed.pid != victim.pid
    assert not Path(f"/proc/{victim.pid}").exists()
    assert lab.directories() == {m.id for m in after.members}

    (folder,) = lab.root.glob(f"sandbox/hosts/{victim.host}/**/instances/{victim.id}")
    shutil.rmtree(folder)
    await lab.asked(lambda c: c.delete("chat"))
    await lab.until_gone("chat")
    assert not Path(f"/proc/{healed.pid}").exists()


async def test_a_host_in_use_keeps_its_place(lab: Lab) -> None:
    """Its address does not change under its members, and a fenced instance keeps the entry."""
    await lab.add_hosts()
    await lab.asked(lambda c: c.apply(deployment(lab.model)))
    group = await lab.until("chat", serving(1, 1))
    client = await lab.client()
    entry = next(h for h in lab.inventory if h["name"] == group.members[0].host)
    with pytest.raises(Conflict, match="leads to another machine"):
        await client.add_host({**entry, "address": "127.0.99.99"})
    assert (await client.add_host({**entry, "labels": {"rack": "b"}})).state == "up"

    await lab.order(entry["name"], faults={"refuse": True})
    await lab.order(entry["name"], drop=True)
    await lab.until("chat", lambda g: any(m.state == "unreachable" for m in g.members))
    await client.restart("chat", force=True)
    await lab.until(
        "chat", lambda g: serving(1, 1)(g) and entry["name"] not in {m.host for m in g.members}
    )
    with pytest.raises(Conflict, match="yet to confirm"):
        await client.delete_host(entry["name"])
    await lab.order(entry["name"], faults={"refuse": False})
    await lab.until("chat", lambda g: lab.directories() == {m.id for m in g.members})


async def test_two_consoles_share_one_backend_and_the_second_takes_over(lab: Lab) -> None:
    """The first starts a backend of its own; the second attaches, and revives it later."""
    first = await open_client(lab.state)
    second = await open_client(lab.state)
    try:
        assert first.owned
        assert not second.owned
        assert (await first.health()).pid == (await second.health()).pid
        owner = (await first.health()).pid
        snapshot = await second.snapshot()
        stream = second.changes(snapshot.seq)
        arriving = asyncio.ensure_future(anext(stream))
        await first.add_host(lab.inventory[0])
        async with asyncio.timeout(20):
            change = await arriving
        assert change.body["host" if change.kind == "event" else "name"] == "node1"
        arriving = asyncio.ensure_future(_until_snapshot(stream))
        await first.aclose()
        async with asyncio.timeout(30):
            await arriving
        health = await second.health()
        assert health.pid != owner
        assert health.hosts == 1
        await stream.aclose()  # type: ignore[attr-defined]
    finally:
        await second.aclose()
    gone = HttpClient(Paths.default(lab.state).socket)
    with pytest.raises(Exception, match="no backend answers"):
        await gone.health()
    await gone.aclose()


async def _until_snapshot(stream) -> None:  # type: ignore[no-untyped-def]
    async for change in stream:
        if change.kind == "snapshot":
            return


async def test_a_second_owner_is_refused_by_pid(lab: Lab) -> None:
    import sys

    client = await lab.client()
    pid = (await client.health()).pid
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "backend.daemon", "--state-dir", str(lab.state),
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    _, said = await asyncio.wait_for(other.communicate(), 30)
    assert other.returncode == 3
    assert f"process {pid} already runs a backend" in said.decode()
