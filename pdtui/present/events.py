"""History lines as rows, newest first, and as plain lines under a group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pdtui.i18n import tr
from pdtui.present.cells import Cell, Column, Line, Row, Span
from pdtui.present.numbers import clock
from pdtui.present.status import level_look
from pdtui.present.telling import of_event

if TYPE_CHECKING:
    from backend.domain.views import EventView


def columns() -> tuple[Column, ...]:
    """The list's columns."""
    return (
        Column("at", tr("col.time"), least=8, most=8),
        Column("level", tr("col.level"), least=7, most=9),
        Column("group", tr("col.group"), priority=1, least=8, most=24),
        Column("instance", tr("col.member"), priority=3, least=20, most=36, shrink=True),
        Column("host", tr("col.host"), priority=4, least=6, most=20),
        Column("actor", tr("col.actor"), priority=5, least=6, most=12),
        Column("message", tr("col.message"), least=28, most=200, shrink=True, grow=True),
    )


def rows(events: Iterable[EventView]) -> list[Row]:
    """One row an event, the newest first."""
    return [
        Row(
            str(e.seq),
            (
                Cell.of(clock(e.at), "dim"),
                Cell((level_look(e.level).span(),)),
                Cell.of(e.group),
                Cell.of(e.instance, "dim"),
                Cell.of(e.host, "dim"),
                Cell.of(e.actor, "dim"),
                Cell.of(of_event(e), "text" if e.level == "info" else level_look(e.level).tone),
            ),
        )
        for e in sorted(events, key=lambda e: e.seq, reverse=True)
    ]


def recent(events: Iterable[EventView], group: str, most: int) -> list[Line]:
    """The last `most` lines about a group, the newest at the bottom."""
    mine = sorted((e for e in events if e.group == group), key=lambda e: e.seq)
    return [_line(e) for e in mine[-most:]] if most > 0 else []


def _line(event: EventView) -> Line:
    look = level_look(event.level)
    text = of_event(event)
    what = f"{event.instance}{tr('colon')}" if event.instance and event.instance not in text else ""
    return (
        Span(f"{clock(event.at)}  ", "dim"),
        Span(f"{look.glyph} ", look.tone),
        Span(what, "dim"),
        Span(text, "text" if event.level == "info" else look.tone),
    )
