"""Types a page's console lines into a shell, and compares the answers with what the page shows.

What stands after a `$` in a console block is typed; the lines that follow are expected in this
order, with `...` for anything. A YAML block after "Save this as `NAME`" is written to that file.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

PATIENCE_S = 400.0
_BLOCK = re.compile(r"^```(console|yaml)\n(.*?)^```", re.M | re.S)
_SAVE = re.compile(r"Save this as `([^`]+)`")


@dataclass
class Step:
    """One typed line and what is expected after it, or a file that is written."""

    line: str = ""
    expected: list[str] = field(default_factory=list)
    file: str = ""
    text: str = ""


def steps(page: str) -> Iterator[Step]:
    """What a reader of the page does, in order."""
    for block in _BLOCK.finditer(page):
        kind, text = block.groups()
        saved = _SAVE.findall(page[: block.start()].rpartition("```")[2])
        if kind == "yaml" and saved:
            yield Step(file=saved[-1], text=text)
        if kind != "console":
            continue
        now: Step | None = None
        for line in text.splitlines():
            if line.startswith("$ "):
                if now is not None:
                    yield now
                now = Step(line[2:])
            elif now is not None:
                now.expected.append(line)
        if now is not None:
            yield now


def missing(expected: list[str], said: str) -> str:
    """The first expected line that is not said, after those before it; empty when all are."""
    lines, at = said.splitlines(), 0
    for wanted in expected:
        parts = [" ".join(p.split()) for p in wanted.split("...")]
        pattern = re.compile(".*".join(r"\s*".join(map(re.escape, p.split())) for p in parts))
        found = next(
            (n for n in range(at, len(lines)) if pattern.fullmatch(" ".join(lines[n].split()))),
            None,
        )
        if found is None and wanted.strip("."):
            return wanted
        at = at if found is None else found + 1
    return ""


class Shell:
    """A bash that is typed to, one line after the other; each line has ended when it answers."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self._folder = folder
        self._out = folder.parent / "typed.txt"
        self._shell = subprocess.Popen(
            ["bash", "--norc", "--noprofile"], cwd=folder, env=env, text=True,
            stdin=subprocess.PIPE, stdout=self._out.open("w"), stderr=subprocess.STDOUT,
        )  # fmt: skip
        self._count = 0

    def type(self, line: str) -> str:
        """What the line says. Raises AssertionError when it does not come to an end."""
        assert self._shell.stdin is not None
        before, self._count = len(self._said()), self._count + 1
        mark = f"--- {self._count} ended with"
        self._shell.stdin.write(f"{line}\nprintf '\\n{mark} %s ---\\n' $?\n")
        self._shell.stdin.flush()
        ended = re.compile(rf"(.*)\n{mark} (\d+) ---\n", re.S)
        deadline = time.monotonic() + PATIENCE_S
        while (found := ended.fullmatch(said := self._said()[before:])) is None:
            assert time.monotonic() < deadline, f"{line}: has not ended\n{said}"
            assert self._shell.poll() is None, f"{line}: ended the shell\n{said}"
            time.sleep(0.05)
        assert found[2] == "0", f"{line}: exit code {found[2]}\n{found[1]}"
        return found[1]

    def _said(self) -> str:
        return self._out.read_text(errors="replace")

    def close(self) -> None:
        """End the shell."""
        if self._shell.stdin is not None:
            self._shell.stdin.close()
        try:
            self._shell.wait(30)
        except subprocess.TimeoutExpired:
            self._shell.kill()
            self._shell.wait()
