"""Hosts as rows: can they be reached, what they hold, who holds it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pdtui.i18n import tr
from pdtui.i18n.foreign import said_as
from pdtui.present.cells import Cell, Column, Line, Row, Span, line
from pdtui.present.numbers import NONE, chip, mib, since
from pdtui.present.status import glyphs, host_look

if TYPE_CHECKING:
    from backend.domain.views import AcceleratorView, HostView


def columns() -> tuple[Column, ...]:
    """The list's columns."""
    return (
        Column("name", tr("col.name"), least=8, most=28),
        Column("state", tr("col.state"), least=12, most=16),
        Column("free", tr("col.free"), priority=1, least=8, most=18),
        Column("type", tr("col.type"), priority=3, least=12, most=36, shrink=True),
        Column("ports", tr("col.ports"), priority=4, least=5, most=9),
        Column("runtime", tr("col.runtime"), priority=6, least=7, most=8),
        Column("address", tr("col.address"), priority=5, least=10, most=40, shrink=True),
        Column("seen", tr("col.seen"), priority=7, least=5, most=6, align="right"),
        Column("note", tr("col.note"), priority=2, least=14, most=120, shrink=True, grow=True),
    )


def rows(hosts: Iterable[HostView], now: float) -> list[Row]:
    """One row a host, by name; `now` in epoch seconds."""
    return [
        Row(
            h.name,
            (
                Cell.of(h.name, "strong"),
                Cell((host_look(h).span(),)),
                Cell(free(h), sum(not a.held_by for a in h.accelerators)),
                Cell.of(types(h.accelerators), "text" if h.accelerators else "dim"),
                Cell.of(ports(h)),
                Cell.of(h.runtime, "dim"),
                Cell.of(address(h), "dim"),
                Cell.of(since(now, h.seen), "dim", rank=-h.seen),
                Cell.of(said_as(h.note), "dim" if h.state == "up" else host_look(h).tone),
            ),
        )
        for h in sorted(hosts, key=lambda h: h.name)
    ]


def free(host: HostView) -> Line:
    """One mark an accelerator, held ones filled, then how many are free: `●●○○ 2 free`."""
    total = len(host.accelerators)
    if not total:
        return line(Span(NONE, "dim"))
    held = sum(bool(a.held_by) for a in host.accelerators)
    left = total - held
    tail = Span(" " + tr("host.free", count=left), "text" if left else "dim")
    if total > 8:
        return line(Span(f"{left}/{total}"), tail)
    marks = glyphs()
    return line(Span(marks.full * held, "accent"), Span(marks.empty * left, "off"), tail)


def types(accelerators: tuple[AcceleratorView, ...]) -> str:
    """`4 × L40S 48GiB`, one entry a type."""
    if not accelerators:
        return NONE
    found = Counter((chip(a.type), a.memory_mib) for a in accelerators)
    return ", ".join(
        f"{n} x {kind}" + (f" {mib(memory)}" if memory else "")
        for (kind, memory), n in sorted(found.items())
    )


def ports(host: HostView) -> str:
    """`4/64`: used, of how many."""
    first, last = host.port_range
    return tr("host.ports", used=host.ports_used, total=last - first + 1)


def address(host: HostView) -> str:
    """`user@address:port`, the usual port left out."""
    who = f"{host.user}@" if host.user else ""
    return f"{who}{host.address}" + (f":{host.port}" if host.port != 22 else "")
