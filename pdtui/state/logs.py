"""Pure: what a log line is to a reader: a probe of ours, an error, a moment in time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_PROBE = re.compile(r'"GET /(?:health|metrics|workers)(?:\?\S*)? HTTP/\d(?:\.\d)?"\s+200\b')
_BAD = re.compile(
    r"\b(ERROR|CRITICAL|FATAL|Traceback)\b|\b\w+(Error|Exception): |^E\d{4} "
    r"|^(?:\S+: )?(?:fatal )?error: |\bpanicked at\b|^Segmentation fault\b|^Killed$"
    r"|^(?:[^\s:]+(?: line)? ?\d*: )+"
    r"(?:not found|[Cc]ommand not found|Permission denied|No such file or directory)$"
)
"""Levels of loggers, ends of tracebacks; what says so in other ways: the readers of command lines
(argparse, clap), Rust's runtime, the shell."""
_TIME = re.compile(r"(?:(\d{2})-(\d{2})[ T])?(\d{2}):(\d{2}):(\d{2})(?:[.,](\d{1,6}))?")


def is_probe(text: str) -> bool:
    """A request that pdtui itself keeps making, answered as it should be."""
    return "GET /" in text and _PROBE.search(text) is not None


def is_error(text: str) -> bool:
    """A line that an engine or a router means as an error."""
    return _BAD.search(text) is not None


_TRACEBACK = "Traceback (most recent call last):"
_TRACEBACK_LONGEST = 500
"""Lines of a traceback that are looked through for its end."""
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?:: |$)")


def first_error(lines: Sequence[str]) -> int | None:
    """The number of the earliest line that is an error; of a traceback the one that ends it, which
    says what happened. None where there is none."""
    at = next((i for i, text in enumerate(lines) if is_error(text)), None)
    if at is None or _TRACEBACK not in lines[at]:
        return at
    head = lines[at].partition(_TRACEBACK)[0]  # loggers write theirs before every line
    for number, text in enumerate(lines[at + 1 : at + _TRACEBACK_LONGEST], at + 1):
        if _EXCEPTION.match(text.removeprefix(head)):
            return number
    return at


def moment(text: str) -> tuple[str, ...] | None:
    """When a line was written, as something to sort by; None where it does not say."""
    match = _TIME.search(text[:80])
    return tuple(g or "" for g in match.groups()) if match else None


def merged(batches: Iterable[tuple[str, list[str]]]) -> list[str]:
    """The lines of several logs in order of time, each behind its source's tag.

    A line without a time belongs to the one before it in its own log, so tracebacks stay whole.
    """
    keyed: list[tuple[tuple[str, ...], int, int, str]] = []
    for source, (tag, lines) in enumerate(batches):
        at: tuple[str, ...] = ()
        for number, text in enumerate(lines):
            at = moment(text) or at
            keyed.append((at, source, number, f"{tag} {text}"))
    return [text for _, _, _, text in sorted(keyed)]
