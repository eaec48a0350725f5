"""Every sentence a save can be answered with: a document that it answers, its path and its words.

The file is reviewed as text: what a change of the rules or of their words does shows there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from backend.domain.documents import parse_deployment
from backend.domain.rules.words import TEXT, say
from tests.unit.domain.rules.conftest import Court

FILE = Path(__file__).parents[3] / "data" / "findings.yaml"
FINDINGS: list[dict[str, Any]] = yaml.load(FILE.read_text(encoding="utf-8"), yaml.CSafeLoader)  # noqa: TID251
ELSEWHERE = {
    "structure.scale_role:router", "structure.scale_role:unknown", "structure.scale_count:",
    "mode.version_range:range", "structure.reference:quoted", "structure.reference:elsewhere",
}  # fmt: skip
"""Said of a scale, of a document that cannot be read, or of a range without a reason, which no
built-in mode has."""


def key(entry: dict[str, Any]) -> str:
    return f"{entry['finding']['rule']}:{entry['finding']['case']}"


@pytest.mark.parametrize("entry", FINDINGS, ids=key)
def test_a_finding(court: Court, entry: dict[str, Any]) -> None:
    expected = entry["finding"]
    found = court.judge(parse_deployment(entry["document"]), entry.get("known", {}))
    (one,) = [p for p in found if key({"finding": p.model_dump()}) == key(entry)][:1]
    message, remedy = say(one, "zh")
    assert {
        "verdict": one.verdict, "rule": one.rule, "case": one.case, "path": one.path,
        "en": f"{one.message} {one.remedy}", "zh": message + remedy,
    } == expected  # fmt: skip


def test_every_sentence_is_there() -> None:
    assert {key(e) for e in FINDINGS} | ELSEWHERE == set(TEXT)
