"""The backend is killed after every intent and between every remote effect and its confirmation."""

from __future__ import annotations

from typing import Any

import pytest

from backend.domain.views import GroupView
from tests.live.lab import Lab, deployment, serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

KINDS = {"form", "add", "router", "start", "stop", "peers", "register"}


async def test_it_converges_wherever_it_is_killed(lab: Lab) -> None:
    """One life of a group, with a death at every point of it: no duplicate, no orphan."""
    crashes = lab.root / "crashes"
    crashes.touch()
    lab.env["PDTUI_CRASH_FILE"] = str(crashes)
    await lab.add_hosts()

    formed = await _apply(lab, deployment(lab.model), serving(1, 1))
    _exactly(lab, formed)

    await lab.asked(lambda c: c.scale("chat", {"prefill": 2, "decode": 2}))
    grown = await lab.until("chat", serving(2, 2))
    _exactly(lab, grown)
    kept = {m.id for m in grown.members}
    assert {m.id for m in formed.members} <= kept

    victim = next(m for m in grown.members if m.role == "decode")
    await lab.asked(lambda c: c.delete_instance("chat", victim.id))
    healed = await lab.until(
        "chat", lambda g: serving(2, 2)(g) and victim.id not in {m.id for m in g.members}
    )
    _exactly(lab, healed)

    await lab.asked(lambda c: c.scale("chat", {"prefill": 1, "decode": 1}))
    shrunk = await lab.until("chat", serving(1, 1))
    _exactly(lab, shrunk)

    edited = deployment(lab.model, parameters=("--max-model-len", "4096"))
    changed = await lab.asked(lambda c: c.apply(edited))
    assert changed.config_changed
    await _restart(lab)
    anew = await lab.until("chat", lambda g: serving(1, 1)(g) and not g.config_changed)
    _exactly(lab, anew)
    assert {m.id for m in anew.members}.isdisjoint({m.id for m in shrunk.members})

    await lab.asked(lambda c: c.delete("chat"))
    await lab.until_gone("chat")
    assert lab.living() == []
    assert lab.directories() == set()

    points = crashes.read_text().splitlines()
    assert lab.deaths == len(points)
    seen = {p.split(":")[1] for p in points if p.startswith(("intent:", "effect:"))}
    assert seen >= KINDS
    both = {p.partition(":")[2] for p in points if p.startswith("intent:")}
    assert both & {p.partition(":")[2] for p in points if p.startswith("effect:")}


async def _apply(lab: Lab, document: dict[str, Any], done: Any) -> GroupView:
    await lab.asked(lambda c: c.apply(document))
    return await lab.until("chat", done)


async def _restart(lab: Lab) -> None:
    """Asked once: a backend that dies right after storing it must not be asked again."""
    before = len(await _asked_for(lab))
    while len(await _asked_for(lab)) == before:
        await lab.asked(lambda c: c.restart("chat"))


async def _asked_for(lab: Lab) -> list[str]:
    events = await lab.asked(lambda c: c.events("chat", 5000))
    return [e.message for e in events if e.kind == "restart" and "asked for" in e.message]


def _exactly(lab: Lab, group: GroupView) -> None:
    """What lives on the hosts is what the group lists: each member once, and nothing else."""
    living = [(p.instance, p.generation, p.pid) for p in lab.living()]
    assert sorted(living) == sorted((m.id, m.generation, m.pid) for m in group.members)
    assert lab.directories() == {m.id for m in group.members}
