"""Saved versions as rows, and one against the one before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from backend.domain.secrets import masked
from pdtui.i18n import tr
from pdtui.present.cells import Cell, Column, Line, Row, Span, line
from pdtui.present.numbers import since, stamp
from pdtui.present.plans import diff_line
from pdtui.state.yamltext import diff, dump

if TYPE_CHECKING:
    from backend.domain.views import VersionView


def columns() -> tuple[Column, ...]:
    """The list's columns."""
    return (
        Column("version", tr("col.version"), least=7, most=8, align="right"),
        Column("at", tr("col.time"), least=19, most=19),
        Column("age", tr("col.age"), least=5, most=6, align="right"),
        Column("actor", tr("col.actor"), least=8, most=24),
        Column("changed", tr("col.changed"), least=12, most=60, shrink=True, grow=True),
    )


def rows(versions: Sequence[VersionView], now: float) -> list[Row]:
    """One row a version, as they come: newest first."""
    return [
        Row(
            str(v.version),
            (
                Cell.of(v.version, "strong"),
                Cell.of(stamp(v.at)),
                Cell.of(since(now, v.at), "dim"),
                Cell.of(v.actor),
                Cell(_changed(v, before(versions, v.version))),
            ),
        )
        for v in versions
    ]


def before(versions: Sequence[VersionView], version: int) -> VersionView | None:
    """The version saved before this one, if it is known."""
    older = [v for v in versions if v.version < version]
    return max(older, key=lambda v: v.version, default=None)


def page(versions: Sequence[VersionView], version: int) -> list[Line]:
    """One version against the one before, or whole when it is the first."""
    this = next(v for v in versions if v.version == version)
    old = before(versions, version)
    head = line(
        Span(tr("history.version", version=version), "strong"),
        Span(f"  {stamp(this.at)}  {this.actor}", "dim"),
    )
    if old is None:
        text = dump(masked(this.document))
        return [head, (), *(line(Span(f"  {t}")) for t in text.splitlines())]
    found = diff(masked(old.document), masked(this.document), context=3)
    said = tr("history.against", version=version, before=old.version)
    lines = [diff_line(t) for t in found] or [line(Span(tr("history.same"), "dim"))]
    return [head, (), line(Span(said, "dim")), (), *lines]


def _changed(version: VersionView, old: VersionView | None) -> Line:
    if old is None:
        return line(Span(tr("history.first"), "dim"))
    found = diff(old.document, version.document)
    more = sum(t.startswith("+") for t in found)
    fewer = sum(t.startswith("-") for t in found)
    if not found:
        return line(Span(tr("history.same"), "dim"))
    return line(Span(f"+{more}", "ok"), Span(" "), Span(f"-{fewer}", "bad"))
