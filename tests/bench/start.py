"""How soon one sees something: `pdtui --help`, and the console's first frame."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.bench.runner import Bench, BenchError
from tests.bench.terminal import first_paint

TIMEOUT_S = 60.0
PDTUI = [sys.executable, "-m", "pdtui"]
IMPORT_TEXTUAL = [sys.executable, "-c", "import textual"]
BARE_APP = [
    sys.executable,
    "-c",
    """
from textual.app import App
from textual.widgets import Static


class Bare(App):
    CSS = "#last { dock: bottom; height: 1; }"

    def compose(self):
        yield Static("first")
        yield Static("last", id="last")


Bare().run()
""",
]


@contextmanager
def fresh_user() -> Iterator[dict[str, str]]:
    """The environment of a user who never ran the console: empty folders, no settings. Modules'
    bytecode is kept, as in every installation, whatever this machine's own environment says."""
    with tempfile.TemporaryDirectory(prefix="pdtui-bench-") as folder:
        foreign = ("PDTUI_", "XDG_", "PYTHONDONTWRITEBYTECODE")
        env = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
        runtime = Path(folder, "run")
        runtime.mkdir(mode=0o700)
        yield {**env, "HOME": folder, "XDG_RUNTIME_DIR": str(runtime)}


def run_time(command: Sequence[str]) -> float:
    """Seconds from exec to exit. Raises BenchError when the command fails."""
    with fresh_user() as env:
        begun = time.perf_counter()
        try:
            done = subprocess.run(
                command, env=env, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise BenchError(f"{' '.join(command)}: still running after {TIMEOUT_S} s") from error
        taken = time.perf_counter() - begun
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise BenchError(f"{' '.join(command)} exited {done.returncode}: {''.join(last)}")
    return taken


def paint_time(command: Sequence[str]) -> float:
    """Seconds from exec to the first full frame, as a new user."""
    with fresh_user() as env:
        return first_paint(command, env)


def benches() -> list[Bench]:
    """The comparisons of this file."""
    textual = "import textual"
    return [
        Bench(
            "pdtui --help", lambda: run_time([*PDTUI, "--help"]),
            textual, lambda: run_time(IMPORT_TEXTUAL), aim="under 400 ms",
        ),
        Bench(
            "first paint", lambda: paint_time(PDTUI),
            textual, lambda: run_time(IMPORT_TEXTUAL), aim="under 1000 ms",
        ),
        Bench(
            "first paint, same size", lambda: paint_time(PDTUI),
            "a bare Textual app", lambda: paint_time(BARE_APP),
        ),
    ]  # fmt: skip
