"""Faults behind green health pages: each is found and named by what is counted and tried."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from backend.domain.views import GroupView, MemberView
from pdtui.cli.demo import chat
from tests import planted
from tests.live.lab import Lab, deployment, serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]

PACE = {"PDTUI_METRICS_EVERY_S": "1"}
CANARY = {
    **PACE,
    "PDTUI_CANARY_FORMED": "1",
    "PDTUI_CANARY_EVERY_S": "2",
    "PDTUI_CANARY_FAILING_S": "2",
}


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
    group = await lab.until("chat", seen, 150)
    print(f"{what}: found after {time.monotonic() - began:.1f} s")
    return group


def verdict(group: GroupView, member: str) -> str:
    view = next((m.effect for m in group.members if m.id == member), None)
    return view.verdict if view else ""


def members(group: GroupView, role: str) -> list[MemberView]:
    return [m for m in group.members if m.role == role]


async def pdtui(lab: Lab, *words: str) -> tuple[int, str]:
    """A command of the command line: its exit code and what it prints."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "pdtui", "--state-dir", str(lab.state), *words,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    async with asyncio.timeout(240):
        said, _ = await process.communicate()
    return process.returncode or 0, said.decode()


async def test_effectiveness_is_measured_and_a_prefill_that_answers_500_is_named(lab: Lab) -> None:
    lab.env |= PACE
    await lab.add_hosts()
    await lab.asked(lambda c: c.apply(deployment(lab.model, prefill=2, decode=1)))
    formed = await lab.until("chat", serving(2, 1))
    (decode,) = members(formed, "decode")
    broken, sound = members(formed, "prefill")
    async with traffic(formed):
        works = await lab.until("chat", lambda g: verdict(g, decode.id) == "good", 150)
        assert works.effect is not None
        assert works.effect.numbers["share"] > 0.9
        await switch(broken, fail="500")
        await chat(formed)  # the router still answers 200
        group = await found(
            lab, "a prefill that answers 500", lambda g: verdict(g, broken.id) == "failing"
        )
        assert next(m for m in group.members if m.id == broken.id).state == "ready"
        assert verdict(group, sound.id) != "failing"
        code, said = await pdtui(lab, "alerts")
        assert code == 1
        assert f"{broken.id}: the router sent it" in said
        code, said = await pdtui(lab, "canary", "chat")
        assert code == 1
        assert "fails within" in said
        assert f"{broken.id}: prefill: HTTP 500" in said
        assert f"{broken.id} -> {decode.id}: prefill: HTTP 500" in said
        (mark,) = [m for m in group.marks if m.id == "effect"]
        assert mark.text.startswith(f"{broken.id}: the router sent it")
        await switch(broken, fail="")
        await lab.until("chat", lambda g: g.effect is not None and g.effect.verdict == "good", 150)

    code, said = await pdtui(lab, "top", "--once")
    assert code == 0
    assert "TTFT95" in said
    assert "chat: PD " in said, said  # of which minutes depends on how soon after the traffic
    assert decode.id in said
    code, said = await pdtui(lab, "metrics", "chat", "--window", "5")
    assert code == 0
    assert f"{decode.id} (decode on" in said
    assert "external_share" in said
    history = await lab.asked(lambda c: c.metrics("chat", window=300, points=50))
    by_id = {m.instance: m for m in history.members}
    shares = [v for v in by_id[decode.id].series["external_share"] if v is not None]
    assert max(shares) == 1.0
    assert len(by_id[decode.id].at) > 3
    newest = await lab.asked(lambda c: c.member_metrics(decode.id))
    assert newest.raw["tokens_external"] > 0
    (router,) = members(formed, "router")
    assert max(v or 0 for v in by_id[router.id].series["requests"]) > 0


def failing(group: GroupView, words: str) -> bool:
    """Whether the last finished canary fails with these words."""
    run = group.canary
    return run is not None and not run.running and not run.ok and words in run.note


def well(group: GroupView) -> bool:
    run = group.canary
    return run is not None and not run.running and run.ok and bool(run.pairs)


def kinds(group: GroupView) -> set[tuple[str, str]]:
    return {(a.kind, a.instance) for a in group.alerts}


