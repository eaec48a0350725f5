"""What is told, as data: every sentence in both languages over the same values."""

from __future__ import annotations

import re
from pathlib import Path
from string import Formatter

import pytest

from backend.domain.errors import Problem
from backend.domain.rules.words import finding
from backend.domain.telling import TEXT, Said, all_told, plainly, problem, rewritten, said, told

BACKEND = Path(__file__).parents[3] / "backend"


def names(template: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(template) if name}


@pytest.mark.parametrize("key", sorted(TEXT))
def test_every_sentence_is_in_both_languages_over_the_same_values(key: str) -> None:
    english, chinese = TEXT[key]
    assert names(english) == names(chinese)
    values = {name: f"<{name}>" for name in names(english)}
    for language, template in (("en", english), ("zh", chinese)):
        text = told(said(key, **values), language)  # type: ignore[arg-type]
        assert all(value in text for value in values.values()), template
    if re.search("[A-Za-z]", re.sub(r"{.*?}", "", english)):
        assert re.search("[\u4e00-\u9fff]", chinese)


def test_every_sentence_that_the_backend_names_is_written_and_every_one_written_is_named() -> None:
    """Names in full; those of a kind (`host.{verb}`) by what they begin with."""
    used, begun = set(), set()
    for file in BACKEND.rglob("*.py"):
        if "telling" in file.parts:
            continue
        text = file.read_text()
        used |= set(re.findall(r'"([a-z_]+(?:\.[a-z_]+)*)"', text))
        begun |= set(re.findall(r'said\(\s*f"([a-z_.]+)\{', text))
    unused = {k for k in TEXT if k not in used and not k.startswith(tuple(begun))}
    assert not unused
    literal = {
        key
        for file in BACKEND.rglob("*.py")
        for key in re.findall(r'\bsaid\(\s*"([a-z_.]+)"', file.read_text())
    }
    assert literal <= set(TEXT)


def test_what_is_told_within_something_told_is_in_the_same_language() -> None:
    meant = [said("out.stale", instance="p1"), said("out.last_stale", role="prefill")]
    line = said("taken_out", instance="p1", meant=meant)
    assert Said.model_validate_json(line.model_dump_json()) == line
    assert told(line, "en").startswith("p1 is to go. p1 will not be re-created before the restart")
    assert told(line, "zh").startswith("p1 将被移除。重启前不会重建 p1")
    assert "没有剩余的 prefill 成员" in told(line, "zh")
    alone = said("taken_out", instance="p1", meant=[])
    assert (told(alone, "en"), told(alone, "zh")) == ("p1 is to go.", "p1 将被移除。")
    because = said("because", why="exit code 1")
    ended = said("exited", instance="p1", host="a", why=because)
    assert told(ended, "en") == "p1 has ended by itself on a (exit code 1)"
    assert told(ended, "zh") == "a 上的 p1 自行退出（exit code 1）"


def test_a_failure_is_told_with_its_remedy_in_the_words_of_its_rule() -> None:
    known = problem(
        finding("placement.too_wide", "", "spec", role="prefill", needed=4, widest=2, host="a")
    )
    assert told(known, "en").startswith("spec: one prefill member needs 4 accelerators")
    assert "请将 accelerators 设为 2 或更小" in told(known, "zh")
    other = problem(Problem(rule="x.y", message="it failed.", remedy="Look."))
    assert told(other, "zh") == "it failed. Look."


def test_what_a_later_version_told_is_still_shown() -> None:
    assert told(Said(id="later.thing", values={"n": 3}), "en") == "later.thing {'n': '3'}"
    assert all_told([plainly("one."), plainly("two.")], "en") == "one. two."
    with pytest.raises(KeyError):
        said("no.such.sentence")
    with pytest.raises(KeyError):
        said("deleted")


def test_every_text_of_what_is_told_can_be_rewritten() -> None:
    """As secrets are hidden before anything is stored."""
    line = said("exited", instance="p1", host="a", why=said("because", why="key s3cret"))
    hidden = rewritten(line, lambda text: text.replace("s3cret", "***"))
    assert told(hidden, "en") == "p1 has ended by itself on a (key ***)"
    assert hidden.id == line.id
