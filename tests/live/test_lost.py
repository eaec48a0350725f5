"""Ways past a host that stays away, a to-do that is done, and a mode that left the catalogue."""

from __future__ import annotations

import shutil

import pytest

from backend.domain.errors import Conflict
from backend.domain.views import GroupView
from tests.live.lab import Lab, deployment, serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]


def ids(group: GroupView) -> set[str]:
    return {m.id for m in group.members}


async def lose(lab: Lab, host: str) -> None:
    await lab.order(host, faults={"refuse": True})
    await lab.order(host, drop=True)


async def rest(lab: Lab, group: str) -> None:
    """Until what lives on the hosts is what the group lists, and nothing else."""

    def only_listed(g: GroupView) -> bool:
        listed = sorted((m.id, m.generation, m.pid) for m in g.members)
        return listed == sorted((p.instance, p.generation, p.pid) for p in lab.living())

    await lab.until(group, only_listed)


async def test_what_is_on_a_lost_host_moves_only_when_a_person_says_so(lab: Lab) -> None:
    """The router and a member wait for their host, with the way past it said; fenced, they are
    placed elsewhere; what lived on is killed when the host is back."""
    await lab.add_hosts()
    await lab.asked(lambda c: c.apply(deployment(lab.model)))
    formed = await lab.until("chat", serving(1, 1))
    (router,) = (m for m in formed.members if m.role == "router")
    lost = {m.id for m in formed.members if m.host == router.host}

    await lose(lab, router.host)
    waits = await lab.until(
        "chat", lambda g: all(m.state == "unreachable" for m in g.members if m.id in lost)
    )
    (mark,) = (m for m in waits.marks if m.id == "unreachable_host")
    assert f"The router {router.id} may still answer there" in mark.text
    assert f"pdtui hosts fence {router.host}" in mark.text
    assert ids(waits) == ids(formed)

    await lab.asked(lambda c: c.fence_host(router.host))
    moved = await lab.until("chat", serving(1, 1))
    assert not ids(moved) & lost
    assert router.host not in {m.host for m in moved.members}
    events = await lab.asked(lambda c: c.events("chat"))
    assert {e.instance for e in events if e.kind == "fenced"} == lost
    assert any(e.kind == "endpoint_moved" for e in events)

    await lab.order(router.host, faults={"refuse": False})
    await rest(lab, "chat")
    with pytest.raises(Conflict, match=f"host {router.host} answers"):
        await lab.asked(lambda c: c.fence_host(router.host))


async def test_nobody_gets_the_ports_that_a_fenced_router_may_still_send_to(lab: Lab) -> None:
    """It lives on a host that is cut off, and lists addresses of the earlier configuration."""
    await lab.add_hosts()
    await lab.asked(lambda c: c.apply(deployment(lab.model)))
    formed = await lab.until("chat", serving(1, 1))
    (router,) = (m for m in formed.members if m.role == "router")
    known = {(m.host, m.port) for m in formed.members if m.role != "router"}
    await lose(lab, router.host)
    await lab.until("chat", lambda g: any(m.state == "unreachable" for m in g.members))
    await lab.asked(
        lambda c: c.apply(deployment(lab.model, prefill=2, parameters=["--max-model-len", "4096"]))
    )
    await lab.asked(lambda c: c.restart("chat", force=True))
    anew = await lab.until("chat", serving(2, 1))
    assert not {(m.host, m.port) for m in anew.members} & known
    assert any(p.instance == router.id for p in lab.living())
    await lab.order(router.host, faults={"refuse": False})
    await rest(lab, "chat")


