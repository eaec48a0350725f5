"""Asking every rule about one log: the earliest cause wins, a tail never does.

Source of the order: the design's "the earliest recognised error wins; warnings only if nothing
fatal was left unrecognised", with two refinements that real logs taught. A line that is a symptom
("the handshake failed") yields to one that is a cause ("the hashes differ"), though it comes first.
For a program that has ended, what ends programs counts before what fails single requests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from backend.domain.diagnosis.model import Diagnosis, Finding, Rule
from backend.domain.diagnosis.table import BY_ID, RULES
from backend.domain.diagnosis.text import Log, bare, shown
from backend.domain.words import Words

Unknown = Literal["warning", "unrecognised"]

TRIES = 400
"""Lines that one needle is followed to: a log that repeats itself is not read to its end."""
UNRECOGNISED = 5
"""Unrecognised errors that are kept."""
JOINED = 3
"""A match over at most so many lines is shown whole, a longer one by its last line."""
UNKNOWN = "?"
"""What stands for a value that the line does not tell; in brackets it goes with them."""

_ERROR = re.compile(
    r"^(?:[\w.]{1,120}(?:Error|Exception|Interrupt|Exit)(?:: ?\S|$)"
    r"|(?:[\w.-]{1,40} ){0,3}[Ee]rror: ?\S|Value error, \S"
    r"|thread '[^']*' panicked|panic: |fatal error|FATAL|Fatal Python error"
    r"|Segmentation fault|Aborted\b|Killed$|Bus error|Illegal instruction)"
)
_GLOG_ERROR = re.compile(r"^[EF]\d{4,8} \d\d:\d\d:\d\d")
_LEVEL_ERROR = re.compile(r"^.{0,80}?\b(?:ERROR|CRITICAL|FATAL)\b[\s:\]]")
_CALM = re.compile(r"\b(?:WARNING|WARN|INFO|DEBUG)\b")
_BRACKETS = re.compile(r" ?[(（][^()（）]{0,200}\?[^()（）]{0,200}[)）]")
_STACK = re.compile(r"^(?:File \"|Traceback \(|[~^\s]+$|During handling of|The above exception)")


@dataclass(frozen=True)
class Hit:
    """A rule met lines: the first one's number, from 0, what its pattern's groups hold, the line
    that the match ends in, and every line that it met."""

    rule: Rule
    number: int
    values: dict[str, str]
    last: int
    lines: frozenset[int]


def diagnose(
    text: str,
    *,
    name: str = "",
    role: str = "",
    ended: bool | None = None,
    generation: int = 0,
    truncated: bool = False,
) -> Diagnosis:
    """What a log says. `ended` is whether its program has ended, None where that is not known."""
    log = Log(text)
    hits, masked, tails = _hits(log)
    stop = min((h.number for h in hits if h.rule.severity == "asked"), default=log.lines)
    kept = [h for h in hits if h.number <= stop]
    known = {n for h in kept for n in h.lines} | masked | tails
    findings = [_finding(log, h) for h in kept]
    findings += _unrecognised(log, known, stop, weak=not findings)
    if ended and not findings:
        findings = _last(log, masked | tails)
    findings.sort(key=lambda f: f.line)
    first = min(findings, key=lambda f: (_rank(f, ended), f.line), default=None)
    others = tuple(f for f in findings if f is not first)
    return Diagnosis(
        name=name,
        role=role,
        generation=generation,
        first=first,
        others=others,
        lines=log.lines,
        truncated=log.truncated or truncated,
    )


def _rank(finding: Finding, ended: bool | None) -> int:
    """How much a finding has to say, lower says more."""
    rule = BY_ID.get(finding.rule)
    if rule is None:
        return 4 if finding.severity == "unrecognised" else 6
    if rule.severity == "asked":
        return 8
    if rule.severity == "warning":
        return 7
    if rule.alone:
        return 5
    if rule.symptom:
        return 1 if rule.ends and ended else 3
    return 2 if ended and not rule.ends else 0


def _hits(log: Log) -> tuple[list[Hit], set[int], set[int]]:
    """Every rule's first line, the lines of harmless rules, and those of consequences."""
    masked: set[int] = set()
    tails: set[int] = set()
    for rule in RULES:
        if rule.severity == "harmless":
            masked |= {n for n, _ in _lines(log, rule)}
        elif rule.severity == "consequence":
            tails |= {n for n, _ in _lines(log, rule)}
    found: list[Hit] = []
    taken: set[int] = set()
    for rule in RULES:
        if rule.severity in ("harmless", "consequence"):
            continue
        hit = _first(log, rule, masked)
        if hit is not None and hit.number not in taken:  # the table's earlier rule knows it better
            found.append(hit)
            taken |= {hit.number, hit.last}
    return found, masked, tails


