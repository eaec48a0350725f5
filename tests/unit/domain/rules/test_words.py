"""What findings say: one sentence that names both values, and what to do, in each language."""

from __future__ import annotations

import re
import string
from pathlib import Path
from typing import Any

import pytest
import yaml

from backend.domain.documents import parse_deployment
from backend.domain.errors import Problem
from backend.domain.rules.table import BY_ID, RULES
from backend.domain.rules.words import LANGUAGES, TEXT, finding, say
from tests.unit.domain.rules.conftest import Court

CASES = sorted((Path(__file__).parents[3] / "data" / "cases").glob("*.yaml"))
CHINESE = re.compile(r"[\u4e00-\u9fff]")


def names(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("key", sorted(TEXT))
def test_each_sentence_is_whole_in_every_language(key: str) -> None:
    entry = TEXT[key]
    assert set(entry) == set(LANGUAGES)
    for language in LANGUAGES:
        message, remedy = entry[language]
        assert names(message) | {"note"} == names(entry["en"][0]) | {"note"}, language
        beside = {
            "flag",
            "shorter",
            "instead",
            "known",
            "model",
            "mode",
            "adjustable",
            "services",
            "reserve",
        }
        assert names(remedy) <= names(message) | beside | {"first"}
        assert remedy
    english, chinese = entry["en"][0], entry["zh"][0]
    assert english.endswith(".")
    assert ". " not in english.replace("e.g. ", ""), "more than one sentence"
    assert english[0].islower() or english[0] == "{" or english.startswith("VLLM")
    assert CHINESE.search(chinese)
    assert chinese.endswith("。")
    assert entry["en"][1].endswith(".")
    assert entry["zh"][1].endswith("。")


@pytest.mark.parametrize("key", sorted(k for k in TEXT if k.startswith("pairing.")))
def test_pairing_names_both_values(key: str) -> None:
    used = names(TEXT[key]["en"][0])
    both = ({"prefill", "decode"}, {"role", "size"}, {"told", "real"}, {"digest", "other_digest"},
            {"version", "other_version"}, {"role", "reason"}, {"found", "wanted"})  # fmt: skip
    assert any(pair <= used for pair in both)


def test_every_sentence_belongs_to_a_rule_and_every_rule_has_one() -> None:
    scaling = {"structure.scale_role", "structure.scale_count"}
    reading = {"structure.reference"}  # asked of the text, before there is a document to judge
    assert {key.partition(":")[0] for key in TEXT} == set(BY_ID) | scaling | reading
    assert len(BY_ID) == len(RULES)


def test_a_finding_says_its_english_words_and_its_values() -> None:
    found = finding("pairing.block_size", "differ", "spec.x", prefill="16", decode="32")
    assert found.message == (
        "prefill cuts KV into blocks of 16 tokens and decode into blocks of 32, so blocks do not "
        "match."
    )
    assert found.remedy == "Give both roles the same block (page) size."
    assert (found.path, found.verdict, found.case) == ("spec.x", "refused", "differ")
    assert say(found, "zh") == (
        "prefill 的块大小是 16，decode 的是 32，块无法对应。",
        "两个角色请使用相同的块（页）大小。",
    )


def test_values_are_shown_as_words() -> None:
    found = finding("pairing.block_size", "one_side", "", "unverified", prefill=None, decode=[1, 2])
    assert "is not set and decode's is 1, 2" in found.message
    assert "未设置，decode 的：1、2" in say(found, "zh")[0]
    switch = finding("pairing.hybrid_kv_cache_manager", "differ", prefill=True, decode=False)
    assert "on on prefill and off on decode" in switch.message
    assert "为开启，在 decode 上为关闭" in say(switch, "zh")[0]


def test_a_value_that_is_missing_is_a_mistake_of_ours() -> None:
    with pytest.raises(KeyError):
        finding("pairing.block_size", "differ", prefill="16")
    with pytest.raises(KeyError):
        finding("pairing.block_size", "nonsense", prefill="16", decode="32")


def test_what_has_no_sentence_says_its_own() -> None:
    other = Problem(rule="host.other", message="m.", remedy="r.")
    assert say(other, "zh") == ("m.", "r.")


def found_in(court: Court, path: Path) -> list[Problem]:
    case: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return list(court.judge(parse_deployment(case["document"]), case.get("known", {})))


def test_every_reported_case_reads_in_both_languages(court: Court) -> None:
    for path in CASES:
        for problem in found_in(court, path):
            assert say(problem, "en")[0] == problem.message
            assert CHINESE.search(say(problem, "zh")[0]), problem.rule
            for text in (*say(problem, "en"), *say(problem, "zh")):
                assert not re.search(r"(?<!\{)\{[a-z_]+\}(?!\})", text), text


def test_every_verdict_is_one_the_table_declares(court: Court) -> None:
    for path in CASES:
        for problem in found_in(court, path):
            assert problem.verdict in BY_ID[problem.rule].verdicts or problem.values.get("allowed")
