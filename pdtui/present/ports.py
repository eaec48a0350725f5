"""A host's ports as a drawing: a mark a port, then who holds which, then what nobody can manage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pdtui.i18n import tr
from pdtui.i18n.catalog import word
from pdtui.present.cells import Line, Span, Tone, line, padded
from pdtui.present.detail import fact, section
from pdtui.present.status import glyphs

if TYPE_CHECKING:
    from backend.domain.portmap import PortMap, PortRun, PortWindow

ROW, GROUP = 32, 8
"""Ports drawn on a line, and how many stand together."""
_LOOKS: dict[str, tuple[str, Tone]] = {
    "ours": ("full", "accent"),
    "claimed": ("half", "warn"),
    "foreign": ("cross", "bad"),
    "stuck": ("warn", "bad"),
    "free": ("dot", "off"),
}


def page(found: PortMap) -> list[Line]:
    """The whole map."""
    first, last = found.port_range
    tone: Tone = "ok" if found.free else "bad"
    out: list[Line] = [
        line(Span(found.host, "strong"), Span(f"  {first}-{last}", "dim")),
        line(
            Span(tr("ports.free", free=found.free, total=last - first + 1), tone),
            Span(tr("ports.widest", count=found.widest), "dim"),
        ),
    ]
    if not found.tried:
        out.append(line(Span(tr("ports.untried"), "dim")))
    out += [(), *_grid(found), (), _legend()]
    held = [r for r in found.runs if r.kind != "free"]
    if held:
        out += section(tr("ports.held"))
        out += [_run(r) for r in held]
    out += section(tr("ports.unmanaged"))
    for window in found.windows:
        out += _window(window)
    return out


def _grid(found: PortMap) -> list[Line]:
    """Lines of marks; lines on which every port is free are drawn as one."""
    marks = [_mark(r) for r in found.runs for _ in range(r.size)]
    first = found.port_range[0]
    out: list[Line] = []
    skipped: tuple[int, int] | None = None
    for at in range(0, len(marks), ROW):
        row = marks[at : at + ROW]
        if len(marks) > 4 * ROW and all(m.tone == "off" for m in row):
            skipped = (skipped[0] if skipped else first + at, first + at + len(row) - 1)
            continue
        if skipped:
            out.append(_skipped(*skipped))
            skipped = None
        spans = [Span(f"  {first + at:>5} ", "dim")]
        for i, mark in enumerate(row):
            if i % GROUP == 0:
                spans.append(Span(" "))
            spans.append(mark)
        out.append(tuple(spans))
    if skipped:
        out.append(_skipped(*skipped))
    return out


def _skipped(first: int, last: int) -> Line:
    text = tr("ports.all_free", count=last - first + 1, first=first, last=last)
    return (Span(f"  {glyphs().more:>5}  ", "dim"), Span(text, "off"))


def _mark(run: PortRun) -> Span:
    glyph, tone = _LOOKS[run.kind]
    return Span(getattr(glyphs(), glyph), tone)


def _legend() -> Line:
    spans = [Span("  ")]
    for kind, (glyph, tone) in _LOOKS.items():
        spans.append(Span(f"{getattr(glyphs(), glyph)} ", tone))
        spans.append(Span(f"{word('port', kind)}  ", "dim"))
    return tuple(spans)


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _run(run: PortRun) -> Line:
    glyph, tone = _LOOKS[run.kind]
    holder = run.holder or word("port", run.kind)
    spans = [
        Span(f"  {getattr(glyphs(), glyph)} ", tone),
        Span(padded(_span(run.first, run.last), 13), "text"),
        Span(holder, "text" if run.kind == "ours" else tone),
    ]
    if run.band:
        spans.append(Span(f"  {run.band}", "dim"))
    if run.kind == "ours":
        text = tr("ports.listening", count=run.listening, total=run.size)
        spans.append(Span(f"  {text}", "ok" if run.listening == run.size else "dim"))
    return tuple(spans)


def _window(window: PortWindow) -> list[Line]:
    value = [Span(word("port_window", window.kind), "dim")]
    if window.overlaps:
        value.append(Span(f"  {glyphs().warn} {tr('ports.overlaps')}", "warn"))
    out = [fact(_span(window.first, window.last), tuple(value))]
    if window.count:
        names = [f"{x.port} {x.name}".rstrip() for x in window.listeners[:12]]
        more = f" {glyphs().more}" if window.count > len(names) else ""
        said = tr("ports.listen_there", count=window.count, names=", ".join(names) + more)
        out.append(fact("", Span(said, "off")))
    return out
