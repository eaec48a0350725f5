"""A log as lines that can be compared: without colours, progress bars and prefixes."""

from __future__ import annotations

import re
from bisect import bisect_right

MOST = 1 << 20
"""Characters of a log that are read: its first and its last half of that."""
LINE_MOST = 4000
"""Characters of one line that a pattern sees."""
TEXT_MOST = 400
"""Characters of a line that are shown."""

_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_DOCKER = r"(?:[\w.-]{1,60} +\| +)?"
_PROCESS = r"(?:\[rank\d+\]: ?|\([\w ]{1,40} pid=\d+(?:, ip=[\d.]+)?\)\s*)*"
_LEVEL = r"(?:(?:INFO|WARNING|WARN|ERROR|CRITICAL|DEBUG)\s+[\d-]+ [\d:.,]+\s+)?"
_STAMP = (
    r"(?:\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.,]*Z?(?: [A-Z]{2}\d+)*\]?\s+"
    r"(?:(?:INFO|WARN|WARNING|ERROR|DEBUG)\s+)?)?"
)
_GLOG = r"(?:[IWEF]\d{4,8} [\d:.]+\s+\d+ [\w./]+:\d+\]\s*)?"
_SOURCE = r"(?:\[[\w./]+:\d+\]\s*)?"
_PREFIX = re.compile(_DOCKER + _PROCESS + _LEVEL + _STAMP + _GLOG + _SOURCE)
_RUST = re.compile(r"^(?:[a-z_]\w*::)+\w+: \S+\.rs:\d+: ")
_GAP = "\n[... {} characters in between were not read ...]\n"


class Log:
    """The text of a log with its lines' places."""

    def __init__(self, text: str) -> None:
        self.truncated = len(text) > MOST
        if self.truncated:
            half = MOST // 2
            text = text[:half] + _GAP.format(len(text) - MOST) + text[-half:]
        if "\x1b" in text:
            text = _ANSI.sub("", text)
        if "\r" in text:  # a progress bar writes over itself: what stands last is the line
            lines = (line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
            text = "\n".join(lines)
        self.text = text.replace("\x00", " ")
        self._ends = [m.start() for m in re.finditer("\n", self.text)]

    @property
    def lines(self) -> int:
        """How many lines there are."""
        return len(self._ends) + (not self.text.endswith("\n") if self.text else 0)

    def number(self, place: int) -> int:
        """The line, from 0, that a place of the text is in."""
        return bisect_right(self._ends, place - 1)

    def bounds(self, number: int) -> tuple[int, int]:
        """Where a line begins and ends, its newline left out."""
        start = self._ends[number - 1] + 1 if number else 0
        end = self._ends[number] if number < len(self._ends) else len(self.text)
        return start, end

    def line(self, number: int) -> str:
        """A line, cut to what a pattern sees; empty past the end."""
        if not 0 <= number < self.lines:
            return ""
        start, end = self.bounds(number)
        return self.text[start : min(end, start + LINE_MOST)]

    def window(self, place: int, span: int) -> str:
        """The line around a place and `span` lines after it, cut to what a pattern sees."""
        number = self.number(place)
        start, end = self.bounds(number)
        start = max(start, place - LINE_MOST // 2)
        if span:
            end = self.bounds(min(number + span, max(self.lines - 1, number)))[1]
        return self.text[start : min(end, start + LINE_MOST)]

    def around(self, number: int, before: int = 3, after: int = 2) -> tuple[tuple[str, ...], int]:
        """The lines around one, as shown, and its place among them."""
        first = max(0, number - before)
        last = min(self.lines, number + after + 1)
        return tuple(shown(self.line(n)) for n in range(first, last)), number - first


def bare(line: str) -> str:
    """A line without the prefixes of its process, level, time and source."""
    found = _PREFIX.match(line)
    return _RUST.sub("", line[found.end() :] if found else line).strip()


def shown(line: str) -> str:
    """A line cut to what is shown, without control characters."""
    text = "".join(c if c.isprintable() else " " for c in line).rstrip()
    return text if len(text) <= TEXT_MOST else text[: TEXT_MOST - 1] + "…"
