"""What is watched of a group, as lines: effectiveness, the canary's matrix, figures, alerts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len

from pdtui.i18n import tr
from pdtui.i18n.catalog import word
from pdtui.present.cells import Cell, Line, Span, Tone, line, padded
from pdtui.present.numbers import NONE, age, clock
from pdtui.present.status import glyphs
from pdtui.present.telling import of_canary, of_watched

if TYPE_CHECKING:
    from backend.domain.views import GroupView, MemberView
    from backend.domain.watch_views import AlertView, CanaryView, EffectView, PairView

FIGURES = (
    "requests", "prompt_tokens", "generation_tokens", "external_share", "transfers", "kv_bytes",
    "kv_seconds", "first_token_p50", "first_token_p95", "next_token_p50", "next_token_p95",
    "cache_usage", "running", "waiting",
)  # fmt: skip
"""The figures that are plotted, in the order a key goes through them."""
_EFFECT: dict[str, tuple[str, Tone]] = {
    "good": ("full", "ok"),
    "partial": ("half", "warn"),
    "none": ("cross", "bad"),
    "failing": ("cross", "bad"),
    "no_traffic": ("empty", "off"),
    "not_measurable": ("dot", "dim"),
    "unknown": ("fading", "dim"),
}
_PAIR: dict[str, tuple[str, Tone]] = {
    "ok": ("yes", "ok"),
    "slow": ("warn", "warn"),
    "not_moved": ("cross", "bad"),
    "content": ("cross", "bad"),
    "failed": ("cross", "bad"),
    "unknown": ("fading", "dim"),
}
ID, CELL = 26, 16
"""Cells of a member's name in the tables, and of one pair in the matrix."""


def effect_span(found: EffectView | None) -> Span:
    """A verdict in a word, with its glyph; a dash where there is none."""
    if found is None:
        return Span(NONE, "dim")
    glyph, tone = _EFFECT[found.verdict]
    return Span(f"{getattr(glyphs(), glyph)} {word('effect', found.verdict)}", tone)


def effect_cell(member: MemberView) -> Cell:
    """The verdict on a member; a dash for a router."""
    return Cell((effect_span(member.effect),))


def number(value: float | None) -> str:
    """A figure in few cells: `0.25`, `12.3`, `4.1k`, `7.5M`."""
    if value is None:
        return NONE
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return f"{value / (limit if unit != 'k' else 1e3):.3g}{unit}"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def members(group: GroupView) -> list[Line]:
    """A line a member: its verdict, and why."""
    out: list[Line] = [line(Span(tr("watch.members"), "accent"))]
    judged = [(m.id, m.effect, effect_span(m.effect)) for m in group.members if m.effect]
    names = _column(name for name, _, _ in judged)
    verdicts = max((cell_len(said.text) for _, _, said in judged), default=0)
    for name, found, said in judged:
        verdict = Span(f"{padded(said.text, verdicts)}  ", said.tone)
        text = Span(of_watched(found), "dim", hang=True)
        out.append((Span(f"  {padded(name, names)}  "), verdict, text))
    if len(out) == 1:
        out.append(line(Span(f"  {tr('watch.nothing')}", "dim")))
    return out


def _column(names: Iterable[str]) -> int:
    """Cells of a column of names."""
    return min(ID, max(map(cell_len, names), default=0))


