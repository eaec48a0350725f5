"""What people reported, as documents: each is judged as expected, and its opposite is let pass."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from backend.domain.documents import parse_deployment
from tests.unit.domain.rules.conftest import Court

CASES = sorted((Path(__file__).parents[3] / "data" / "cases").glob("*.yaml"))


def patched(base: Any, patch: Any) -> Any:
    """`patch` merged over `base`; null takes a key out, as a merge patch does."""
    if not isinstance(base, dict) or not isinstance(patch, dict):
        return patch
    result = {**base}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = patched(result.get(key, {}), value)
    return result


def verdicts(court: Court, document: Any, about: dict[str, Any]) -> list[str]:
    found = court.judge(parse_deployment(document), about)
    return sorted(f"{p.verdict} {p.rule} {p.path}" for p in found)


@pytest.mark.parametrize("path", CASES, ids=[p.stem for p in CASES])
def test_a_reported_case_and_its_opposite(court: Court, path: Path) -> None:
    case = yaml.safe_load(path.read_text(encoding="utf-8"))
    about = case.get("known", {})
    assert verdicts(court, case["document"], about) == sorted(case["expect"])
    opposite = patched(case["document"], case["opposite"])
    assert opposite != case["document"]
    assert verdicts(court, opposite, about) == sorted(case["then"])


def test_every_case_names_its_report() -> None:
    assert len(CASES) >= 60
    for path in CASES:
        text = path.read_text(encoding="utf-8")
        assert re.match(r"# \S.*\n# Report: \S.+\n", text), path.name
