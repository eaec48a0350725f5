"""Faults behind green health pages: each is found and named by what is counted and tried."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from backend.domain.views import GroupView, MemberView
from pdtui.cli.demo import chat
from tests.live.lab import Lab, deployment, serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]

PACE = {"PDTUI_METRICS_EVERY_S": "1"}


async def switch(member: MemberView, **switches: Any) -> None:
    """Set switches of a simulated engine while it serves."""
    async with httpx.AsyncClient(trust_env=False, timeout=10) as http:
        url = f"http://{member.address}:{member.port}/sim"
        answer = await http.post(url, json=switches)
    assert answer.status_code == 200, answer.text


@asynccontextmanager
async def traffic(group: GroupView, every_s: float = 0.2) -> AsyncIterator[None]:
    """Requests at the endpoint; what they are answered is nobody's concern here."""

    async def ask() -> None:
        assert group.endpoint is not None
        body = {"model": group.endpoint.model, "max_tokens": 4, "prompt": "x"}
        async with httpx.AsyncClient(trust_env=False, timeout=30) as http:
            for n in range(100_000):
                body["prompt"] = (
                    f"Request {n} of {time.time()}: " + "what moves, and from where? " * 8
                )
                await http.post(f"{group.endpoint.url}/completions", json=body)
                await asyncio.sleep(every_s)

    task = asyncio.create_task(ask())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def found(lab: Lab, what: str, seen: Callable[[GroupView], bool]) -> GroupView:
    """The group once the fault is seen; says how long that took."""
    began = time.monotonic()
    group = await lab.until("chat", seen, 60)
    print(f"{what}: found after {time.monotonic() - began:.1f} s")
    return group


def verdict(group: GroupView, member: str) -> str:
    view = next((m.effect for m in group.members if m.id == member), None)
    return view.verdict if view else ""


def members(group: GroupView, role: str) -> list[MemberView]:
    return [m for m in group.members if m.role == role]


async def test_effectiveness_is_measured_and_a_prefill_that_answers_500_is_named(lab: Lab) -> None:
    lab.env |= PACE
    await lab.add_hosts()
    await lab.asked(lambda c: c.apply(deployment(lab.model, prefill=2, decode=1)))
    formed = await lab.until("chat", serving(2, 1))
    (decode,) = members(formed, "decode")
    broken, sound = members(formed, "prefill")
    async with traffic(formed):
        works = await lab.until("chat", lambda g: verdict(g, decode.id) == "good", 60)
        assert works.effect is not None
        assert works.effect.numbers["share"] > 0.9
        await switch(broken, fail="500")
        await chat(formed)  # the router still answers 200
        group = await found(
            lab, "a prefill that answers 500", lambda g: verdict(g, broken.id) == "failing"
        )
        assert next(m for m in group.members if m.id == broken.id).state == "ready"
        assert verdict(group, sound.id) != "failing"
        (mark,) = [m for m in group.marks if m.id == "effect"]
        assert mark.text.startswith(f"PD effectiveness: {broken.id}: the router sent it")
        await switch(broken, fail="")
        await lab.until("chat", lambda g: verdict(g, broken.id) == "good", 60)

    history = await lab.asked(lambda c: c.metrics("chat", window=300, points=50))
    by_id = {m.instance: m for m in history.members}
    shares = [v for v in by_id[decode.id].series["external_share"] if v is not None]
    assert max(shares) == 1.0
    assert len(by_id[decode.id].at) > 3
    newest = await lab.asked(lambda c: c.member_metrics(decode.id))
    assert newest.raw["tokens_external"] > 0
    (router,) = members(formed, "router")
    assert max(v or 0 for v in by_id[router.id].series["requests"]) > 0
