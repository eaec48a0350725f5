"""The words of diagnosis: a rule, and what one finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from backend.domain.value import Value
from backend.domain.words import SILENCE, Words

Severity = Literal["fatal", "warning", "harmless", "consequence", "asked"]


@dataclass(frozen=True)
class Rule:
    """One known line, and what it means.

    `id` is `topic.name`. `needles` are literals of which every matching line holds one; a log that
    holds none never meets `pattern`, which is searched in the line and the `span` lines after it,
    and whose named groups fill the `{placeholders}` of `cause` and `remedy`.

    `severity`: `fatal` keeps the program from serving. `warning` may be the cause where nothing
    fatal was found. `harmless` only looks like an error: such a line is no other rule's either.
    `consequence` is the tail of some failure and never its cause. `asked`: it was told to end, and
    what follows is no failure.

    `symptom`: a fatal line whose cause stands elsewhere, in this log or in a peer's; it yields to
    any cause. `alone`: one that is the cause only where the log tells of no other error, known or
    not. `ends` is false where the program lives on and requests fail. `band` is the port band that
    is meant when the line names no port. `sample` is a real line, from `source`.
    """

    id: str
    severity: Severity
    needles: tuple[str, ...]
    cause: Words
    sample: str
    source: str
    pattern: str = ""
    remedy: Words = SILENCE
    symptom: bool = False
    alone: bool = False
    ends: bool = True
    span: int = 0
    band: str = ""

    @property
    def topic(self) -> str:
        """The first part of the id."""
        return self.id.partition(".")[0]


class Finding(Value):
    """A recognised line of a log, or an unrecognised one that tells of an error (`rule` empty).

    `line` counts from 1 in the text that was read; `text` is the line without its log prefix, at
    most `TEXT_MOST` characters; `count` how often such lines came. `context` are the lines around
    it and `at` is its place among them. `notes` name who holds a port, whose an address is, where
    the two sides differ. `explains` are findings of peers that this one is the cause of, as
    `instance rule`.
    """

    rule: str = ""
    severity: Literal["fatal", "warning", "asked", "unrecognised"] = "fatal"
    line: int = 0
    text: str = ""
    count: int = 1
    cause: Words = SILENCE
    remedy: Words = SILENCE
    context: tuple[str, ...] = ()
    at: int = 0
    values: dict[str, str] = Field(default_factory=dict)
    notes: tuple[Words, ...] = ()
    explains: tuple[str, ...] = ()


class Diagnosis(Value):
    """What the logs of one instance, or one file, say.

    `first` is the first cause, None where nothing tells of an error; `others` are the rest in the
    order of the log. `generation` is the attempt that was read; `truncated` says that its middle
    was left out. `peer` names the instance whose own finding is the cause of `first`; `unread` is
    why there is no log. `previous` are earlier attempts that ended, the newest first.
    """

    name: str = ""
    role: str = ""
    generation: int = 0
    first: Finding | None = None
    others: tuple[Finding, ...] = ()
    lines: int = 0
    truncated: bool = False
    peer: str = ""
    unread: str = ""
    previous: tuple[Diagnosis, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All of them, the first cause first."""
        return (self.first, *self.others) if self.first else self.others


class GroupDiagnosis(Value):
    """A group's logs read together: its causes, those that explain most first, and each member.

    `causes` are instances whose first finding no peer's cause explains.
    """

    group: str
    causes: tuple[str, ...] = ()
    members: tuple[Diagnosis, ...] = ()

    def of(self, instance: str) -> Diagnosis | None:
        """That member's diagnosis."""
        return next((d for d in self.members if d.name == instance), None)


def one_line(finding: Finding) -> str:
    """A finding in one English line: its cause, whose the port is, and the log's own words where no
    rule knows better."""
    if not finding.cause:
        return finding.text
    notes = " ".join(n.en for n in finding.notes[:1])
    return f"{finding.cause.en} {notes}".strip()


def why_ended(found: Diagnosis, earlier: Sequence[Diagnosis]) -> str:
    """Why a program ended, in one English line; empty where nothing tells.

    The first attempt of several counts most: the later ones often fail of what it left behind (a
    port that its orphan still holds).
    """
    latest = one_line(found.first) if found.first else ""
    for attempt in reversed(earlier):
        first = attempt.first
        if first is not None and first.severity == "fatal":
            if found.first is not None and first.rule == found.first.rule:
                break
            begun = f"attempt {attempt.generation}: {one_line(first)}"
            return f"{begun} Attempt {found.generation}: {latest}" if latest else begun
    return latest