async def test_force_passes_a_lost_host_for_one_instance_a_pause_and_a_deletion(lab: Lab) -> None:
    await lab.add_hosts()
    await lab.asked(lambda c: c.apply(deployment(lab.model)))
    formed = await lab.until("chat", serving(1, 1))
    victim = next(m for m in formed.members if m.role == "decode")
    await lose(lab, victim.host)
    await lab.until(
        "chat", lambda g: any(m.id == victim.id and m.state == "unreachable" for m in g.members)
    )
    meant = await lab.asked(lambda c: c.delete_instance("chat", victim.id, dry_run=True))
    assert "with force it is given up now" in meant.warnings[0]
    beside = {m.id for m in formed.members if m.host == victim.host}
    for key in beside:
        await lab.asked(lambda c, k=key: c.delete_instance("chat", k, force=True))
    moved = await lab.until("chat", serving(1, 1))
    assert not ids(moved) & beside

    second = next(m for m in moved.members if m.role == "prefill").host
    await lose(lab, second)
    await lab.asked(lambda c: c.pause("chat", True))
    await lab.until("chat", lambda g: any(m.id == "restart_blocked" for m in g.marks))
    await lab.asked(lambda c: c.pause("chat", True, force=True))
    off = await lab.until("chat", lambda g: not g.members)
    assert off.status == "Stopped"

    await lab.order(victim.host, faults={"refuse": False})
    await lab.order(second, faults={"refuse": False})
    await lab.asked(lambda c: c.pause("chat", False))
    on = await lab.until("chat", serving(1, 1))
    third = next(m for m in on.members if m.role == "router").host
    await lose(lab, third)
    await lab.asked(lambda c: c.delete("chat"))
    await lab.until(
        "chat", lambda g: any(m.id == "restart_blocked" and third in m.text for m in g.marks)
    )
    await lab.asked(lambda c: c.delete("chat", force=True))
    await lab.until_gone("chat")
    await lab.asked(lambda c: c.delete_host(third, force=True))
    assert third not in {h.name for h in await lab.asked(lambda c: c.hosts())}


async def test_resumed_before_the_pause_has_ended_all_forms_anew(lab: Lab) -> None:
    """Engines that take their time to stop: none of them goes on beside the new ones."""
    await lab.add_hosts()
    for host in lab.inventory:
        await lab.order(host["name"], engine={"slow_stop": 3.0})
    await lab.asked(lambda c: c.apply(deployment(lab.model)))
    formed = await lab.until("chat", serving(1, 1))
    await lab.asked(lambda c: c.pause("chat", True))
    await lab.until("chat", lambda g: any(m.state == "stopping" for m in g.members))
    await lab.asked(lambda c: c.apply(deployment(lab.model, parameters=["--max-model-len", "4096"],
                                                 paused=True)))  # fmt: skip
    resumed = await lab.asked(lambda c: c.pause("chat", False))
    assert resumed.phase is not None
    back = await lab.until("chat", lambda g: serving(1, 1)(g) and not g.config_changed)
    assert not ids(back) & ids(formed)
    await rest(lab, "chat")


async def test_a_group_whose_mode_left_the_catalogue_runs_on(lab: Lab) -> None:
    """Its recipe is pinned: it is scaled and paused; only what could not come back is refused."""
    file = lab.root / "config" / "pd-modes.yaml"
    file.parent.mkdir()
    lab.env["PDTUI_CONFIG_DIR"] = str(file.parent)
    file.write_text("version: 1\nmodes:\n  ours:\n    extends: vllm-nixl\n    title: Ours\n")
    await lab.add_hosts()
    await lab.asked(lambda c: c.apply(deployment(lab.model, mode="ours")))
    await lab.until("chat", serving(1, 1))
    await lab.stop_backend()
    shutil.move(file, lab.root / "away.yaml")

    there = await lab.until("chat", serving(1, 1))
    (mark,) = (m for m in there.marks if m.id == "mode_gone")
    assert "The mode ours is not in the catalogue any more" in mark.text
    await lab.asked(lambda c: c.scale("chat", {"prefill": 2}))
    await lab.until("chat", serving(2, 1))
    with pytest.raises(Conflict, match="could not form it again"):
        await lab.asked(lambda c: c.restart("chat"))
    assert serving(2, 1)(await lab.asked(lambda c: c.group("chat")))
