"""Group status, ratio and marks: always derived from what is, never stored."""

from __future__ import annotations

from collections.abc import Sequence

from backend.domain.decide import Picture, roles_of, wanted_counts
from backend.domain.group import Group, Instance
from backend.domain.views import GroupStatus, Mark, PhaseView, RoleCount

LIVING = ("starting", "ready", "unhealthy", "draining", "stopping")


def status(p: Picture) -> GroupStatus:
    """Stopped, Pending, Partially ready or Running.

    Running: every role has a ready member and the endpoint is registered (a plain deployment has
    none to register). Source: the user's document, "the group's status".
    """
    if p.group.document.spec.paused and not p.instances:
        return "Stopped"
    if not any(i.state in LIVING for i in p.members):
        return "Pending"
    served = all(p.ready(role) for role in roles_of(p.group))
    registered = p.membership == "none" or p.group.endpoint is not None
    return "Running" if served and registered else "Partially ready"


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
    if g.placement_note:
        out.append(Mark(id="placement", text=g.placement_note))
    out += _member_marks(p.instances)
    if g.restart is not None:
        stuck = sorted({i.host for i in p.instances if i.state == "stopping" and i.note})
        if stuck:
            text = f"The restart waits for {', '.join(stuck)} to confirm that its instances ended."
            out.append(Mark(id="restart_blocked", text=text, level="error"))
    router = p.router
    if p.membership not in ("none",) and router is not None and router.state == "ready":
        if g.endpoint is None:
            text = router.note or "waiting for the router's registry and one answered request"
            out.append(Mark(id="registration", text=text, level="info"))
        elif router.note:
            out.append(Mark(id="membership", text=router.note))
    return tuple(out)


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
    if restart.step == "stop router":
        return PhaseView(name="stop router", done=0, total=1)
    if restart.step == "stop members":
        left = len(instances)
        blocked = next((i.host for i in instances if i.note and i.state == "stopping"), "")
        done = max(restart.total - left, 0)
        return PhaseView(name="stop members", done=done, total=restart.total, blocked_by=blocked)
    wanted = sum(wanted_counts(group).values())
    ready = sum(1 for i in instances if i.role != "router" and i.state == "ready")
    return PhaseView(name="start", done=ready, total=wanted)
