"""The console on a busy site beside Textual's DataTable: keys, bytes, processor, memory.

A real process under a real pseudo-terminal; nothing is asked of the application itself. A key has
been answered when the row that it leads to comes out of the terminal in the cursor's colour.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.bench.busy_app import name
from tests.bench.runner import Bench, BenchError
from tests.bench.terminal import Screen, end

Which = Literal["ours", "rival"]
SIZE = (160, 50)
RATE = 50
TIMEOUT_S = 30.0
KEYS = 60
HOUR = 3600 * RATE
"""Changes of an hour on the busy site."""
HASTE = 500
"""Changes a second when that hour is played faster; a program that is slower takes its time."""
RESTS = 3
"""Quiet seconds after which everything has been drawn."""
STEPS = 14
"""Rows the cursor walks down before it turns."""
CURSOR = re.compile(r"\x1b\[[\d;]*48;2;18;52;86[\d;]*m([^\x1b]*)")
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Terminal:
    """A program's terminal, seen from the other side."""

    fd: int
    pid: int
    received: int = 0

    def read(self, timeout_s: float) -> str:
        """What came within `timeout_s`; empty when nothing did."""
        if not select.select([self.fd], [], [], timeout_s)[0]:
            return ""
        try:
            data = os.read(self.fd, 1 << 16)
        except OSError as error:
            raise BenchError("the program ended") from error
        self.received += len(data)
        return data.decode("utf-8", "replace")

    def drain(self, seconds: float) -> int:
        """Reads for `seconds`; how many bytes came."""
        before, until = self.received, time.perf_counter() + seconds
        while (left := until - time.perf_counter()) > 0:
            self.read(left)
        return self.received - before

    def key(self, key: str, wanted: str) -> float:
        """Seconds from a key until `wanted` is under the cursor on the screen."""
        self.drain(0.0)
        begun, seen = time.perf_counter(), ""
        os.write(self.fd, key.encode())
        while time.perf_counter() - begun < TIMEOUT_S:
            seen += self.read(0.5)
            if any(wanted in match[1] for match in CURSOR.finditer(seen)):
                return time.perf_counter() - begun
        raise BenchError(f"{key} did not lead to {wanted} within {TIMEOUT_S:.0f} s")

    def cpu(self) -> float:
        """Seconds of processor time used so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory_mib(self) -> float:
        """Resident memory."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@contextmanager
def running(which: Which, rate: float, most: int = 0) -> Iterator[Terminal]:
    """The program on a terminal of its own, drawn whole; ended afterwards."""
    ours, theirs = pty.openpty()
    columns, rows = SIZE
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    with tempfile.TemporaryDirectory(prefix="pdtui-bench-") as home:
        env = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES", "NO_COLOR")}
        env |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", "HOME": home}
        env |= {"XDG_STATE_HOME": home, "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.busy_app", which, str(rate), str(most)],
            stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        terminal = Terminal(ours, process.pid)
        try:
            screen, until = Screen(columns, rows), time.perf_counter() + TIMEOUT_S
            while not any(name(5) in screen.line(y) for y in range(rows)):
                screen.feed(terminal.read(0.5))
                if time.perf_counter() > until:
                    raise BenchError(f"{which}: no table within {TIMEOUT_S:.0f} s")
            terminal.drain(1.0)
            yield terminal
        finally:
            os.close(ours)
            end(process)


def walk(terminal: Terminal, keys: int = KEYS) -> list[float]:
    """The time of each of `keys` moves, down and up again, a little apart."""
    times: list[float] = []
    at, step = 0, 1
    for turn in range(keys):
        if not 0 <= at + step <= STEPS:
            step = -step
        at += step
        times.append(terminal.key("j" if step > 0 else "k", name(at)))
        terminal.drain(0.03 + 0.01 * (turn % 4))
    return times


def p95(times: list[float]) -> float:
    """The time that 19 of 20 stay under."""
    return sorted(times)[max(0, round(len(times) * 0.95) - 1)]


def key_p95(which: Which) -> float:
    """Seconds of the slowest of 20 keys while the site is busy."""
    with running(which, RATE) as terminal:
        return p95(walk(terminal))


def benches() -> list[Bench]:
    """Compared in turns, as the others are."""
    return [
        Bench(
            name=f"key to repaint, p95, {RATE} changes/s",
            ours=lambda: key_p95("ours"),
            rival_name="DataTable",
            rival=lambda: key_p95("rival"),
            aim="under 50 ms",
            rounds=3,
        )
    ]


def figures(which: Which, seconds: float = 10.0) -> dict[str, float]:
    """Bytes and processor time while busy and while idle, memory before and after many changes."""
    with running(which, 0) as terminal:
        cpu = terminal.cpu()
        terminal.drain(seconds)
        idle = (terminal.cpu() - cpu) / seconds
    with running(which, RATE) as terminal:
        cpu = terminal.cpu()
        sent = terminal.drain(seconds)
        busy = (terminal.cpu() - cpu) / seconds
    with running(which, 400) as terminal:
        terminal.drain(seconds)
        before = terminal.memory_mib()
        terminal.drain(2 * seconds)
        after = terminal.memory_mib()
    return {
        f"KB/s to the terminal, {RATE} changes/s": sent / seconds / 1000,
        f"processor, {RATE} changes/s, %": busy * 100,
        "processor, idle, %": idle * 100,
        "memory, MiB": before,
        f"memory after {int(800 * seconds)} more changes, MiB": after,
    }


def hour(which: Which, most: int = HOUR, rate: float = HASTE) -> list[tuple[float, float]]:
    """Minutes since the start and MiB of memory: at a tenth, a quarter, half, three quarters and
    the end of `most` changes, which has come when the program rests."""
    samples: list[tuple[float, float]] = []
    with running(which, rate, most) as terminal:
        began, quiet = time.perf_counter(), 0
        while quiet < RESTS:
            cpu = terminal.cpu()
            terminal.drain(1.0)
            samples.append((time.perf_counter() - began, terminal.memory_mib()))
            quiet = quiet + 1 if terminal.cpu() - cpu < 0.1 else 0
    ran = samples[: len(samples) - RESTS] or samples
    at = [ran[min(len(ran) - 1, round(len(ran) * part))] for part in (0.1, 0.25, 0.5, 0.75, 1.0)]
    return [(seconds / 60, memory) for seconds, memory in at]


def hours(most: int = HOUR) -> str:
    """Memory of both over an hour's changes, side by side."""
    ours, rival = hour("ours", most), hour("rival", most)
    lines = [f"{f'MiB, of {most} changes':<44}{'ours':>10}{'DataTable':>12}"]
    parts = ("a tenth", "a quarter", "half", "three quarters", "all")
    lines += [
        f"{part:<44}{one[1]:>10.1f}{other[1]:>12.1f}"
        for part, one, other in zip(parts, ours, rival, strict=True)
    ]
    lines.append(f"{'minutes':<44}{ours[-1][0]:>10.1f}{rival[-1][0]:>12.1f}")
    return "\n".join(lines)


def report(seconds: float = 10.0) -> str:
    """The figures of both, side by side."""
    ours, rival = figures("ours", seconds), figures("rival", seconds)
    lines = [f"{'console':<44}{'ours':>10}{'DataTable':>12}"]
    lines += [f"{key:<44}{value:>10.1f}{rival[key]:>12.1f}" for key, value in ours.items()]
    return "\n".join(lines)
