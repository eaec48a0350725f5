"""The doctor's findings as rows: the worst first, and one of them at length."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pdtui.i18n import tr
from pdtui.i18n.catalog import word
from pdtui.present.cells import Cell, Column, Line, Row, Span, Tone, line
from pdtui.present.detail import fact, section
from pdtui.present.safe import lines
from pdtui.present.status import glyphs
from pdtui.present.telling import of_finding

if TYPE_CHECKING:
    from backend.domain.doctor import Finding

_LOOKS: dict[str, tuple[str, Tone]] = {
    "fail": ("cross", "bad"),
    "warn": ("warn", "warn"),
    "pass": ("yes", "ok"),
}


def columns() -> tuple[Column, ...]:
    """The list's columns."""
    return (
        Column("host", tr("col.host"), least=6, most=20),
        Column("verdict", tr("doctor.verdict"), least=6, most=12),
        Column("check", tr("doctor.check"), least=8, most=22),
        Column("seen", tr("doctor.seen"), least=20, most=240, shrink=True, grow=True),
    )


def key(finding: Finding, number: int) -> str:
    """A row's key: a host may have several findings of one check."""
    return f"{finding.host}/{finding.check}/{number}"


def rows(found: Sequence[Finding], *, every: bool) -> list[Row]:
    """One row a finding, hosts with failures first; what is well only with `every`."""
    order = {"fail": 0, "warn": 1, "pass": 2}
    worst = {
        h: min(order[f.verdict] for f in found if f.host == h) for h in {f.host for f in found}
    }
    sorted_ = sorted(
        enumerate(found), key=lambda p: (worst[p[1].host], p[1].host, order[p[1].verdict], p[0])
    )
    return [
        Row(
            key(f, number),
            (
                Cell.of(f.host, "strong"),
                Cell((look(f),)),
                Cell.of(word("check", f.check)),
                Cell.of(of_finding(f)[0], "dim" if f.verdict == "pass" else "text"),
            ),
        )
        for number, f in sorted_
        if every or f.verdict != "pass"
    ]


def look(finding: Finding) -> Span:
    """The verdict, drawn."""
    glyph, tone = _LOOKS[finding.verdict]
    return Span(f"{getattr(glyphs(), glyph)} {word('verdict', finding.verdict)}", tone)


def summary(found: Iterable[Finding]) -> str:
    """How many of each."""
    counts = {"pass": 0, "warn": 0, "fail": 0}
    for finding in found:
        counts[finding.verdict] += 1
    return tr("doctor.summary", well=counts["pass"], warned=counts["warn"], failed=counts["fail"])


def page(finding: Finding) -> list[Line]:
    """One finding: what was seen, what to do, and the values behind it."""
    seen, remedy = of_finding(finding)
    out: list[Line] = [
        line(Span(word("check", finding.check), "strong"), Span(f"  {finding.host}", "dim")),
        (),
        fact(tr("doctor.verdict"), look(finding)),
        fact(tr("doctor.seen"), seen),
    ]
    if remedy:
        out.append(fact(tr("detail.remedy"), Span(remedy, "accent")))
    if finding.values:
        out += section(tr("doctor.values"))
        for name, value in finding.values.items():
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            parts = lines(text) or [""]
            out.append(fact(name, parts[0]))
            out += [fact("", more) for more in parts[1:]]
    return out