def _first(log: Log, rule: Rule, masked: set[int]) -> Hit | None:
    met = [(n, m) for n, m in _lines(log, rule) if n not in masked]
    if not met:
        return None
    number, match = met[0]
    values: dict[str, str] = {}
    last = number
    if match is not None:
        values = {k: shown(v or UNKNOWN) for k, v in match.groupdict().items()}
        last = number + match.string.count("\n", 0, match.end())
    return Hit(rule, number, values, last, frozenset(n for n, _ in met) | {last})


def _lines(log: Log, rule: Rule) -> Iterator[tuple[int, re.Match[str] | None]]:
    """The lines that a rule matches, in order, and the pattern's match."""
    pattern = _compiled(rule.pattern) if rule.pattern else None
    tried: dict[int, int] = {}
    for needle in rule.needles:
        place, left = log.text.find(needle), TRIES
        while place >= 0 and left:
            number = log.number(place)
            tried.setdefault(number, place)
            place, left = log.text.find(needle, log.bounds(number)[1]), left - 1
    for number in sorted(tried):
        if pattern is None:
            yield number, None
        elif match := pattern.search(log.window(tried[number], rule.span)):
            yield number, match


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _finding(log: Log, hit: Hit) -> Finding:
    rule = hit.rule
    place = hit.number if hit.last - hit.number < JOINED else hit.last
    lines = [bare(log.line(n)) for n in range(place, hit.last + 1)]
    context, at = log.around(place, after=2 + hit.last - place)
    severity = rule.severity
    assert severity in ("fatal", "warning", "asked")
    return Finding(
        rule=rule.id,
        severity=severity,
        line=place + 1,
        text=shown(" ".join(x for x in lines if x)),
        count=len(hit.lines - {hit.last}) or 1,
        cause=_said(rule.cause, hit.values),
        remedy=_said(rule.remedy, hit.values),
        context=context,
        at=at,
        values={k: v for k, v in hit.values.items() if v != UNKNOWN},
    )


def _said(words: Words, values: dict[str, str]) -> Words:
    filled = words.filled(values)
    if UNKNOWN not in values.values():
        return filled
    return Words(en=_BRACKETS.sub("", filled.en), zh=_BRACKETS.sub("", filled.zh))


def _unrecognised(log: Log, known: set[int], stop: int, *, weak: bool) -> list[Finding]:
    """Lines that tell of an error which no rule knows: exceptions; with `weak` the first line of
    level ERROR where there are none."""
    strong: list[Finding] = []
    lesser: list[Finding] = []
    for number in range(min(log.lines, stop)):
        if number in known:
            continue
        line = log.line(number)
        said = bare(line)
        calm = _CALM.search(line, 0, len(line) - len(said))
        if not said or calm or _of_stack(log, number, said):
            continue
        if _ERROR.match(said) or _GLOG_ERROR.match(line):
            strong.append(_plain(log, number, said, "unrecognised"))
            if len(strong) >= UNRECOGNISED:
                break
        elif weak and not lesser and len(said) < len(line) and _LEVEL_ERROR.match(line):
            lesser.append(_plain(log, number, said, "warning"))
    return strong or lesser


def _of_stack(log: Log, number: int, said: str) -> bool:
    """Whether a line is of a traceback: its frame, or the frame's line of source below it."""
    above = bare(log.line(number - 1)) if number else ""
    return bool(_STACK.match(said)) or above.startswith('File "')


def _last(log: Log, quiet: set[int]) -> list[Finding]:
    """What an ended program said last, where nothing it said is known: better than nothing."""
    for number in range(log.lines - 1, max(-1, log.lines - 1 - TRIES), -1):
        said = bare(log.line(number))
        if said and number not in quiet and not _of_stack(log, number, said):
            return [_plain(log, number, said, "unrecognised")]
    return []


def _plain(log: Log, number: int, said: str, severity: Unknown) -> Finding:
    context, at = log.around(number)
    return Finding(
        severity=severity,
        line=number + 1,
        text=shown(said.partition(" [type=")[0]),  # pydantic's own bookkeeping
        cause=Words(),
        context=context,
        at=at,
    )
