"""Cache services as rows, and one of them at length."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pdtui.i18n import tr
from pdtui.present.cells import Cell, Column, Line, Row, Span, line
from pdtui.present.detail import fact, section
from pdtui.present.numbers import NONE

if TYPE_CHECKING:
    from backend.domain.views import CacheView


def columns() -> tuple[Column, ...]:
    """The list's columns."""
    return (
        Column("name", tr("col.name"), least=12, most=40, shrink=True),
        Column("provider", tr("col.provider"), least=10, most=12),
        Column("endpoint", tr("col.endpoint"), least=16, most=44, shrink=True),
        Column("used", tr("col.used_by"), priority=1, least=12, most=80, shrink=True),
        Column("settings", tr("col.settings"), priority=2, least=16, most=120, shrink=True,
               grow=True),
    )  # fmt: skip


def rows(caches: Iterable[CacheView]) -> list[Row]:
    """One row a service, by name."""
    return [
        Row(
            c.name,
            (
                Cell.of(c.name, "strong"),
                Cell.of(c.provider),
                Cell.of(where(c)),
                Cell.of(
                    ", ".join(c.used_by) or tr("caches.unused"), "text" if c.used_by else "dim"
                ),
                Cell.of(settings(c), "dim"),
            ),
        )
        for c in sorted(caches, key=lambda c: c.name)
    ]


def where(cache: CacheView) -> str:
    """Where it answers; a port alone is each member's own host."""
    if cache.endpoint.startswith(":"):
        return tr("caches.own_host", port=cache.endpoint)
    return cache.endpoint or NONE


def settings(cache: CacheView) -> str:
    """Settings on one line, secrets hidden."""
    from backend.domain.secrets import masked

    shown = masked(cache.settings)
    return "  ".join(f"{k}={v if isinstance(v, str) else json.dumps(v)}" for k, v in shown.items())


def page(cache: CacheView) -> list[Line]:
    """Everything known of a service."""
    from backend.domain.secrets import masked

    out: list[Line] = [
        line(Span(cache.name, "strong")),
        fact(tr("col.provider"), cache.provider),
        fact(tr("col.endpoint"), where(cache)),
    ]
    out += section(tr("col.used_by"))
    out += [line(f"  {name}") for name in cache.used_by] or [
        line(Span(f"  {tr('caches.unused')}", "dim"))
    ]
    if cache.settings:
        out += section(tr("col.settings"))
        out += [
            fact(k, v if isinstance(v, str) else json.dumps(v, ensure_ascii=False))
            for k, v in masked(cache.settings).items()
        ]
    return out
