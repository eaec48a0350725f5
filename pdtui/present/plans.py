"""What an action would do, in sentences, before it is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pdtui.i18n import tr
from pdtui.i18n.catalog import word
from pdtui.present.cells import Line, Span, Tone, line
from pdtui.present.detail import change
from pdtui.present.groups import ready_requests_lost
from pdtui.present.numbers import NONE, count
from pdtui.present.status import glyphs
from pdtui.state.document import get, without

if TYPE_CHECKING:
    from backend.domain.views import GroupView, HostView, MemberView


def wanted(group: GroupView) -> dict[str, int]:
    """The counts a scale dialog starts from: what is stored, also when it waits for a restart."""
    return {
        role: c.pending if c.pending is not None else c.wanted
        for role, c in group.roles.items()
        if role != "router"
    }


_LEAST = ("pending", "crash_loop", "exited", "unreachable")
_LITTLE = ("starting", "unhealthy", "draining", "stopping")


def leaving(group: GroupView, role: str, fewer: int) -> list[MemberView]:
    """The members a scale-down stops: what serves least first, then the worst paired, then the
    youngest, as `backend.domain.decide.victims` ranks them."""
    going = ("draining", "stopping")
    staying = [m for m in group.members if m.role != "router" and m.state not in going]
    others = Counter(m.host for m in staying if m.role != role)

    def rank(m: MemberView) -> tuple[int, int, float, str]:
        serves = 0 if m.state in _LEAST else 1 if m.state in _LITTLE else 2
        return serves, others[m.host], -m.since, m.id

    return sorted((m for m in staying if m.role == role), key=rank)[: max(0, fewer)]


def on_hosts(members: Sequence[MemberView]) -> list[Line]:
    """One line a member: its id, role and host."""
    return [
        line(
            Span(f"  {m.id}", "text"),
            Span(f"  {word('role', m.role)}{tr('comma')}{tr('plan.on', host=m.host)}", "dim"),
        )
        for m in members
    ]


def scale(
    group: GroupView, counts: Mapping[str, int], hosts: Sequence[HostView] = ()
) -> list[Line]:
    """What setting `counts` starts and stops, and on which host; empty when nothing differs."""
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
            if hosts:
                out.append(_room(group, role, to - now, hosts))
        elif to < now:
            moved = True
            members = count(now - to, tr("member.one"), tr("member.many"))
            text = tr("plan.stop", role=name, now=now, to=to, members=members)
            out.append(line(Span(text, "warn")))
            out += on_hosts(leaving(group, role, now - to))
            if to == 0:
                out.append(line(Span(tr("plan.no_service", role=name), "bad")))
        elif group.roles[role].pending is not None:
            out.append(line(Span(tr("plan.drop_pending", role=name, to=to))))
    if moved:
        out.append(line(Span(tr(f"plan.router.{group.membership}"), "dim")))
    return out


def _room(group: GroupView, role: str, more: int, hosts: Sequence[HostView]) -> Line:
    """What the new members need, and where that is free; which host is chosen at the start."""
    width = max((len(m.accelerators) for m in group.members if m.role == role), default=0)
    kinds = {m.accelerator_type for m in group.members if m.accelerator_type}
    free = free_on(hosts, kinds)
    if not width:
        return line(Span(tr("plan.free", free=free), "dim"))
    return line(Span(tr("plan.needs", count=more * width, free=free), "dim"))


def apply(
    document: Mapping[str, Any],
    before: Mapping[str, Any] | None,
    group: GroupView | None,
    hosts: Sequence[HostView],
) -> list[Line]:
    """What saving a document starts or leaves alone, and the lines by which it differs.

    `before` is the stored document, None for a new deployment.
    """
    out: list[Line] = []
    if before is None:
        out += _created(document, hosts)
    elif group is None or group.status == "Stopped" or get(document, "spec.paused"):
        out.append(line(tr("plan.apply.stopped")))
    else:
        same = counts_of(document).keys() == group.roles.keys() - {"router"}
        only_counts = _launch(document) == _launch(before)
        if not only_counts:
            out.append(line(Span(tr("plan.apply.edit"), "warn")))
        if same and counts_of(document) != counts_of(before):
            out += scale(group, counts_of(document), hosts) if only_counts else []
            if not only_counts:
                out.append(line(Span(tr("plan.apply.counts"), "warn")))
    found: list[str] = []
    if before is not None:
        from backend.domain.secrets import masked
        from pdtui.state.yamltext import diff  # YAML is not needed for the first frame

        found = diff(masked(before), masked(document))
    if found:
        out += [(), line(Span(tr("plan.apply.diff"), "accent"))]
        out += [diff_line(text) for text in found]
    return out


def diff_line(text: str) -> Line:
    """One line of a comparison, toned by its mark."""
    tone: Tone = "ok" if text[:1] == "+" else "bad" if text[:1] == "-" else "dim"
    return line(Span("  " + (glyphs().more if text == "@" else text), tone))


def counts_of(document: Mapping[str, Any]) -> dict[str, int]:
    """The members a document wants, by role; what is no number counts as one."""
    if get(document, "spec.disaggregation") is None:
        wanted = {"replica": get(document, "spec.replicas")}
    else:
        wanted = {r: get(document, f"spec.roles.{r}.replicas") for r in ("prefill", "decode")}
    return {r: n if isinstance(n, int) else 1 for r, n in wanted.items()}


def _launch(document: Mapping[str, Any]) -> Any:
    """The document without its counts: what decides how an instance is launched."""
    for path in ("spec.replicas", "spec.roles.prefill.replicas", "spec.roles.decode.replicas"):
        document = without(document, path)
    return document.get("spec")


def _created(document: Mapping[str, Any], hosts: Sequence[HostView]) -> list[Line]:
    counts = counts_of(document)
    roles = tr("comma").join(f"{word('role', r)} {n}" for r, n in counts.items())
    out = [line(tr("plan.apply.new", roles=roles))]
    default = get(document, "spec.accelerators")
    width = {r: get(document, f"spec.roles.{r}.accelerators") for r in counts}
    each = {r: w if isinstance(w, int) else default for r, w in width.items()}
    needed = sum(counts[r] * (w if isinstance(w, int) else 1) for r, w in each.items())
    out.append(line(Span(tr("plan.apply.needs", count=needed, free=free_on(hosts)), "dim")))
    if "prefill" in counts:
        out.append(line(Span(tr("plan.apply.router"), "dim")))
    return out


def free_on(hosts: Sequence[HostView], kinds: Collection[str] = ()) -> str:
    """The hosts that have free accelerators (of the `kinds` a group has already), with how many:
    `gpu-1 (2), gpu-3 (4)`."""
    free = {
        h.name: sum(not a.held_by and (not kinds or a.type in kinds) for a in h.accelerators)
        for h in hosts
        if h.state == "up"
    }
    return ", ".join(f"{name} ({n})" for name, n in free.items() if n) or NONE


def restart(group: GroupView) -> list[Line]:
    """What a whole-group restart interrupts, and what it brings."""
    out: list[Line] = [line(tr("plan.restart.all"))]
    out += on_hosts(ready_requests_lost(group))
    if group.status == "Running":
        out.append(line(Span(tr("plan.restart.lost"), "warn")))
    if group.changes:
        out.append(line(Span(tr("plan.restart.applies"), "accent")))
        out += [change(c) for c in group.changes]
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
    out += on_hosts(alive)
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
