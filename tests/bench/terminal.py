"""A program under a pseudo-terminal, and how long it takes until its first full frame is there."""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence

from rich.cells import cell_len

from tests.bench.runner import BenchError

TOKEN = re.compile(
    r"\x1b\[(?P<args>[\d;:?<=>!$ ]*)(?P<final>[@-~])"  # CSI
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\)"  # OSC, DCS and the like, up to their end
    r"|\x1b[()*+].|\x1b[^\[\]PX^_()*+]"  # short escapes
    r"|(?P<text>[^\x1b\x00-\x1f\x7f]+)|(?P<control>[\x00-\x1a\x1c-\x1f\x7f])",
    re.DOTALL,
)


class Screen:
    """As much of a terminal as tells which cells hold text: moves, text and erasing the screen."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self._cells: dict[tuple[int, int], str] = {}
        self._row = self._column = 0
        self._rest = ""

    def feed(self, data: str) -> None:
        """Takes the program's output; a sequence cut off at the end waits for its other half."""
        data, self._rest = self._rest + data, ""
        position = 0
        while position < len(data):
            token = TOKEN.match(data, position)
            if token is None:
                self._rest = data[position:]
                return
            position = token.end()
            if token["text"]:
                self._write(token["text"])
            elif token["control"] == "\r":
                self._column = 0
            elif token["control"] == "\n":
                self._row = min(self._row + 1, self.rows - 1)
            elif token["final"] == "H":
                row, column, *_ = (*(int(n or 1) for n in token["args"].split(";")), 1)
                self._row, self._column = row - 1, column - 1
            elif token["final"] == "J":
                self._cells.clear()

    def _write(self, text: str) -> None:
        for glyph in text:
            self._cells[self._row, self._column] = glyph
            self._column += cell_len(glyph)

    def line(self, row: int) -> str:
        """The text of one row, from 0; blanks where nothing was written."""
        cells = (self._cells.get((row, column), " ") for column in range(self.columns))
        return "".join(cells).rstrip()

    def full(self) -> bool:
        """Whether the frame is all there: the first and the last row hold text."""
        return bool(self.line(0) and self.line(self.rows - 1))


def first_paint(
    command: Sequence[str],
    env: Mapping[str, str],
    *,
    size: tuple[int, int] = (100, 30),
    timeout_s: float = 30.0,
) -> float:
    """Seconds from exec until the first and the last row of the terminal hold text.

    The program and what it started are ended afterwards. Raises BenchError with what was on the
    screen when it ends, or `timeout_s` passes, before that.
    """
    columns, rows = size
    # These two would overrule the size that the terminal itself tells.
    inherited = {k: v for k, v in env.items() if k not in ("COLUMNS", "LINES")}
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    screen, decoder = Screen(columns, rows), codecs.getincrementaldecoder("utf-8")("replace")
    begun = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs,
        env={**inherited, "TERM": "xterm-256color"}, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    try:
        while (left := begun + timeout_s - time.perf_counter()) > 0:
            if not select.select([ours], [], [], left)[0]:
                continue
            try:
                data = os.read(ours, 65536)
            except OSError:  # the program and its side of the terminal are gone
                break
            screen.feed(decoder.decode(data))
            if screen.full():
                return time.perf_counter() - begun
        shown = "\n".join(filter(None, map(screen.line, range(rows))))
        late = time.perf_counter() - begun >= timeout_s
        why = f"no full frame in {timeout_s:.0f} s" if late else "ended before its first full frame"
        raise BenchError(f"{' '.join(command)}: {why}\n{shown}")
    finally:
        os.close(ours)
        end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends the session the program leads: politely, then not."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=5)
            return
    process.wait(timeout=5)
