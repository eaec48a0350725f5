"""Every mode alive: groups form on embedded hosts behind the real routers, answer, scale, heal."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import httpx
import pytest

from backend.domain.views import GroupView, MemberView
from pdtui.cli.demo import chat
from tests.live.lab import Lab, deployment, serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]


def members(group: GroupView, role: str) -> list[MemberView]:
    return [m for m in group.members if m.role == role]


def identities(group: GroupView, *roles: str) -> dict[str, tuple[int, int]]:
    return {m.id: (m.pid, m.generation) for m in group.members if m.role in roles}


async def metric(member: MemberView, name: str, **labels: str) -> float:
    """The sum of a member's samples of that name that carry the labels."""
    async with httpx.AsyncClient(trust_env=False) as http:
        text = (await http.get(f"http://{member.address}:{member.port}/metrics")).text
    wanted = [f'{k}="{v}"' for k, v in labels.items()]
    lines = [x for x in text.splitlines() if x.startswith((f"{name} ", f"{name}{{"))]
    assert lines, name
    return sum(float(x.rsplit(" ", 1)[1]) for x in lines if all(w in x for w in wanted))


async def test_vllm_mooncake_forms_and_its_router_is_replaced(lab: Lab) -> None:
    """One first router; a member more replaces it once, a restarted prefill too; engines stay."""
    await lab.add_hosts()
    await lab.order("node2", engine={"start_delay": 2.0})  # the others are ready long before
    document = deployment(lab.model, prefill=1, decode=2, mode="vllm-mooncake")
    await lab.asked(lambda c: c.apply(document))
    formed = await lab.until("chat", serving(1, 2))
    (router,) = members(formed, "router")
    await lab.order("node2", engine={})
    assert router.generation == 1
    assert formed.membership == "restart"
    await chat(formed)
    (prefill,) = members(formed, "prefill")
    assert await metric(prefill, "vllm:mooncake_bytes_transferred_count") >= 2
    moved = [
        await metric(d, "vllm:prompt_tokens_by_source_total", source="external_kv_transfer")
        for d in members(formed, "decode")
    ]
    assert sum(moved) > 0

    await lab.asked(lambda c: c.scale("chat", {"prefill": 2}))
    grown = await lab.until("chat", serving(2, 2))
    assert members(grown, "router")[0].generation == 2
    assert grown.endpoint == formed.endpoint
    before = identities(formed, "prefill", "decode")
    assert before.items() <= identities(grown, "prefill", "decode").items()

    victim = members(grown, "prefill")[0]
    os.kill(victim.pid, signal.SIGKILL)
    healed = await lab.until(
        "chat",
        lambda g: (
            serving(2, 2)(g)
            and any(m.id == victim.id and m.generation == 2 for m in g.members)
            and members(g, "router")[0].generation > 2
        ),
    )
    kept = identities(grown, "prefill", "decode")
    kept.pop(victim.id)
    assert kept.items() <= identities(healed, "prefill", "decode").items()
    assert healed.endpoint == formed.endpoint
    for _ in range(4):
        await chat(healed)
    kinds = [e.message for e in await lab.asked(lambda c: c.events("chat")) if e.kind == "replaced"]
    assert len(kinds) == members(healed, "router")[0].generation - 1
