"""Views as plain lines, for people and for pipes."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from backend.domain.views import EventView, GroupView, HostView

Rows = tuple[Sequence[str], list[Sequence[str]]]


def group_rows(groups: Sequence[GroupView]) -> Rows:
    """One line per group."""
    header = ("NAME", "MODE", "STATUS", "RATIO", "MEMBERS", "ENDPOINT", "MARKS")
    rows: list[Sequence[str]] = []
    for g in groups:
        now = f" (currently {g.currently})" if g.currently else ""
        ready = sum(r.ready for r in g.roles.values())
        wanted = sum(r.wanted for r in g.roles.values())
        rows.append(
            (
                g.name,
                g.mode or "-",
                g.status,
                f"{g.ratio}{now}" or "-",
                f"{ready}/{wanted}",
                g.endpoint.url if g.endpoint else "-",
                ",".join(m.id for m in g.marks) or "-",
            )
        )
    return header, rows


def group_lines(g: GroupView) -> list[str]:
    """One group with its members, marks and endpoint."""
    now = f" (currently {g.currently})" if g.currently else ""
    lines = [f"{g.name}  {g.status}" + (f"  Ratio {g.ratio}{now}" if g.ratio else "")]
    if g.phase:
        lines.append(f"  restart: {g.phase.name} {g.phase.done}/{g.phase.total}")
    if g.config_changed:
        lines.append("  Config changed:")
        lines += [f"    {c}" for c in g.changes]
    lines += [f"  {m.level}: {m.text}" for m in g.marks if m.id != "config_changed"]
    if g.endpoint:
        lines += [f"  endpoint {g.endpoint.url}  model {g.endpoint.model}"]
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


def host_rows(hosts: Sequence[HostView]) -> Rows:
    """One line per host."""
    header = ("NAME", "ADDRESS", "STATE", "ACCELERATORS", "FREE", "PORTS", "NOTE")
    rows: list[Sequence[str]] = []
    for h in hosts:
        kinds = sorted({a.type for a in h.accelerators})
        cards = f"{len(h.accelerators)} {'/'.join(kinds)}" if kinds else "-"
        free = str(sum(1 for a in h.accelerators if not a.held_by)) if kinds else "-"
        size = h.port_range[1] - h.port_range[0] + 1
        where = f"{h.address}:{h.port}"
        rows.append((h.name, where, h.state, cards, free, f"{h.ports_used}/{size}", h.note or "-"))
    return header, rows


def event_rows(events: Sequence[EventView]) -> Rows:
    """One line per event."""
    header = ("TIME", "LEVEL", "GROUP", "BY", "WHAT")
    rows: list[Sequence[str]] = []
    for e in events:
        when = datetime.datetime.fromtimestamp(e.at, tz=datetime.UTC).astimezone()
        rows.append((f"{when:%m-%d %H:%M:%S}", e.level, e.group or "-", e.actor, e.message))
    return header, rows
