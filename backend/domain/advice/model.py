"""The words of advice: what is known, the three questions answered, and what follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from backend.domain.value import Value
from backend.domain.words import SILENCE, Words

Source = Literal["measured", "given", "estimated", ""]
Verdict = Literal["yes", "no", "unknown"]
Worth = Literal["yes", "no", "unclear"]
Question = Literal["parameters", "ratio", "transfer"]


@dataclass(frozen=True)
class Traffic:
    """A group's load: tokens of a prompt and of an answer on average, requests a second."""

    prompt_tokens: float | None = None
    output_tokens: float | None = None
    rps: float | None = None
    source: Source = ""


@dataclass(frozen=True)
class Link:
    """The way between prefill and decode, bytes a second, and how that is known."""

    bytes_per_s: float | None = None
    source: Source = ""


@dataclass(frozen=True)
class Size:
    """A role: members, accelerators of each, tensor parallel size, parameters as written."""

    members: int
    accelerators: int
    tensor: int
    parameters: tuple[str, ...] = ()


class Answer(Value):
    """One of the three questions: `parameters`, `ratio`, `transfer`; `yes` speaks for PD."""

    question: Question
    verdict: Verdict
    text: Words


class Fact(Value):
    """A number that the answers rest on: its name, its value as shown, how it is known."""

    name: str
    value: float
    shown: str
    source: Source = ""


class Advice(Value):
    """Whether disaggregation is worth it: `unclear` where too little is known to say.

    `missing` says what would have to be known. `suggestion` is a ratio, or what to do instead.
    """

    deployment: str
    worth: Worth
    text: Words
    answers: tuple[Answer, ...] = ()
    facts: tuple[Fact, ...] = ()
    suggestion: Words = SILENCE
    missing: tuple[Words, ...] = ()
