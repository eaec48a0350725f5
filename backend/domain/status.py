"""Group status, ratio and marks: always derived from what is, never stored."""

from __future__ import annotations

from collections.abc import Sequence

from backend.domain.decide import Picture, roles_of, tearing_down, wanted_counts
from backend.domain.group import Group, Instance
from backend.domain.peers import peers_wanted
from backend.domain.telling import Said, all_told, plainly, said
from backend.domain.views import GroupStatus, Level, Mark, PhaseView, RoleCount

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
        out.append(mark("config_changed", said("mark.config_changed")))
    if p.mode_gone:
        out.append(mark("mode_gone", said("mark.mode_gone", mode=p.mode_gone)))
    if g.unverified and g.formed is not None:
        out.append(mark("unverified", *map(plainly, g.unverified), level="info"))
    if g.placement_note and _something_to_place(p):
        out.append(mark("placement", plainly(g.placement_note)))
    out += _member_marks(p.instances)
    out += _blocked(g, p.instances)
    router = p.router
    if p.membership != "none" and router is not None and router.state == "ready":
        if g.endpoint is None:
            why = plainly(router.note) if router.note else said("mark.registration")
            out.append(mark("registration", why, level="info"))
        elif router.note:
            out.append(mark("membership", plainly(router.note)))
        elif p.membership == "manual" and (todo := _by_hand(p, router)) is not None:
            out.append(mark("membership", said("mark.by_hand", todo=todo)))
    return tuple(out)


def mark(key: str, *lines: Said, level: Level = "warning") -> Mark:
    """A mark from what it tells."""
    return Mark.model_validate(
        {"id": key, "text": all_told(lines, "en"), "level": level, "said": lines}
    )


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
    return [mark("restart_blocked", said(f"mark.blocked.{what}", hosts=stuck), level="error")]


def _by_hand(p: Picture, router: Instance) -> Said | None:
    """What the operator has to change at a router whose members are kept up by hand."""
    if router.snapshot is None:
        return None
    now = {f"{r.role} {r.url}" for r in peers_wanted(p.instances, router)}
    known = {f"{r.role} {r.url}" for r in router.snapshot}
    added, removed = sorted(now - known), sorted(known - now)
    if added and removed:
        return said("mark.by_hand.both", added=added, removed=removed)
    if added:
        return said("mark.by_hand.add", peers=added)
    return said("mark.by_hand.remove", peers=removed) if removed else None


def _member_marks(instances: Sequence[Instance]) -> list[Mark]:
    out = []
    lost = sorted({i.host for i in instances if i.state == "unreachable"})
    if lost:
        out.append(mark("unreachable_host", *_lost(instances, lost), level="error"))
    for instance in instances:
        if instance.state == "crash_loop":
            line = said(
                "mark.crash_loop",
                instance=instance.id,
                failures=instance.failures,
                note=instance.note,
            )
            out.append(mark("crash_loop", line, level="error"))
    leaving = [i for i in instances if i.state == "draining"]
    if leaving:
        names = [i.id for i in leaving]
        out.append(mark("draining", said("mark.draining", instances=names), level="info"))
    return out


def _lost(instances: Sequence[Instance], hosts: Sequence[str]) -> list[Said]:
    """Why what is on a silent host is left there, and the way past it."""
    lines = [said("mark.lost", hosts=hosts)]
    router = next((i for i in instances if i.role == "router" and i.state == "unreachable"), None)
    if router is not None:
        lines.append(said("mark.lost.router", router=router.id))
    return [*lines, said("mark.lost.way", host=hosts[0])]


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
