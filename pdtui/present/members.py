"""The members and the router of one group, a section a role."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pdtui.i18n import tr
from pdtui.i18n.catalog import word
from pdtui.i18n.foreign import said_as
from pdtui.present.cells import Cell, Column, Line, Row, Span, Tone, line
from pdtui.present.groups import ROLE_ORDER
from pdtui.present.numbers import NONE, age, chip, runs, since
from pdtui.present.status import glyphs, member_look
from pdtui.present.watch import effect_cell

if TYPE_CHECKING:
    from backend.domain.views import GroupView, MemberView, RoleCount

HEADING = "role:"
"""Key prefix of a role's heading row."""


def columns() -> tuple[Column, ...]:
    """The panel's columns."""
    return (
        Column("id", tr("col.member"), least=14, most=44, shrink=True),
        Column("state", tr("col.state"), least=11, most=14),
        Column("host", tr("col.host"), least=8, most=24, shrink=True),
        Column("accelerators", tr("col.accelerators"), priority=2, least=5, most=22),
        Column("ports", tr("col.ports"), priority=5, least=5, most=20),
        Column("generation", tr("col.generation"), priority=1, least=3, most=5, align="right"),
        Column("effect", tr("col.effect"), priority=2, least=8, most=17),
        Column("router", tr("col.in_router"), priority=3, least=6, most=7),
        Column("pid", tr("col.pid"), priority=7, least=5, most=8, align="right"),
        Column("age", tr("col.age"), priority=6, least=5, most=6, align="right"),
        Column("note", tr("col.note"), priority=4, least=16, most=120, shrink=True, grow=True),
    )


def roles(group: GroupView) -> list[str]:
    """The group's roles in the order they are shown."""
    present = {m.role for m in group.members} | set(group.roles)
    return [r for r in ROLE_ORDER if r in present] + sorted(present - set(ROLE_ORDER))


def rows(group: GroupView, now: float) -> list[Row]:
    """A heading a role with its counts, then its members."""
    out: list[Row] = []
    for role in roles(group):
        mine = sorted((m for m in group.members if m.role == role), key=lambda m: m.id)
        count = group.roles.get(role)
        out.append(Row(HEADING + role, (Cell(heading(role, count, mine)),), heading=True))
        out += [_row(m, now) for m in mine]
    return out


def heading(role: str, count: RoleCount | None, members: list[MemberView]) -> Line:
    """`prefill  2 of 3 ready`, and what waits for a restart."""
    ready = count.ready if count else sum(m.state == "ready" for m in members)
    wanted = count.wanted if count else len(members)
    if not wanted and not members:
        tone: Tone = "off"
    elif ready >= wanted:
        tone = "ok"
    else:
        tone = "warn" if ready else "busy"
    parts = [
        Span(f"{word('role', role)}  ", "accent"),
        Span(tr("role.ready", ready=ready, wanted=wanted), tone),
    ]
    if count and count.present > wanted:
        parts.append(Span("  " + tr("role.leaving", count=count.present - wanted), "busy"))
    if count and count.pending is not None and count.pending != wanted:
        parts.append(Span("  " + tr("role.pending", count=count.pending), "warn"))
    return tuple(parts)


def role_of(key: str | None, group: GroupView) -> str | None:
    """The role a row belongs to, be it a heading or a member."""
    if key is None:
        return None
    if key.startswith(HEADING):
        return key.removeprefix(HEADING)
    return next((m.role for m in group.members if m.id == key), None)


def accelerators(member: MemberView) -> str:
    """Indices and type: `0,1 L40S`."""
    if not member.accelerators:
        return NONE
    return f"{runs(member.accelerators)} {chip(member.accelerator_type)}".strip()


def ports(member: MemberView) -> str:
    """Every port of a member as runs."""
    found = {p for b in member.bands for p in b.ports} | ({member.port} if member.port else set())
    return runs(found)


def note(member: MemberView, now: float) -> Line:
    """When a waiting restart is due, why it is in its state, and whether it runs old settings."""
    parts: list[Span] = []
    if member.next_start is not None and member.state in ("exited", "pending"):
        due = max(0.0, member.next_start - now)
        parts.append(Span(tr("member.next_start", age=age(due)), "busy"))
    if member.note:
        tone = member_look(member).tone if member.failures else "dim"
        parts.append(Span(said_as(member.note), tone))
    if member.stale:
        parts.append(Span(f"{glyphs().clock} {tr('member.stale')}", "warn"))
    out: list[Span] = []
    for part in parts:
        out += [Span("  "), part] if out else [part]
    return tuple(out)


def in_router(member: MemberView) -> Line:
    """Whether the router knows it; a dash where that has no meaning."""
    if member.in_router is None:
        return line(Span(NONE, "dim"))
    if member.in_router:
        return line(Span(f"{glyphs().yes} {tr('yes')}", "ok"))
    return line(Span(tr("no"), "warn" if member.state == "ready" else "dim"))


def _row(member: MemberView, now: float) -> Row:
    return Row(
        member.id,
        (
            Cell.of(member.id),
            Cell((member_look(member).span(),)),
            Cell.of(member.host),
            Cell.of(accelerators(member)),
            Cell.of(ports(member)),
            Cell.of(member.generation, "warn" if member.failures else "text"),
            effect_cell(member),
            Cell(in_router(member)),
            Cell.of(member.pid or NONE, "dim"),
            Cell.of(since(now, member.since), "dim"),
            Cell(note(member, now)),
        ),
    )
