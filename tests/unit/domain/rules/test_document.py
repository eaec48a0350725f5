"""docs/rules.md is what the table of rules says."""

from __future__ import annotations

from pathlib import Path

import pytest

from backend.domain.rules.document import document
from backend.domain.rules.table import RULES
from modes import generate_rules


def test_the_page_is_up_to_date() -> None:
    assert generate_rules.DOCS.read_text(encoding="utf-8") == document()
    assert generate_rules.main(["--check"]) == 0


def test_a_page_that_is_not_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(generate_rules, "DOCS", tmp_path / "rules.md")
    assert generate_rules.main(["--check"]) == 1
    assert "python -m modes.generate_rules" in capsys.readouterr().err
    assert generate_rules.main([]) == 0
    assert generate_rules.main(["--check"]) == 0


def test_it_names_every_rule_and_what_it_says_in_both_languages() -> None:
    text = document()
    for rule in RULES:
        assert f"\n## {rule.id}\n" in text
        assert rule.summary in text
    assert "prefill cuts KV into blocks of PREFILL tokens" in text
    assert "prefill 的块大小是 PREFILL" in text
