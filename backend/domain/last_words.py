"""The line of an ended program's log that most likely says why it ended. Pure.

The earliest error wins: what follows it (a stack of callers, "Engine core initialization failed")
is its consequence and never the cause.
"""

from __future__ import annotations

import re

LONGEST = 240
"""Characters of a line that are shown."""

_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_PREFIX = re.compile(r"^\([\w ]+ pid=\d+\)\s*(?:(?:ERROR|CRITICAL)\s+[\d-]+ [\d:.]+\s*)?")
_SOURCE = re.compile(r"^(?:\w+\s+[\d-]+ [\d:.,]+\s+)?\[[\w.]+:\d+\]\s*")
_ERROR = re.compile(
    r"^(?:[\w.]+(?:Error|Exception|Interrupt)|[\w.: -]*\berror|Value error|panic\w*|FATAL|fatal)"
    r"\s*[:,]\s*\S|^thread '.*' panicked|program not found on this host",
    re.I,
)
_VALIDATION = re.compile(r"\d+ validation errors? for \w+$")
_CONSEQUENCE = re.compile(
    r"Engine core initialization failed|See root cause above|Failed core proc|"
    r"leaked (?:semaphore|shared_memory)|resource_tracker|CancelledError",
    re.I,
)


def last_words(log: str) -> str:
    """The line that says why, without its log prefix; empty for an empty log."""
    lines = [_bare(line) for line in log.splitlines()]
    for number, line in enumerate(lines):
        if not _ERROR.search(line) or _CONSEQUENCE.search(line):
            continue
        if _VALIDATION.search(line):  # pydantic says what below its headline
            told = [t for t in lines[number + 1 :] if t and not t.startswith("For further")][:2]
            head = [] if line.startswith("pydantic") else [line]
            line = " ".join([*head, *told]) or line
        return _cut(line)
    return _cut(next((text for text in reversed(lines) if text), ""))


def _bare(line: str) -> str:
    text = _ANSI.sub("", line)
    if re.match(r"^(?:\([\w ]+ pid=\d+\)\s*)?(?:WARNING|INFO|DEBUG)\b", text):
        return ""
    return _SOURCE.sub("", _PREFIX.sub("", text)).strip()


def _cut(line: str) -> str:
    line = line.partition(" [type=")[0]  # pydantic's own bookkeeping
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"
