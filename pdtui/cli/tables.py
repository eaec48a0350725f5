"""Views as plain lines, for people and for pipes."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence

from backend.domain.views import EventView, GroupView, HostView, Mark
from pdtui.cli.output import wide
from pdtui.i18n import tr
from pdtui.i18n.catalog import word
from pdtui.present.telling import of_event, of_mark

Rows = tuple[Sequence[str], list[Sequence[str]]]


def group_rows(groups: Sequence[GroupView]) -> Rows:
    """One line per group."""
    header: tuple[str, ...] = (
        "NAME", "MODE", "STATUS", "RATIO", "MEMBERS", "ENDPOINT", "MARKS",
    )  # fmt: skip
    if wide():
        header = (*header, "ENGINE", "MODEL", "ROUTER UPDATE", "VERSION", "SINCE", "LABELS")
    rows: list[Sequence[str]] = []
    for g in groups:
        now = f" (currently {g.currently})" if g.currently else ""
        ready = sum(r.ready for r in g.roles.values())
        wanted = sum(r.wanted for r in g.roles.values())
        more = (
            (g.engine, g.model, g.membership, str(g.version), when(g.since), labels(g.labels))
            if wide()
            else ()
        )
        rows.append(
            (
                g.name,
                g.mode or "-",
                g.status,
                f"{g.ratio}{now}" or "-",
                f"{ready}/{wanted}",
                g.endpoint.url if g.endpoint else "-",
                ",".join(m.id for m in g.marks) or "-",
                *more,
            )
        )
    return header, rows


def group_lines(g: GroupView) -> list[str]:
    """One group with its members, marks and endpoint."""
    lines = [f"{g.name}  {word('status', g.status)}"]
    if g.ratio:
        lines[0] += f"  {tr('cli.group.ratio', ratio=g.ratio)}"
    if g.currently:
        lines[0] += f" {tr('cli.group.currently', ratio=g.currently)}"
    if g.phase:
        phase = word("phase", g.phase.name)
        told = tr("cli.group.restart", phase=phase, done=g.phase.done, total=g.phase.total)
        lines.append(f"  {told}")
    if g.config_changed:
        lines.append(f"  {tr('cli.group.changed')}")
        lines += [f"    {c}" for c in g.changes]
    lines += [f"  {_mark(m)}" for m in g.marks if m.id != "config_changed"]
    if g.endpoint:
        lines += [f"  {tr('cli.group.endpoint', url=g.endpoint.url, model=g.endpoint.model)}"]
    for m in g.members:
        cards = ",".join(map(str, m.accelerators)) or "-"
        bands = " ".join(f"{b.name}={b.base}" for b in m.bands)
        if m.net_device:
            bands = f"kv over {m.net_device} {bands}"
        parts = (
            f"  {m.role:<8} {m.id:<28} {m.state:<11} {m.host}:{m.port} cards {cards} "
            f"gen {m.generation} pid {m.pid or '-'} {bands} {m.note}"
        )
        lines.append(parts.rstrip())
    return lines


def _mark(mark: Mark) -> str:
    """What stands beside the status, after its level and what it is about."""
    about = word("mark", mark.id)
    text = of_mark(mark).removeprefix(f"{about}: ")
    return f"{word('level', mark.level)}{tr('colon')}{about}{tr('colon')}{text}"


def host_rows(hosts: Sequence[HostView]) -> Rows:
    """One line per host."""
    header: tuple[str, ...] = (
        "NAME", "ADDRESS", "STATE", "ACCELERATORS", "FREE", "PORTS", "NOTE",
    )  # fmt: skip
    if wide():
        header = (*header, "USER", "RUNTIME", "PORT RANGE", "HELD BY", "SEEN", "LABELS")
    rows: list[Sequence[str]] = []
    for h in hosts:
        kinds = sorted({a.type for a in h.accelerators})
        cards = f"{len(h.accelerators)} {'/'.join(kinds)}" if kinds else "-"
        free = str(sum(1 for a in h.accelerators if not a.held_by)) if kinds else "-"
        size = h.port_range[1] - h.port_range[0] + 1
        where = f"{h.address}:{h.port}"
        row: tuple[str, ...] = (
            h.name,
            where,
            h.state,
            cards,
            free,
            f"{h.ports_used}/{size}",
            h.note or "-",
        )
        if wide():
            held = sorted({a.held_by for a in h.accelerators if a.held_by})
            ports = "-".join(map(str, h.port_range))
            holders = ", ".join(held) or "-"
            row += (h.user or "-", h.runtime, ports, holders, when(h.seen), labels(h.labels))
        rows.append(row)
    return header, rows


def event_rows(events: Sequence[EventView]) -> Rows:
    """One line per event."""
    header: tuple[str, ...] = ("TIME", "LEVEL", "GROUP", "BY", "WHAT")
    if wide():
        header = ("TIME", "LEVEL", "GROUP", "BY", "KIND", "INSTANCE", "HOST", "WHAT")
    rows: list[Sequence[str]] = []
    for e in events:
        row = (when(e.at), e.level, e.group or "-", e.actor, of_event(e))
        rows.append(
            (*row[:-1], e.kind, e.instance or "-", e.host or "-", row[-1]) if wide() else row
        )
    return header, rows


def when(at: float) -> str:
    """An epoch time as the local clock says it; a dash where there is none."""
    if not at:
        return "-"
    return f"{datetime.datetime.fromtimestamp(at, tz=datetime.UTC).astimezone():%m-%d %H:%M:%S}"


def labels(pairs: Mapping[str, str]) -> str:
    """Labels as they are selected by."""
    return ",".join(f"{k}={v}" for k, v in sorted(pairs.items())) or "-"
