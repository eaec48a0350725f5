"""What an action would do, in sentences, before it is done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pdtui.i18n import tr
from pdtui.i18n.catalog import word
from pdtui.present.cells import Line, Span, line
from pdtui.present.groups import ready_requests_lost
from pdtui.present.numbers import count

if TYPE_CHECKING:
    from backend.domain.views import GroupView


def wanted(group: GroupView) -> dict[str, int]:
    """The counts a scale dialog starts from: what is stored, also when it waits for a restart."""
    return {
        role: c.pending if c.pending is not None else c.wanted
        for role, c in group.roles.items()
        if role != "router"
    }


def scale(group: GroupView, counts: Mapping[str, int]) -> list[Line]:
    """What setting `counts` starts and stops; empty when nothing differs."""
    out: list[Line] = []
    moved = False
    for role, to in counts.items():
        now = group.roles[role].wanted
        name = word("role", role)
        if to > now and group.config_changed:
            out.append(line(Span(tr("plan.pending", role=name, now=now, to=to), "warn")))
        elif to > now:
            moved = True
            members = count(to - now, tr("member.one"), tr("member.many"))
            out.append(line(Span(tr("plan.start", role=name, now=now, to=to, members=members))))
        elif to < now:
            moved = True
            members = count(now - to, tr("member.one"), tr("member.many"))
            text = tr("plan.stop", role=name, now=now, to=to, members=members)
            out.append(line(Span(text, "warn")))
            if to == 0:
                out.append(line(Span(tr("plan.no_service", role=name), "bad")))
        elif group.roles[role].pending is not None:
            out.append(line(Span(tr("plan.drop_pending", role=name, to=to))))
    if moved:
        out.append(line(Span(tr(f"plan.router.{group.membership}"), "dim")))
    return out


def restart(group: GroupView) -> list[Line]:
    """What a whole-group restart interrupts, and what it brings."""
    out: list[Line] = [line(tr("plan.restart.all"))]
    out += [
        line(
            Span(f"  {m.id}", "text"),
            Span(f"  {word('role', m.role)}, {tr('plan.on', host=m.host)}", "dim"),
        )
        for m in ready_requests_lost(group)
    ]
    if group.status == "Running":
        out.append(line(Span(tr("plan.restart.lost"), "warn")))
    if group.changes:
        out.append(line(Span(tr("plan.restart.applies"), "accent")))
        out += [line(Span(f"  {c}")) for c in group.changes]
    out += [
        line(Span(tr("plan.restart.counts", role=word("role", r), count=c.pending), "accent"))
        for r, c in group.roles.items()
        if c.pending is not None and c.pending != c.wanted
    ]
    return out


def delete(group: GroupView) -> list[Line]:
    """What deleting a group stops and forgets."""
    alive = ready_requests_lost(group)
    out = [
        line(
            tr("plan.delete.group", members=count(len(alive), tr("member.one"), tr("member.many")))
        )
    ]
    if group.endpoint:
        out.append(line(Span(tr("plan.delete.endpoint", url=group.endpoint.url), "warn")))
    return out


def delete_member(group: GroupView, member: str) -> list[Line]:
    """What deleting one member does, and what the router needs afterwards."""
    out = [line(tr("plan.delete.member", member=member))]
    if group.config_changed:
        out.append(line(Span(tr("plan.delete.member.stale"), "warn")))
    key = f"plan.delete.router.{group.membership}"
    tone = "dim" if group.membership in ("dynamic", "none") else "warn"
    out.append(line(Span(tr(key), tone)))  # type: ignore[arg-type]
    return out
