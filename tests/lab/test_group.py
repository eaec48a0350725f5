"""A 2P1D group across three real hosts with two interfaces each: formed, cut off, rebooted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from backend.domain.errors import Refused
from backend.domain.views import GroupView
from pdtui.cli.demo import chat, fetched_tokens
from tests.lab.machines import FAST_NIC, NIC, Rack
from tests.live.lab import Lab, deployment, serving

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.timeout(300)]


class RackLab(Lab):
    """A backend on the rack's network, before the rack's hosts."""

    def __init__(self, state: Path, rack: Rack) -> None:
        super().__init__(state)
        self.rack = rack
        (self.model,) = (rack.root / "models").iterdir()
        self.inventory = rack.inventory()

    async def up(self, plan: object = None) -> None:
        """The hosts run already: only their keys have to be known."""
        self.state.mkdir(mode=0o700)
        (self.state / "known_hosts").write_text(self.rack.known_hosts())


@pytest.fixture
async def lab(rack: Rack, tmp_path: Path) -> AsyncIterator[RackLab]:
    lab = RackLab(tmp_path, rack)
    await lab.up()
    try:
        yield lab
    finally:
        await lab.down()


def pinned(lab: RackLab) -> dict:  # type: ignore[type-arg]
    """2P1D, each member on a host of its own, the router on the one without accelerators."""
    document = deployment(lab.model, prefill=2)
    roles = document["spec"]["roles"]
    roles["prefill"]["placement"] = [{"host": "node1"}, {"host": "node2"}]
    roles["decode"]["placement"] = [{"host": "node3"}]
    roles["router"] = {"placement": [{"host": "node4"}]}
    return document


def pids(group: GroupView) -> dict[str, tuple[int, int]]:
    return {m.id: (m.pid, m.generation) for m in group.members}


async def test_a_group_across_hosts_outlives_a_cut_cable_and_comes_back_after_a_reboot(
    lab: RackLab, rack: Rack
) -> None:
    await lab.add_hosts()
    with pytest.raises(Refused) as caught:
        await lab.asked(lambda c: c.apply(pinned(lab)))
    problem = next(p for p in caught.value.problems if p.rule == "host.kv_interface")
    assert problem.path == "hosts.node1.kv_transfer_ifname"
    assert set(problem.values["candidates"]) == {NIC, FAST_NIC}

    for entry in lab.inventory:
        entry["kv_transfer_ifname"] = FAST_NIC
    await lab.add_hosts()
    await lab.asked(lambda c: c.apply(pinned(lab)))
    formed = await lab.until("chat", serving(2, 1))
    assert {m.host for m in formed.members} == {"node1", "node2", "node3", "node4"}
    decode = next(m for m in formed.members if m.role == "decode")
    _, answer, tokens = await chat(formed)
    assert await fetched_tokens(decode) >= tokens > 0
    victim = next(m for m in formed.members if m.host == "node2")
    assert {m.net_device for m in formed.members if m.role != "router"} == {FAST_NIC}
    environment = rack.machines[1].sh('tr "\\0" "\\n" <"/proc/$1/environ"', str(victim.pid))
    assert f"UCX_NET_DEVICES={FAST_NIC}" in environment.split("\n")

    rack.part(rack.machines[1])
    cut = await lab.until(
        "chat", lambda g: any(m.id == victim.id and m.state != "ready" for m in g.members)
    )
    assert await _over(lab, 10.0) == pids(formed)
    assert cut.endpoint == formed.endpoint
    rack.heal(rack.machines[1])
    healed = await lab.until("chat", serving(2, 1))
    assert pids(healed) == pids(formed)
    assert (await chat(healed))[1] == answer

    rack.machines[2].reboot()
    back = await lab.until(
        "chat",
        lambda g: (
            serving(2, 1)(g) and next(m.generation for m in g.members if m.id == decode.id) > 1
        ),
    )
    assert {k: v for k, v in pids(back).items() if k != decode.id} == {
        k: v for k, v in pids(formed).items() if k != decode.id
    }
    assert (await chat(back))[1] == answer
    await lab.asked(lambda c: c.delete("chat"))
    await lab.until_gone("chat")
    for machine in rack.machines:
        assert machine.sh("ls /root/login/.pdtui/instances 2>/dev/null || :") == ""
        assert "vllm" not in machine.sh("ps -eo args")


async def _over(lab: RackLab, seconds: float) -> dict[str, tuple[int, int]]:
    """The last pids the backend knew of each member while the cable is out."""
    last: dict[str, tuple[int, int]] = {}
    end = asyncio.get_running_loop().time() + seconds
    while asyncio.get_running_loop().time() < end:
        group = await lab.asked(lambda c: c.group("chat"))
        last |= {m.id: (m.pid, m.generation) for m in group.members if m.pid}
        await asyncio.sleep(0.2)
    return last
