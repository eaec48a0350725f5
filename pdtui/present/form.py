"""The deployment form as table rows, and what is said below it of the row under the cursor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from backend.domain import references
from backend.domain.secrets import HIDDEN, is_secret
from pdtui.i18n import tr
from pdtui.i18n.catalog import word
from pdtui.i18n.foreign import said_as
from pdtui.present.cells import Cell, Column, Line, Row, Span, Tone, fit, line, plain, width
from pdtui.present.problems import gravest, look, said
from pdtui.present.status import glyphs
from pdtui.state.document import get

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backend.domain.errors import Problem
    from backend.domain.views import HostView, ModeView
    from pdtui.state.form import Form, Item, Marker, Tab

_TONES: dict[Marker, Tone] = {
    "set": "text", "default": "off", "needed": "off", "inherit": "off", "override": "text",
    "generated": "off", "changed": "warn", "own": "text", "platform": "off", "none": "dim",
}  # fmt: skip
_FROM: dict[Marker, Tone] = {
    "override": "accent", "own": "accent", "changed": "warn", "needed": "accent",
}  # fmt: skip


def columns() -> tuple[Column, ...]:
    """A finding's mark, the field, its value, where that comes from, what is found."""
    return (
        Column("mark", "", least=1, most=1),
        Column("field", tr("col.field"), least=20, most=26),
        Column("value", tr("col.value"), least=14, most=120, shrink=True, grow=True),
        Column("from", tr("col.from"), least=10, most=14),
        Column("found", wide(tr("col.found"), 30), priority=1, least=30, most=70, shrink=True),
    )


def wide(title: str, size: int) -> str:
    """A title that keeps its column from being narrower than `size` cells."""
    return plain(fit((Span(title),), size))


def rows(items: Iterable[Item], placed: Mapping[str, Sequence[Problem]]) -> list[Row]:
    """One row an item; modes stand under a heading of their own."""
    out: list[Row] = []
    headed = False
    for item in items:
        if item.part == "mode" and not headed:
            out.append(_heading("modes", tr("form.modes")))
        if item.part != "mode" and headed:
            out.append(_heading("settings", tr("form.settings")))
        headed = item.part == "mode"
        out.append(row(item, placed.get(item.key, ())))
    return out


def rest(problems: Sequence[Problem]) -> list[Row]:
    """Findings that stand at no field, under a heading of their own."""
    if not problems:
        return []
    out = [_heading("rest", tr("form.rest"))]
    for i, problem in enumerate(problems):
        seen, (message, _) = look(problem), said(problem)
        cells = (
            Cell.of(seen.glyph, seen.tone),
            Cell.of(problem.path or tr("detail.document"), "dim"),
            Cell.of(message, seen.tone),
            Cell.of(seen.word, seen.tone),
            Cell.of(problem.rule, "off"),
        )
        out.append(Row(f"finding:{i}", cells))
    return out


def about_finding(problem: Problem) -> list[Line]:
    """One finding whole."""
    seen, (message, remedy) = look(problem), said(problem)
    out = [line(Span(f"{seen.glyph} {seen.word}{tr('colon')}{message}", seen.tone))]
    if remedy:
        out.append(line(Span(remedy, "dim")))
    where = f"{problem.path}  " if problem.path else ""
    return [*out, line(Span(f"{where}{problem.rule}", "off"))]


def entering(item: Item | None) -> Literal["write", "choose", "add", "open"]:
    """What enter does to an item."""
    if item is None:
        return "open"
    if item.part == "mode" or (item.part == "field" and item.field.kind in ("choice", "cache")):
        return "choose"
    rows_of = item.part == "field" and item.field.kind in ("list", "env")
    return "add" if rows_of or item.part == "add" else "write"


def _heading(key: str, text: str) -> Row:
    return Row(f"heading:{key}", (Cell.of(text, "accent"),), heading=True)


def row(item: Item, problems: Sequence[Problem]) -> Row:
    """One item."""
    worst = gravest(problems)
    found = Cell()
    if worst:
        found = Cell((Span(said(worst)[0], look(worst).tone),))
    elif item.part == "mode":
        found = Cell.of(said_as(item.note), "off" if item.locked else "dim")
    elif item.note:
        found = Cell.of(said_as(item.note), "off")
    mark = Cell.of(look(worst).glyph, look(worst).tone) if worst else Cell()
    return Row(item.key, (mark, _label(item), _value(item), _from(item), found))


def _label(item: Item) -> Cell:
    if item.part == "mode":
        chosen = item.marker == "set"
        glyph = glyphs().full if chosen else glyphs().empty
        text = f"{glyph} {item.name or tr('form.mode.none')}"
        return Cell.of(text, "off" if item.locked else "strong" if chosen else "text")
    if item.part == "field":
        return Cell.of(word("field", item.field.name), "text")
    return Cell()


def _value(item: Item) -> Cell:
    tone = _TONES[item.marker]
    if item.part == "mode":
        text = said_as(item.text) or tr("form.mode.none.means")
        return Cell.of(text, "off" if item.locked else "dim")
    if item.part == "add":
        return Cell.of(f"+ {tr(f'form.add.{item.field.kind}')}", "off")
    if item.part == "entry":
        return Cell.of(f"  {shown(item)}", tone)
    if item.field.kind in ("list", "env") and not item.text:
        return Cell()
    if not item.text:
        return Cell.of(tr("form.empty") if item.marker == "override" else "-", "off")
    return Cell.of(item.text, tone)


def shown(item: Item) -> str:
    """An entry's text, a secret's value hidden."""
    name, equals, value = item.text.partition("=")
    secret = item.field.kind == "env" and equals and is_secret(name)
    if secret and isinstance(references.read(value), str):
        return f"{name}={HIDDEN}"
    return item.text


