"""Advice as lines: what it comes to, the three questions, the numbers behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pdtui.i18n import current, tr
from pdtui.present.cells import Line, Span, Tone, line
from pdtui.present.detail import fact, section

if TYPE_CHECKING:
    from backend.domain.advice.model import Advice

WORTH: dict[str, Tone] = {"yes": "ok", "no": "bad", "unclear": "warn"}
VERDICT: dict[str, Tone] = {"yes": "ok", "no": "bad", "unknown": "warn"}


def page(found: Advice) -> list[Line]:
    """The whole page."""
    language = current()
    head = Span(
        f"{found.deployment}{tr('colon')}{tr(f'advice.worth.{found.worth}')}", WORTH[found.worth]
    )
    out: list[Line] = [line(head), line(Span(found.text.text(language), "strong"))]
    for answer in found.answers:
        question = Span(f"{tr(f'advice.question.{answer.question}')}  ", "accent")
        verdict = Span(tr(f"advice.verdict.{answer.verdict}"), VERDICT[answer.verdict])
        out += [(), line(question, verdict)]
        out.append(line(Span(f"  {answer.text.text(language)}")))
    if found.suggestion or found.missing:
        out.append(())
    if found.suggestion:
        out.append(fact(tr("advice.suggestion"), Span(found.suggestion.text(language), "accent")))
    for n, missing in enumerate(found.missing):
        name = "" if n else tr("advice.missing")
        out.append(fact(name, Span(missing.text(language), "warn")))
    if found.facts:
        out += section(tr("advice.numbers"))
        for item in found.facts:
            source = tr(f"advice.source.{item.source}") if item.source else ""
            shown = (Span(f"{item.shown}  "), Span(source, "dim"))
            out.append(fact(tr(f"advice.fact.{item.name}"), shown))
    return out
