"""Findings of the rules: how each verdict is drawn, and its sentence in the reader's language."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pdtui.i18n import current
from pdtui.i18n.catalog import word
from pdtui.present.cells import Tone
from pdtui.present.status import Look, glyphs

if TYPE_CHECKING:
    from backend.domain.errors import Problem

_TONES: dict[str, Tone] = {"refused": "bad", "warning": "warn", "unverified": "busy", "fine": "ok"}
ORDER = ("refused", "warning", "unverified", "fine")


def look(problem: Problem) -> Look:
    """Glyph, word and tone of a verdict."""
    marks = glyphs()
    glyph = {"refused": marks.cross, "warning": marks.warn, "unverified": "?", "fine": marks.yes}
    verdict = problem.verdict
    return Look(glyph[verdict], word("verdict", verdict), _TONES[verdict])


def gravest(problems: Sequence[Problem]) -> Problem | None:
    """The worst of them."""
    return min(problems, key=lambda p: ORDER.index(p.verdict), default=None)


def said(problem: Problem) -> tuple[str, str]:
    """Message and remedy in the language in use; as they came where nobody translated them."""
    from backend.domain.rules.words import say

    if current() == "en":
        return problem.message, problem.remedy
    return say(problem, current())
