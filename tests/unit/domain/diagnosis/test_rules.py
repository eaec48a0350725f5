"""Every rule of diagnosis: it knows its own sample, and costs what a line costs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from re import _constants as constants  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from string import Formatter
from typing import Any

import pytest

from backend.domain.diagnosis.model import Rule
from backend.domain.diagnosis.scan import diagnose
from backend.domain.diagnosis.table import BY_ID, RULES

CAUSES = [r for r in RULES if r.severity in ("fatal", "warning", "asked")]
QUIET = [r for r in RULES if r.severity in ("harmless", "consequence")]


@pytest.mark.parametrize("rule", CAUSES, ids=lambda r: r.id)
@pytest.mark.parametrize("ended", [True, False, None])
def test_a_rule_knows_its_own_sample(rule: Rule, ended: bool | None) -> None:
    found = diagnose(rule.sample, ended=ended)
    assert found.first is not None
    assert (found.first.rule, found.first.severity) == (rule.id, rule.severity)
    assert found.first.text
    for words in (found.first.cause, found.first.remedy):
        assert words.en
        assert words.zh
        assert "{" not in words.en + words.zh


@pytest.mark.parametrize("rule", QUIET, ids=lambda r: r.id)
def test_a_line_that_is_no_cause_is_never_one(rule: Rule) -> None:
    assert diagnose(rule.sample).first is None


@pytest.mark.parametrize("rule", CAUSES, ids=lambda r: r.id)
def test_noise_around_a_cause_changes_nothing(rule: Rule) -> None:
    before = [q.sample for q in QUIET if q.severity == "harmless"]
    after = [q.sample for q in QUIET if q.severity == "consequence"]
    found = diagnose("\n".join([*before, rule.sample, *after]))
    assert found.first is not None
    assert found.first.rule == rule.id


def test_ids_are_unique_and_named_by_topic() -> None:
    assert Counter(r.id for r in RULES).most_common(1)[0][1] == 1
    assert len(BY_ID) == len(RULES) > 100
    assert all(re.fullmatch(r"[a-z]+\.[a-z_]+", r.id) for r in RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.id)
def test_a_rule_says_what_it_can_fill_and_where_it_comes_from(rule: Rule) -> None:
    groups = set(re.compile(rule.pattern).groupindex) if rule.pattern else set()
    for template in (rule.cause.en, rule.cause.zh, rule.remedy.en, rule.remedy.zh):
        assert {name for _, name, _, _ in Formatter().parse(template) if name} <= groups
    assert rule.source
    assert any(n in rule.sample for n in rule.needles)
    if rule in CAUSES:
        assert rule.remedy.en
        assert rule.remedy.zh
        assert re.search(r"[\u4e00-\u9fff]", rule.cause.zh)


@pytest.mark.parametrize("rule", [r for r in RULES if r.pattern], ids=lambda r: r.id)
def test_no_pattern_can_take_more_than_a_lines_time(rule: Rule) -> None:
    """No repetition inside a repetition, and at most one without a limit: linear, or nearly so."""
    depths = list(_repeats(parser.parse(rule.pattern)))
    assert all(depth == 1 for depth, _ in depths), "a repetition inside a repetition"
    assert sum(1 for _, wide in depths if wide) <= 1


def _repeats(tree: Any, depth: int = 0) -> Iterator[tuple[int, bool]]:
    """The depth of every repetition of many, and whether it takes anything without a limit."""
    for op, argument in tree:
        if op in (constants.MAX_REPEAT, constants.MIN_REPEAT, constants.POSSESSIVE_REPEAT):
            _, most, inner = argument
            many = most > 1
            if many:
                wide = most == constants.MAXREPEAT and any(
                    o is constants.ANY or (o is constants.IN and len(a) > 1 and _all(a))
                    for o, a in inner
                )
                yield depth + 1, wide
            yield from _repeats(inner, depth + many)
        elif op is constants.SUBPATTERN:
            yield from _repeats(argument[3], depth)
        elif op is constants.BRANCH:
            for branch in argument[1]:
                yield from _repeats(branch, depth)


def _all(members: Any) -> bool:
    return {a for o, a in members if o is constants.CATEGORY} >= {
        constants.CATEGORY_SPACE,
        constants.CATEGORY_NOT_SPACE,
    }