def _from(item: Item) -> Cell:
    if item.part in ("add", "mode"):
        return Cell.of(tr("form.not_eligible") if item.locked else "", "off")
    if item.part == "entry" and item.marker in ("set", "inherit"):
        return Cell()
    if item.part == "field" and item.field.path.startswith("spec.roles.router.parameters"):
        return Cell()
    return Cell.of(tr(f"marker.{item.marker}"), _FROM.get(item.marker, "off"))


def about(
    form: Form,
    item: Item | None,
    problems: Sequence[Problem],
    hosts: Sequence[HostView],
    *,
    room: int = 0,
) -> list[Line]:
    """What is said of the row under the cursor: its findings first, then its meaning; before it the
    value, where that does not fit into the `room` cells of its own."""
    if item is None:
        return []
    out: list[Line] = []
    for problem in problems:
        seen, (message, remedy) = look(problem), said(problem)
        rest = (Span(f" {remedy}", "dim"),) if remedy else ()
        out.append(line(Span(f"{seen.glyph} {seen.word}{tr('colon')}{message}", seen.tone), *rest))
    if item.part == "mode":
        return [*out, *_about_mode(form, item)]
    if (value := _value(item)) and width(value.spans) > room > 0:
        out.append(value.spans)
    name = item.field.name
    meaning = word("field_help", name)
    if item.part == "entry" and item.note:
        meaning = said_as(item.note)
        meaning = meaning[:1].upper() + meaning[1:]
    if item.marker in ("generated", "platform", "changed"):
        out.append(line(Span(tr(f"form.about.{item.marker}"), "dim")))
    if item.options:
        out.append(line(Span(tr("form.about.options", options=", ".join(item.options)), "dim")))
    if meaning != name:
        out.append(line(Span(meaning, "dim")))
    if item.field.inherits:
        out.append(_inherited(form, item))
    if name in ("hosts", "placement") and hosts:
        free = ", ".join(
            f"{h.name} ({tr('host.free', count=sum(not a.held_by for a in h.accelerators))})"
            for h in hosts
        )
        out.append(line(Span(tr("form.about.hosts", hosts=free), "dim")))
    if item.field.path.startswith(("spec.roles.router", "spec.disaggregation")):
        tone: Tone = "warn" if form.membership == "manual" else "dim"
        text = f"{tr('detail.membership')}{tr('colon')}{word('membership', form.membership)}"
        out.append(line(Span(text, tone)))
    return out


def _about_mode(form: Form, item: Item) -> list[Line]:
    mode = next((m for m in form.modes if m.name == item.name), None)
    if mode is None:
        return [line(Span(tr("form.mode.none.help"), "dim"))]
    out: list[Line] = []
    if reason := form.why_not(mode):
        out.append(line(Span(why_not(form, mode, reason), "warn")))
    elif (choice := form.choice(mode.name)) and choice.recommended:
        out.append(line(Span(f"{glyphs().yes} {tr('form.mode.recommended')}", "ok")))
    out.append(line(Span(said_as(mode.summary or mode.title), "dim")))
    policy = word("membership", mode.membership)
    out.append(line(Span(f"{tr('detail.membership')}{tr('colon')}{policy}", "dim")))
    return out


def why_not(form: Form, mode: ModeView | None, reason: str) -> str:
    """Why a mode cannot be chosen, as a sentence."""
    if reason == "engine" and mode is not None:
        wanted = " / ".join(mode.engines)
        return tr("form.mode.other_engine", engines=wanted, engine=form.engine)
    found = said_as(reason)
    return found[:1].upper() + found[1:] + ("" if found.endswith((".", "。")) else tr("stop"))


def _inherited(form: Form, item: Item) -> Line:
    from pdtui.state.words import written

    if item.field.kind in ("list", "env"):
        return line(Span(tr("form.about.whole"), "dim"))
    up = get(form.document, item.field.inherits)
    value = written(item.field.kind, item.field.default if up is None else up) or "-"
    key = "form.about.overrides" if item.marker == "override" else "form.about.inherits"
    return line(Span(tr(key, value=value), "dim"))


def tabs(form: Form, problems: Sequence[Problem], at: Tab) -> list[tuple[Tab, Line]]:
    """Each tab's label, with the number of its refusals and warnings."""
    from pdtui.state.findings import tab_of

    out: list[tuple[Tab, Line]] = []
    for tab in form.tabs:
        here = [p for p in problems if tab_of(p.path) == tab] if tab != "yaml" else []
        spans = [Span(word("tab", tab), "strong" if tab == at else "dim")]
        for verdict in ("refused", "warning"):
            if count := sum(p.verdict == verdict for p in here):
                seen = look(next(p for p in here if p.verdict == verdict))
                spans.append(Span(f" {seen.glyph}{count}", seen.tone))
        out.append((tab, tuple(spans)))
    return out


def verdict_line(problems: Sequence[Problem], state: str) -> Line:
    """How the document stands, on one line: what is refused, warned of, cannot be known."""
    if state != "checked":
        return line(Span(tr(f"form.{state}"), "off"))
    parts: list[Span] = []
    for verdict in ("refused", "warning", "unverified"):
        if found := [p for p in problems if p.verdict == verdict]:
            parts += [Span("  ")] if parts else []
            prefix = "verdict" if len(found) == 1 else "verdicts"
            parts.append(Span(f"{len(found)} {word(prefix, verdict)}", look(found[0]).tone))
    return tuple(parts) or line(Span(f"{glyphs().yes} {tr('form.fine')}", "ok"))
