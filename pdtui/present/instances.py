"""Every instance of every group as a row of one table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pdtui.i18n import tr
from pdtui.i18n.catalog import word
from pdtui.present.cells import Cell, Column, Row
from pdtui.present.members import accelerators, in_router, note, ports
from pdtui.present.numbers import NONE
from pdtui.present.status import MEMBER_ORDER, member_look

if TYPE_CHECKING:
    from backend.domain.views import MemberView


def columns() -> tuple[Column, ...]:
    """The list's columns."""
    return (
        Column("id", tr("col.instance"), least=14, most=44, shrink=True),
        Column("group", tr("col.group"), priority=6, least=8, most=28, shrink=True),
        Column("role", tr("col.role"), priority=5, least=7, most=8),
        Column("state", tr("col.state"), least=11, most=14),
        Column("host", tr("col.host"), least=8, most=24, shrink=True),
        Column("accelerators", tr("col.accelerators"), priority=3, least=5, most=22),
        Column("ports", tr("col.ports"), priority=8, least=5, most=20),
        Column("generation", tr("col.generation"), priority=2, least=3, most=5, align="right"),
        Column("router", tr("col.in_router"), priority=7, least=6, most=7),
        Column("pid", tr("col.pid"), priority=9, least=5, most=8, align="right"),
        Column("age", tr("col.age"), priority=4, least=5, most=6, align="right"),
        Column("note", tr("col.note"), priority=1, least=16, most=120, shrink=True, grow=True),
    )


def row(group: str, member: MemberView, age: str, now: float) -> Row:
    """One instance; `age` is how long it has been in its state, as shown."""
    return Row(
        member.id,
        (
            Cell.of(member.id, "strong"),
            Cell.of(group),
            Cell.of(word("role", member.role), "dim"),
            Cell((member_look(member).span(),), MEMBER_ORDER.index(member.state)),
            Cell.of(member.host),
            Cell.of(accelerators(member)),
            Cell.of(ports(member)),
            Cell.of(member.generation, "warn" if member.failures else "text"),
            Cell(in_router(member)),
            Cell.of(member.pid or NONE, "dim"),
            Cell.of(age, "dim", rank=-member.since),
            Cell(note(member, now)),
        ),
    )
