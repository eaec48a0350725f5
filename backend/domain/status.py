"""Group status, ratio and marks: always derived from what is, never stored."""

from __future__ import annotations

from collections.abc import Sequence

from backend.domain.decide import Picture, peers_wanted, roles_of, tearing_down, wanted_counts
from backend.domain.group import Group, Instance
from backend.domain.views import GroupStatus, Mark, PhaseView, RoleCount

LIVING = ("starting", "ready", "unhealthy")


def status(p: Picture) -> GroupStatus:
    """Stopped, Pending, Partially ready or Running.

    Running: every role has a ready member and the endpoint is registered (a plain deployment has
    none to register). Source: the user's document, "the group's status".
    """
    if p.group.document.spec.paused and not p.instances:
        return "Stopped"
    if not any(_lives(i) for i in p.members):
        return "Pending"
    served = all(p.ready(role) for role in roles_of(p.group))
    registered = p.membership == "none" or p.group.endpoint is not None
    return "Running" if served and registered else "Partially ready"


def _lives(instance: Instance) -> bool:
    if instance.state in ("draining", "stopping"):
        return instance.process is not None and instance.process.state == "running"
    return instance.state in LIVING


def restart_done(p: Picture) -> bool:
    """Whether a restart has brought back all that is wanted."""
    restart = p.group.restart
    if restart is None or restart.step != "start":
        return False
    return status(p) == "Running" and not ratio(p)[1]


def counts(p: Picture) -> dict[str, RoleCount]:
    """Wanted, ready and present members by role; a stored count that waits shows as pending."""
    saved = wanted_counts(p.group)
    out = {}
    for role in roles_of(p.group):
        applied = p.group.applied.get(role, saved.get(role, 0))
        later = saved.get(role)
        waits = p.group.formed is not None and later is not None and later > applied
        out[role] = RoleCount(
            wanted=applied,
            ready=len(p.ready(role)),
            present=len(p.of(role)),
            pending=later if waits else None,
        )
    return out


def ratio(p: Picture) -> tuple[str, str]:
    """`("2:1", "1:1")`: the wanted ratio, and the present one while it falls short.

    The second part is empty when the ratio is met, or while no member is ready at all.
    """
    if p.membership == "none":
        return "", ""
    c = counts(p)
    wanted = ":".join(str(r.wanted) for r in c.values())
    ready = ":".join(str(r.ready) for r in c.values())
    short = any(r.ready < r.wanted for r in c.values()) and any(r.ready for r in c.values())
    return wanted, ready if short else ""


def marks(p: Picture) -> tuple[Mark, ...]:
    """What is shown beside the status."""
    g, out = p.group, []
    if g.stale:
        out.append(
            Mark(
                id="config_changed",
                text="The saved configuration is not what runs. Restart applies it; until then "
                "no role scales up.",
            )
        )
    if g.unverified and g.formed is not None:
        out.append(Mark(id="unverified", text=" ".join(g.unverified), level="info"))
    if g.placement_note and _something_to_place(p):
        out.append(Mark(id="placement", text=g.placement_note))
    out += _member_marks(p.instances)
    out += _blocked(g, p.instances)
    router = p.router
    if p.membership != "none" and router is not None and router.state == "ready":
        if g.endpoint is None:
            text = router.note or "waiting for the router's registry and one answered request"
            out.append(Mark(id="registration", text=text, level="info"))
        elif router.note:
            out.append(Mark(id="membership", text=router.note))
        elif p.membership == "manual" and (text := _by_hand(p, router)):
            out.append(Mark(id="membership", text=text))
    return tuple(out)


def _something_to_place(p: Picture) -> bool:
    """Whether a refusal to place still keeps something from being there."""
    if tearing_down(p.group):
        return False
    if p.group.formed is None:
        return True
    if p.membership != "none" and p.router is None:
        return True
    short = any(len(p.of(r)) < p.group.applied.get(r, 0) for r in roles_of(p.group))
    return short and not p.group.stale


def _blocked(g: Group, instances: Sequence[Instance]) -> list[Mark]:
    """What holds up a restart, a deletion or a pause: hosts that have not confirmed an end."""
    stuck = sorted({i.host for i in instances if i.state == "stopping" and i.note})
    if not stuck or not tearing_down(g):
        return []
    what = "deletion" if g.deleting else "pause" if g.document.spec.paused else "restart"
    text = f"The {what} waits for {', '.join(stuck)} to confirm that its instances ended."
    return [Mark(id="restart_blocked", text=text, level="error")]


def _by_hand(p: Picture, router: Instance) -> str:
    """What the operator has to change at a router whose members are kept up by hand."""
    if router.snapshot is None:
        return ""
    now = {f"{r.role} {r.url}" for r in peers_wanted(p.instances, router)}
    told = {f"{r.role} {r.url}" for r in router.snapshot}
    parts = [f"add {', '.join(sorted(now - told))}"] if now - told else []
    parts += [f"remove {', '.join(sorted(told - now))}"] if told - now else []
    if not parts:
        return ""
    return f"The router is kept up by hand. Tell it: {'; '.join(parts)}."


def _member_marks(instances: Sequence[Instance]) -> list[Mark]:
    out = []
    lost = sorted({i.host for i in instances if i.state == "unreachable"})
    if lost:
        out.append(
            Mark(
                id="unreachable_host",
                text=f"{', '.join(lost)} does not answer; its instances are left as they are.",
                level="error",
            )
        )
    for instance in instances:
        if instance.state == "crash_loop":
            text = f"{instance.id} ended {instance.failures} times without serving: {instance.note}"
            out.append(Mark(id="crash_loop", text=text, level="error"))
    leaving = [i for i in instances if i.state == "draining"]
    if leaving:
        names = ", ".join(i.id for i in leaving)
        out.append(Mark(id="draining", text=f"finishing what they hold: {names}", level="info"))
    return out


def phase(group: Group, instances: Sequence[Instance]) -> PhaseView | None:
    """Where a restart stands, or None."""
    restart = group.restart
    if restart is None:
        return None
    blocked = next((i.host for i in instances if i.note and i.state == "stopping"), "")
    if restart.step == "stop router":
        return PhaseView(name="stop router", done=0, total=1, blocked_by=blocked)
    if restart.step == "stop members":
        left = len(instances)
        done = max(restart.total - left, 0)
        return PhaseView(name="stop members", done=done, total=restart.total, blocked_by=blocked)
    wanted = sum(wanted_counts(group).values())
    ready = sum(1 for i in instances if i.role != "router" and i.state == "ready" and not i.leaving)
    return PhaseView(name="start", done=ready, total=wanted)
