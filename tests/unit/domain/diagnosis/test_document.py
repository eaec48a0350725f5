"""docs/troubleshooting.md is what the rules of diagnosis say."""

from __future__ import annotations

from pathlib import Path

import pytest

from backend.domain.diagnosis.document import anchor, document, link
from backend.domain.diagnosis.table import RULES
from modes import generate_troubleshooting


def test_the_page_is_up_to_date() -> None:
    assert generate_troubleshooting.DOCS.read_text(encoding="utf-8") == document()
    assert generate_troubleshooting.main(["--check"]) == 0


def test_a_page_that_is_not_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(generate_troubleshooting, "DOCS", tmp_path / "troubleshooting.md")
    assert generate_troubleshooting.main(["--check"]) == 1
    assert "python -m modes.generate_troubleshooting" in capsys.readouterr().err
    assert generate_troubleshooting.main([]) == 0
    assert generate_troubleshooting.main(["--check"]) == 0


def test_it_names_every_rule_and_what_it_says_in_both_languages() -> None:
    text = document()
    for rule in RULES:
        if rule.severity in ("fatal", "warning", "asked"):
            assert f"\n### {rule.id}\n" in text
            assert f"(#{anchor(rule.id)})" in text
            assert rule.source in text
        elif rule.severity == "harmless":
            assert rule.cause.en in text
    assert "The roles' KV block sizes do not fit each other: *OURS* here" in text
    assert "两个角色的 KV 块大小不匹配：本侧 *OURS*" in text


def test_a_rule_links_to_its_part() -> None:
    assert link("pairing.nixl_hash") == "docs/troubleshooting.md#pairingnixl_hash"
    assert link("") == "docs/troubleshooting.md"
