"""Groups as rows of the list, and the head of a group's own panel."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.cells import chop_cells

from pdtui.i18n import tr
from pdtui.i18n.catalog import word
from pdtui.i18n.foreign import said_as
from pdtui.present.cells import Cell, Column, Line, Row, Span, Tone, line, padded, width
from pdtui.present.numbers import NONE, since
from pdtui.present.safe import clean
from pdtui.present.status import GROUP_ORDER, glyphs, group_look, level_look
from pdtui.present.telling import of_mark

if TYPE_CHECKING:
    from backend.domain.views import GroupView, Mark, MemberView

BESIDE_STATUS = frozenset({"ratio", "config_changed"})
"""Marks that have their own place beside the status and are not listed again."""
LABEL = 10
"""Cells of the head's labels."""
ROOMY = 10
"""Lines of head from which on the request is written out."""
ROLE_ORDER = ("prefill", "decode", "replica", "router")


def columns() -> tuple[Column, ...]:
    """The list's columns."""
    return (
        Column("name", tr("col.name"), least=12, most=40, shrink=True),
        Column("status", tr("col.status"), least=17, most=20),
        Column("ratio", tr("col.ratio"), priority=1, least=5, most=22),
        Column("marks", tr("col.marks"), priority=2, least=16, most=44, shrink=True),
        Column("mode", tr("col.mode"), priority=3, least=8, most=22),
        Column("age", tr("col.age"), priority=4, least=5, most=6, align="right"),
        Column("endpoint", tr("col.endpoint"), priority=5, least=26, most=40, shrink=True),
        Column("model", tr("col.model"), priority=6, least=12, most=60, shrink=True, grow=True),
    )


def rows(groups: Iterable[GroupView], now: float) -> list[Row]:
    """One row a group, by name; `now` in epoch seconds."""
    return [row(g, since(now, g.since)) for g in sorted(groups, key=lambda g: g.name)]


def row(group: GroupView, age: str) -> Row:
    """One group; `age` is how long it has been in its status, as shown."""
    url = group.endpoint.url if group.endpoint else NONE
    return Row(
        group.name,
        (
            Cell.of(group.name, "strong"),
            Cell((group_look(group).span(),), GROUP_ORDER.index(group.status)),
            Cell(ratio(group, short=True)),
            Cell(short_marks(group)),
            Cell.of(group.mode or word("mode", "none"), "text" if group.mode else "dim"),
            Cell.of(age, "dim", rank=-group.since),
            Cell.of(url, "text" if group.endpoint else "dim"),
            Cell.of(group.model, "dim"),
        ),
    )


def ratio(group: GroupView, *, short: bool = False) -> Line:
    """`2:1`, and `(currently 1:1)` while fewer are ready; the long form says `Ratio` before it."""
    if not group.ratio:
        return line(Span(NONE, "dim")) if short else ()
    wanted = group.ratio if short else tr("group.ratio", ratio=group.ratio)
    if not group.currently or group.currently == group.ratio:
        return line(Span(wanted))
    return line(Span(wanted), Span(" " + tr("group.currently", ratio=group.currently), "warn"))


def config_changed(group: GroupView) -> Line:
    """The clock icon with its words, or nothing."""
    if not group.config_changed:
        return ()
    return line(Span(f"{glyphs().clock} {tr('mark.config_changed')}", "warn"))


def _changes_key(group: GroupView) -> Line:
    """Which key shows what has changed."""
    return (Span(f" {tr('group.changes_key')}", "dim"),) if group.config_changed else ()


def short_marks(group: GroupView) -> Line:
    """The marks of a list row: the configuration first, then the gravest other, then a count."""
    parts = list(config_changed(group))
    if group.phase:
        parts = [Span(word("phase", group.phase.name), "busy")]
        if group.phase.blocked_by:
            parts = [Span(tr("phase.blocked_short", host=group.phase.blocked_by), "bad")]
    elif group.paused:
        parts.append(Span(tr("mark.paused"), "off"))
    others = sorted(
        (
            m
            for m in group.marks
            if m.id not in BESIDE_STATUS and not (group.phase and m.id == "restart_blocked")
        ),
        key=lambda m: ("error", "warning", "info").index(m.level),
    )
    if others:
        first = others[0]
        if parts:
            parts.append(Span("  "))
        parts.append(Span(word("mark", first.id), level_look(first.level).tone))
        if len(others) > 1:
            parts.append(Span(f" +{len(others) - 1}", "dim"))
    return tuple(parts)


def headline(group: GroupView) -> Line:
    """Status, ratio and what stands beside them, on one line."""
    parts: list[Span] = [group_look(group).span()]
    for extra in (ratio(group), config_changed(group)):
        if extra:
            parts += [Span("   "), *extra]
    parts += _changes_key(group)
    if group.paused:
        parts += [Span("   "), Span(tr("mark.paused"), "off")]
    return tuple(parts)