async def test_a_canary_tries_every_pair_and_names_what_health_pages_hide(lab: Lab) -> None:
    """No request comes from anybody else: an idle group is known to work, or not to."""
    lab.env |= CANARY
    await lab.add_hosts()
    await lab.asked(lambda c: c.apply(deployment(lab.model, prefill=2, decode=2)))
    await lab.until("chat", serving(2, 2))
    group = await lab.until("chat", well, 150)
    assert group.canary is not None
    assert group.canary.router is not None
    pairs = {(p.prefill, p.decode): p for p in group.canary.pairs}
    prefills, decodes = (sorted(m.id for m in members(group, r)) for r in ("prefill", "decode"))
    assert sorted(pairs) == [(p, d) for p in prefills for d in decodes]
    assert all(p.verdict in ("ok", "slow") and p.moved is not False for p in pairs.values())
    assert any(p.moved for p in pairs.values())  # a page that comes late shows nothing
    assert group.canary.router.verdict == "ok"
    first, _ = members(group, "prefill")
    cut, _ = members(group, "decode")

    await switch(first, stale_engine=True)
    seen = await found(lab, "a stale engine id", lambda g: failing(g, "engine ID mismatch"))
    assert seen.canary is not None
    assert seen.canary.note.startswith(f"{first.id}: ")
    assert ("canary", "") in kinds(seen)
    await switch(first, stale_engine=False)
    await lab.until("chat", lambda g: well(g) and not g.alerts, 150)

    await switch(cut, cut_off=True, handshake_timeout=0.5)
    seen = await found(lab, "a one-way partition", lambda g: failing(g, "its log says"))
    assert seen.canary is not None
    assert seen.canary.note.startswith(f"{cut.id}: decode: HTTP 500")
    assert {p.verdict for p in seen.canary.pairs if p.decode != cut.id} <= {"ok", "slow"}
    assert {m.state for m in seen.members} == {"ready"}
    await switch(cut, cut_off=False)
    await lab.until("chat", well, 150)

    await switch(first, fail="500")
    seen = await found(lab, "an idle prefill that answers 500", lambda g: failing(g, "HTTP 500"))
    assert seen.canary is not None
    assert seen.canary.note.startswith(f"{first.id}: prefill: HTTP 500")
    await switch(first, fail="")
    await lab.until("chat", well, 150)

    await switch(first, corrupt_kv=True)
    await found(lab, "wrong KV", lambda g: failing(g, "the answers differ"))
    await switch(first, corrupt_kv=False)
    await lab.until("chat", well, 150)
    history = await lab.asked(lambda c: c.events("chat"))
    assert {"canary", "canary_failed", "alert", "alert_over"} <= {e.kind for e in history}


async def test_an_idle_member_that_hangs_or_dies_is_an_alert_and_calls_the_hook(lab: Lab) -> None:
    hook, told = lab.root / "hook", lab.root / "told"
    hook.write_text(f"#!/bin/sh\ncat >> {told}; echo >> {told}\n")
    hook.chmod(0o755)
    lab.env |= PACE | {"PDTUI_ALERT_HOOK": str(hook)}
    await lab.add_hosts()
    await lab.asked(lambda c: c.apply(deployment(lab.model)))
    formed = await lab.until("chat", serving(1, 1))
    (decode,) = members(formed, "decode")
    os.kill(decode.pid, signal.SIGSTOP)
    try:
        await found(
            lab, "an idle member that hangs", lambda g: ("member_dead", decode.id) in kinds(g)
        )
    finally:
        os.kill(decode.pid, signal.SIGCONT)
    await lab.until("chat", lambda g: serving(1, 1)(g) and not g.alerts)
    os.kill(decode.pid, signal.SIGKILL)
    await found(lab, "a dead idle member", lambda g: ("member_dead", decode.id) in kinds(g))
    await lab.until("chat", lambda g: serving(1, 1)(g) and not g.alerts)
    assert await lab.asked(lambda c: c.alerts()) == ()
    async with asyncio.timeout(30):
        while told.read_text().count("\n") < 4 if told.exists() else True:
            await asyncio.sleep(0.05)
    rows = [json.loads(line) for line in told.read_text().splitlines()]
    assert [r["what"] for r in rows] == ["raised", "over"] * 2
    assert {(r["kind"], r["instance"]) for r in rows} == {("member_dead", decode.id)}


@pytest.mark.parametrize(
    ("mode", "engine", "parameters"),
    [
        ("vllm-mooncake", "vllm", ("--max-model-len", "8192")),
        ("sglang-nixl", "sglang", ("--context-length", "8192")),
    ],
)
async def test_pairs_of_every_protocol_are_tried(
    lab: Lab, mode: str, engine: str, parameters: tuple[str, ...]
) -> None:
    await lab.add_hosts()
    document = deployment(lab.model, mode=mode, engine=engine, parameters=parameters, decode=2)
    await lab.asked(lambda c: c.apply(document))
    await lab.until("chat", serving(1, 2))
    run = await lab.asked(lambda c: c.canary("chat"))
    assert run.ok, run
    assert [p.verdict for p in run.pairs] == ["ok", "ok"]
    assert run.router is not None
    assert run.router.verdict == "ok"
    if engine == "vllm":
        assert all(p.moved is not False for p in run.pairs)


async def test_a_group_whose_members_ask_for_a_key_is_registered_and_tried(lab: Lab) -> None:
    key = {"VLLM_API_KEY": "sk-of-members", "OPENAI_API_KEY": "sk-of-members"}
    await lab.add_hosts()
    await lab.asked(lambda c: c.apply(deployment(lab.model, env={**planted.ENV, **key})))
    await lab.until("chat", serving(1, 1))
    run = await lab.asked(lambda c: c.canary("chat"))
    assert run.ok, run
    assert [p.verdict for p in run.pairs] == ["ok"]
    assert run.router is not None
    assert run.router.verdict == "ok"
