"""The catalogue's modes as rows, and one of them at length."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pdtui.i18n import tr
from pdtui.i18n.catalog import word
from pdtui.i18n.foreign import said_as
from pdtui.present.cells import Cell, Column, Line, Row, Span, Tone, line
from pdtui.present.detail import fact, section

if TYPE_CHECKING:
    from backend.domain.views import ModeView, RouterRow

_UPDATES: dict[str, Tone] = {"dynamic": "ok", "restart": "warn", "manual": "warn"}


def columns() -> tuple[Column, ...]:
    """The list's columns."""
    return (
        Column("name", tr("col.name"), least=20, most=30),
        Column("engines", tr("col.engines"), least=8, most=24),
        Column("updates", tr("col.updates"), least=8, most=16),
        Column("vendor", tr("col.vendor"), priority=1, least=7, most=10),
        Column("summary", tr("col.summary"), least=20, most=120, shrink=True, grow=True),
    )


def rows(modes: Iterable[ModeView]) -> list[Row]:
    """One row a mode, in the catalogue's order."""
    return [
        Row(
            m.name,
            (
                Cell.of(m.name, "strong"),
                Cell.of(", ".join(m.engines) or tr("modes.any")),
                Cell.of(word("updates", m.membership), _UPDATES.get(m.membership, "dim")),
                Cell.of(m.vendor or tr("modes.any"), "dim"),
                Cell.of(said_as(m.summary or m.title), "dim"),
            ),
        )
        for m in modes
    ]


def page(mode: ModeView) -> list[Line]:
    """Everything the console knows of a mode."""
    out: list[Line] = [
        line(Span(mode.name, "strong"), Span(f"  {said_as(mode.title)}", "dim")),
        (),
        line(Span(said_as(mode.summary))),
        (),
        fact(tr("col.engines"), ", ".join(mode.engines) or tr("modes.any")),
        fact(tr("col.vendor"), mode.vendor or tr("modes.any")),
        fact(tr("detail.membership"), word("membership", mode.membership)),
        fact(tr("modes.origin"), mode.origin),
    ]
    for title, found in (("modes.rows", mode.rows), ("modes.unset", mode.unset)):
        if found:
            out += section(tr(title))
            out += [_argument(r) for r in found]
    if mode.notes:
        out += section(tr("modes.notes"))
        out += [line(Span(f"  {said_as(note)}")) for note in mode.notes]
    return out


def _argument(row: RouterRow) -> Line:
    text = f"{row.name}={row.text}" if row.kind == "env" else row.text
    spans = [Span(f"  {text}", "dim" if row.locked else "text")]
    if row.locked:
        spans.append(Span(f"  {tr('marker.platform')}", "off"))
    if row.options:
        spans.append(Span(f"  {' | '.join(row.options)}", "dim"))
    if row.note:
        spans.append(Span(f"  {said_as(row.note)}", "off"))
    return tuple(spans)