def phases(group: GroupView) -> Line:
    """Where a restart stands: the steps in order, the present one with its count."""
    names = ("drain", "stop router", "stop members", "confirm gone", "start")
    phase = group.phase
    if phase is None:
        return ()
    at = names.index(phase.name)
    parts: list[Span] = []
    for i, name in enumerate(names):
        if parts:
            parts.append(Span(f" {glyphs().arrow} ", "off"))
        if i < at:
            parts.append(Span(f"{glyphs().yes} {word('phase', name)}", "dim"))
        elif i == at:
            text = word("phase", name)
            if phase.total:
                text += f" {phase.done}/{phase.total}"
            parts.append(Span(text, "bad" if phase.blocked_by else "busy"))
        else:
            parts.append(Span(word("phase", name), "off"))
    return tuple(parts)


def head(group: GroupView, columns: int, most: int) -> list[Line]:
    """The lines above the members: at most `most`, each cut to `columns` by the painter.

    The headline and the endpoint always stand; marks and the request's text give way first.
    """
    out: list[Line] = [headline(group)]
    if group.phase:
        out.append(phases(group))
        if group.phase.blocked_by:
            out.append(line(Span(tr("phase.blocked", host=group.phase.blocked_by), "bad")))
    facts = [group.mode or word("mode", "none"), group.engine, group.model]
    tail = tr("group.version", version=group.version, revision=group.revision[:8] or NONE)
    dot = f" {glyphs().dot} "
    about = line(Span(dot.join(facts), "dim"), Span(f"{dot}{tail}", "dim"))
    out.append(about if width(about) <= columns else line(Span(dot.join(facts), "dim")))
    if group.endpoint:
        out.append(_fact("group.endpoint", Span(group.endpoint.url, "accent")))
        request = _request(group.endpoint.curl, columns, whole=most >= ROOMY)
    else:
        out.append(_fact("group.endpoint", Span(no_endpoint(group), "dim")))
        request = []
    marks = [_mark(m) for m in group.marks if m.id not in BESIDE_STATUS]
    if group.policies and (columns >= 100 or most > len(out) + len(marks) + 1):
        out.append(_fact("group.policies", Span(said_as(group.policies), "dim")))
    room = most - len(out)
    if len(marks) > room:
        hidden = len(marks) - max(0, room - 1)
        rest = line(Span(tr("group.more_marks", count=hidden), "dim"))
        marks = [*marks[: max(0, room - 1)], rest]
    out += request[: max(0, most - len(out) - len(marks))]
    return [*out, *marks][:most]


FAILING = frozenset({"crash_loop", "exited", "unhealthy"})
"""States of a member that its log explains."""


def urgent(group: GroupView | None) -> list[str]:
    """Names of the commands that a group in this state asks for, the most telling first."""
    if group is None:
        return []
    out: list[str] = []
    if group.phase and group.phase.blocked_by:
        out += ["restart"]
    if any(m.state in FAILING for m in group.members):
        out += ["diagnose", "first_error", "logs"]
    if group.config_changed:
        out += ["changes", "restart"]
    if group.paused:
        out += ["start"]
    return list(dict.fromkeys(out))


def no_endpoint(group: GroupView) -> str:
    """Why a group has no endpoint yet."""
    if group.status == "Stopped":
        return tr("group.no_endpoint.stopped")
    missing = [
        word("role", r)
        for r, c in sorted(group.roles.items())
        if r != "router" and c.wanted and not c.ready
    ]
    if missing:
        return tr("group.no_endpoint.roles", roles=" + ".join(missing))
    return tr("group.no_endpoint.router")


def running(groups: Iterable[GroupView]) -> list[str]:
    """Names of the groups with a living member."""
    return sorted(g.name for g in groups if g.status in ("Running", "Partially ready"))


def ready_requests_lost(group: GroupView) -> list[MemberView]:
    """The members and the router that a whole-group restart stops, in the order it stops them."""
    alive = [m for m in group.members if m.state not in ("pending", "exited", "crash_loop")]
    return sorted(alive, key=lambda m: (m.role != "router", ROLE_ORDER.index(m.role), m.id))


def _fact(key: str, value: Span) -> Line:
    return line(Span(padded(tr(key), LABEL), "dim"), value)


def _request(curl: str, columns: int, *, whole: bool) -> list[Line]:
    """The request on one line that is cut, or whole on as many as it takes."""
    if not whole:
        return [_fact("group.request", Span(curl))]
    first, *rest = chop_cells(clean(curl), max(20, columns - LABEL))
    return [_fact("group.request", Span(first)), *(line(Span(" " * LABEL + r)) for r in rest)]


def _mark(mark: Mark) -> Line:
    """The mark's word, then what it means here."""
    level = mark.level
    tone: Tone = "bad" if level == "error" else "warn" if level == "warning" else "dim"
    glyph = glyphs().cross if level == "error" else glyphs().warn
    name = word("mark", mark.id)
    text = of_mark(mark)
    for known in (name, mark.id.replace("_", " ")):
        text = text.removeprefix(f"{known}: ").removeprefix(f"{known}：")
    return line(Span(f"{glyph} {name}{tr('colon')}", tone), Span(text, tone))
