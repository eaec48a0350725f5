"""The three questions, answered for cases whose answer is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from backend.domain.advice.estimate import Rates
from backend.domain.advice.judge import Case, advise
from backend.domain.advice.kv import kv_size
from backend.domain.advice.model import Advice, Link, Size, Traffic
from backend.domain.advice.shown import duration, size
from backend.domain.words import both
from tests.unit.domain.advice.test_kv import LLAMA_8B, QWEN3_32B

GBIT = 1e9 / 8
LONG = Traffic(8000, 400, 4, "given")
CASE = Case(
    deployment="chat",
    prefill=Size(2, 2, 2, ("--max-num-seqs", "8")),
    decode=Size(1, 2, 2, ("--max-num-seqs", "256")),
    kv=kv_size(QWEN3_32B, tensor=2),
    traffic=LONG,
    link=Link(200 * GBIT, "given"),
    rates=Rates(20_000, 2_500),
    rates_source="given",
)


def verdicts(advice: Advice) -> tuple[str, ...]:
    """Worth, then the three answers."""
    return (advice.worth, *(a.verdict for a in advice.answers))


def text(advice: Advice, question: str) -> str:
    """What is said to a question."""
    return next(a.text.en for a in advice.answers if a.question == question)


@pytest.mark.parametrize(
    ("change", "seen"),
    [
        ({}, ("yes", "yes", "yes", "yes")),
        # a slow link: 8000 tokens of 256 KiB take 17 s on 1 Gbit/s
        ({"link": Link(GBIT, "given")}, ("no", "yes", "yes", "no")),
        # cheap for one prompt, but 40 a second fill the link
        ({"link": Link(50 * GBIT, "given"), "traffic": replace(LONG, rps=40)},
         ("no", "yes", "yes", "no")),
        # short prompts and answers
        ({"traffic": Traffic(128, 128, 50, "given")}, ("no", "yes", "no", "yes")),
        # long answers to short prompts: prefill takes nothing of note
        ({"traffic": Traffic(200, 4000, 1, "given"), "prefill": Size(1, 2, 2),
          "decode": Size(1, 2, 2)}, ("yes", "no", "yes", "yes")),
        ({"traffic": Traffic(1000, 900, 1, "given")}, ("yes", "yes", "no", "yes")),
        ({"traffic": Traffic(1000, 900, 1, "given"), "rates": Rates(200_000, 2_000),
          "link": Link(4000 * GBIT, "given")}, ("no", "no", "no", "yes")),
        # nothing is known: nothing is claimed
        ({"traffic": Traffic(), "link": Link(), "rates": Rates()},
         ("unclear", "yes", "unknown", "unknown")),
        ({"kv": both("layers compress", "层会压缩"), "rates": Rates()},
         ("unclear", "yes", "yes", "unknown")),
        ({"prefill": Size(1, 1, 1), "decode": Size(0, 1, 1)}, ("no", "yes", "yes", "yes")),
        # a transfer of about half the prefill is neither cheap nor too dear
        ({"link": Link(80 * GBIT, "given"), "traffic": replace(LONG, rps=2)},
         ("unclear", "yes", "yes", "unknown")),
    ],
)  # fmt: skip
def test_what_it_comes_to(change: dict[str, Any], seen: tuple[str, ...]) -> None:
    advice = advise(replace(CASE, **change))
    assert verdicts(advice) == seen
    for words in (advice.text, *(a.text for a in advice.answers)):
        assert words.en
        assert words.zh
        assert "{" not in words.en + words.zh


def test_the_numbers_are_told() -> None:
    advice = advise(CASE)
    assert text(advice, "ratio") == (
        "8,000 tokens in and 400 out (20:1) are far from 1:1: the sides want other sizes."
    )
    assert "A prompt's 1.95 GiB of KV take 83.9 ms on the link." in text(advice, "transfer")
    assert "Its prefill takes 400 ms: the transfer adds 21 %." in text(advice, "transfer")
    assert "would take 71 % of the time" in text(advice, "parameters")
    assert advice.suggestion.en == (
        "The load asks for about 2:1 (now 2:1). At most 70 % busy it takes 3 prefill and 1 decode "
        "members."
    )
    facts = {f.name: (f.shown, f.source) for f in advice.facts}
    assert facts["kv_per_token"] == ("256 KiB", "")
    assert facts["link"] == ("200 Gbit/s", "given")
    assert facts["prefill_busy"] == ("80 %", "estimated")
    assert facts["decode_busy"] == ("64 %", "estimated")
    assert advice.missing == ()


def test_what_is_missing_is_said() -> None:
    advice = advise(
        replace(
            CASE,
            traffic=Traffic(),
            link=Link(),
            rates=Rates(),
            kv=both("layers compress", "层会压缩"),
        )
    )
    said = " ".join(m.en for m in advice.missing)
    for part in ("--prompt-tokens", "layers compress", "--link-gbit", "--prefill-rate"):
        assert part in said
    assert advice.suggestion.en == ""


def test_not_worth_it_names_the_alternative() -> None:
    advice = advise(replace(CASE, traffic=Traffic(128, 128, 50, "given")))
    assert "without disaggregation" in advice.suggestion.en
    assert "不使用分离部署" in advice.suggestion.zh


def test_a_token_of_kv_is_told_even_where_the_link_is_not_known() -> None:
    advice = advise(replace(CASE, kv=kv_size(LLAMA_8B), link=Link()))
    assert text(advice, "transfer") == (
        "A prompt token makes 128 KiB of KV; the link's speed is not known."
    )


@pytest.mark.parametrize(
    ("value", "shown"), [(0, "0 B"), (70272, "68.6 KiB"), (3 << 30, "3 GiB"), (5 << 42, "20 TiB")]
)
def test_sizes(value: float, shown: str) -> None:
    assert size(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(2e-5, "20 µs"), (0.0839, "83.9 ms"), (17.2, "17.2 s")]
)
def test_durations(value: float, shown: str) -> None:
    assert duration(value) == shown