def canary(run: CanaryView | None, now: float) -> list[Line]:
    """The last canary: how it went, its matrix (prefills down, decodes across), what is wrong."""
    out: list[Line] = [line(Span(tr("watch.canary"), "accent"))]
    if run is None:
        return [*out, line(Span(f"  {tr('watch.canary.none')}", "dim"))]
    if run.running:
        out.append(line(Span(f"  {tr('watch.canary.running')}", "busy")))
    why, ago = word("why", run.why), age(now - run.at)
    if run.pairs or run.router or run.note:
        if run.ok:
            said = tr("watch.canary.well", seconds=f"{run.seconds:.1f}", ago=ago, why=why)
            out.append(line(Span(f"  {said}", "ok")))
        else:
            said = tr("watch.canary.fails", ago=ago, why=why, note=_to_blame(run))
            out.append(line(Span(f"  {said}", "bad")))
    heads = (tr("watch.canary.router"), tr("watch.pairs"), *(p.prefill for p in run.pairs))
    names = _column(heads)
    out += _matrix(run.pairs, names)
    if run.router is not None:
        label = Span(f"  {padded(tr('watch.canary.router'), names)}  ", "dim")
        out.append((label, _pair(run.router), Span(of_watched(run.router), "dim", hang=True)))
    for pair in run.pairs:
        if pair.verdict not in ("ok", "unknown"):
            out.append(line(f"  {pair.prefill} {glyphs().arrow} {pair.decode}"))
            out.append(line(Span(f"    {of_watched(pair)}", _PAIR[pair.verdict][1])))
    if run.left_out:
        out.append(line(Span(f"  {tr('watch.canary.left_out', count=run.left_out)}", "dim")))
    return out


def _to_blame(run: CanaryView) -> str:
    """Who is to blame, where what is wrong stands beside the pairs; else all of it."""
    blamed = {p.culprit for p in run.pairs if p.verdict in ("failed", "not_moved")}
    return ", ".join(sorted(blamed - {""})) or of_canary(run)


def _matrix(pairs: Sequence[PairView], names: int) -> list[Line]:
    if not pairs:
        return []
    cells = {(p.prefill, p.decode): p for p in pairs}
    decodes = sorted({p.decode for p in pairs})
    shown = {d: _short(d, decodes) for d in decodes}
    head = [Span(f"  {padded(tr('watch.pairs'), names)}  ", "dim")]
    head += [Span(padded(shown[d], CELL), "dim") for d in decodes]
    out: list[Line] = [tuple(head)]
    for prefill in sorted({p.prefill for p in pairs}):
        row = [Span(f"  {padded(prefill, names)}  ", "text")]
        row += [_pair(cells.get((prefill, d))) for d in decodes]
        out.append(tuple(row))
    return out


def _short(name: str, among: Sequence[str]) -> str:
    """A name without what it shares with the others of its column."""
    tail = name.rsplit("-", 1)[-1]
    return tail if len({n.rsplit("-", 1)[-1] for n in among}) == len(among) else name


def _pair(pair: PairView | None) -> Span:
    if pair is None:
        return Span(padded(NONE, CELL), "off")
    glyph, tone = _PAIR[pair.verdict]
    text = f"{getattr(glyphs(), glyph)} {word('pair', pair.verdict)} {pair.seconds:.2f}s"
    return Span(padded(text, CELL), tone)


def legend(figure: str, curves: Iterable[tuple[str, float | None, Tone]]) -> list[Line]:
    """The figure's name, then each curve's member and its newest value, in the curve's tone."""
    spans = [Span(tr(f"figure.{figure}"), "accent")]
    for name, value, tone in curves:
        spans.append(Span(f"   {glyphs().full} {name} {number(value)}", tone))
    return [tuple(spans)]


def alerts(found: Iterable[AlertView], now: float) -> list[Line]:
    """Every alert, the newest first: since when, what kind, what it says."""
    out: list[Line] = []
    newest = sorted(found, key=lambda a: -a.since)
    kinds = max((cell_len(word("alert", a.kind)) for a in newest), default=0)
    for a in newest:
        tone: Tone = "bad" if a.level == "error" else "warn"
        glyph = glyphs().cross if a.level == "error" else glyphs().warn
        head = f"{clock(a.since)} {padded(age(now - a.since), 6)} "
        kind = Span(f"{glyph} {padded(word('alert', a.kind), kinds)}  ", tone)
        out.append((Span(head, "dim"), kind, Span(of_watched(a), hang=True)))
    return out or [line(Span(tr("alerts.none"), "ok"))]
