"""Requests in flight while a group grows and shrinks: none fails, each is answered rightly."""

from __future__ import annotations

from typing import Any

import pytest

from backend.domain.views import GroupView
from tests.live.lab import Lab, deployment, serving
from tests.live.load import Load, right_answers, windows

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]


SGLANG = {"engine": "sglang", "parameters": ["--context-length", "8192"]}


def lone(lab: Lab, **spec: Any) -> dict[str, Any]:
    """One engine without disaggregation: what answers are compared with."""
    document = deployment(lab.model, "lone", **spec)
    for key in ("disaggregation", "roles"):
        del document["spec"][key]
    document["spec"]["served_model_name"] = "chat"
    return document


async def correct(lab: Lab, **spec: Any) -> dict[str, str]:
    """The right answers, from an engine that is gone again afterwards."""
    await lab.asked(lambda c: c.apply(lone(lab, **spec)))
    group = await lab.until("lone", lambda g: g.status == "Running")
    (engine,) = group.members
    answers = await right_answers(f"http://{engine.address}:{engine.port}/v1", "chat")
    assert len(set(answers.values())) == len(answers)
    await lab.asked(lambda c: c.delete("lone"))
    await lab.until_gone("lone")
    return answers


async def slowed(lab: Lab, **switches: float) -> None:
    """Engines that start from now on take their time."""
    for host in lab.inventory:
        await lab.order(host["name"], engine={"token_delay": 0.02, **switches})


def endpoint(group: GroupView) -> str:
    assert group.endpoint is not None
    return group.endpoint.url


@pytest.mark.parametrize(("mode", "spec"), [("vllm-nixl", {}), ("sglang-mooncake", SGLANG)])
async def test_scaling_under_load_fails_no_request(
    lab: Lab, mode: str, spec: dict[str, Any]
) -> None:
    """1P1D to 3P2D and back through the real router of either dialect, under a steady stream."""
    await lab.add_hosts()
    right = await correct(lab, **spec)
    await slowed(lab, prefill_delay=0.05)
    await lab.asked(lambda c: c.apply(deployment(lab.model, mode=mode, **spec)))
    group = await lab.until("chat", serving(1, 1))
    async with Load(endpoint(group), "chat", right) as load:
        await load.more(20)
        for prefill, decode in ((3, 2), (1, 1), (3, 2), (1, 1)):
            counts = {"prefill": prefill, "decode": decode}
            await lab.asked(lambda c, n=counts: c.scale("chat", n))
            await lab.until("chat", serving(prefill, decode))
            await load.more(30)
    assert [a.problem for a in load.failed] == []
    print(f"{len(load.answers)} requests, none failed")


async def test_a_leaving_prefill_keeps_what_a_decode_has_yet_to_fetch(lab: Lab) -> None:
    """Decode is full, so what was prefilled waits there longer than any drain settles."""
    await lab.add_hosts()
    right = await correct(lab)
    await slowed(lab, token_delay=0.15)
    document = deployment(lab.model, prefill=2)
    document["spec"]["roles"]["decode"]["parameters"] = [
        "--max-model-len", "8192", "--max-num-seqs", "2",
    ]  # fmt: skip
    await lab.asked(lambda c: c.apply(document))
    group = await lab.until("chat", serving(2, 1))
    async with Load(endpoint(group), "chat", right, clients=8) as load:
        await load.more(8)
        await lab.asked(lambda c: c.scale("chat", {"prefill": 1}))
        await lab.until("chat", serving(1, 1))
        await load.more(16)
    assert [a.problem for a in load.failed] == []


async def test_a_static_routers_replacement_costs_a_window(lab: Lab) -> None:
    """Restart mode: requests fail only while a router is replaced; the window is shown."""
    await lab.add_hosts()
    right = await correct(lab)
    await slowed(lab)
    await lab.asked(lambda c: c.apply(deployment(lab.model, mode="vllm-mooncake")))
    group = await lab.until("chat", serving(1, 1))
    async with Load(endpoint(group), "chat", right) as load:
        await load.more(20)
        replaced = 0
        for prefill, decode in ((3, 2), (1, 1)):
            counts = {"prefill": prefill, "decode": decode}
            await lab.asked(lambda c, n=counts: c.scale("chat", n))
            grown = await lab.until("chat", serving(prefill, decode))
            await load.more(20)
        replaced = next(m.generation for m in grown.members if m.role == "router") - 1
    failed = windows(load.answers)
    for start, seconds, count in failed:
        print(f"router replaced: {count} requests failed within {seconds:.2f} s (at {start:.1f} s)")
    print(f"{len(load.answers)} requests, {len(load.failed)} failed, {replaced} replacements")
    wrong = [a.problem for a in load.failed if "instead of" in a.problem]
    assert wrong == []
    assert 2 <= replaced <= 4
    assert len(failed) <= replaced
