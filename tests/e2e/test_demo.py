"""`pdtui demo` as a person meets it: in a terminal by keys alone, and in a pipe."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.around import commands, cursor_line, environment, processes, roots
from tests.e2e.tmux import Terminal

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]


@pytest.mark.needs("tmux")
@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (160, 50)])
def test_the_demo_is_driven_by_keys_alone(columns: int, rows: int) -> None:
    """List, panel, scale, restart, logs, quit; afterwards no process of it is left."""
    command = f"{sys.executable} -m pdtui demo"
    with Terminal(command, columns, rows, environment()) as terminal:
        terminal.until("chat", "Running", "2:1", seconds=120)
        terminal.press("Enter")
        panel = terminal.until("Endpoint", "prefill", "2 of 2", "decode", "router")
        assert "Ratio 2:1" in panel
        terminal.press("S")
        terminal.until("Scale chat")
        terminal.press("+")
        terminal.until("Scale chat", "3")
        terminal.press("Enter")
        terminal.until("Ratio 3:1", "3 of 3")
        terminal.press("r")
        terminal.until("Restart chat?", "stops", "router")
        terminal.press("Enter")
        terminal.when(lambda s: "● Running" not in s, "the restart begin")
        terminal.until("● Running", "3 of 3", "1 of 1")
        terminal.press("l")
        terminal.until("following", "vLLM")
        terminal.press("Escape")
        terminal.until("Endpoint")
        terminal.press("?")
        terminal.until("Keys", "Group panel")
        terminal.press("Escape", "Escape")
        terminal.until("NAME", "STATUS", "chat")
        hosts = roots()
        terminal.press("q")
        terminal.until("ended with 0", seconds=90)
    assert hosts
    assert not any(Path(root).exists() for root in hosts)
    assert not processes(hosts)


@pytest.mark.needs("tmux")
def test_an_edit_waits_for_the_restart_of_the_group() -> None:
    """Write a parameter, save, read what changed, restart; only then a process has it."""
    command = f"{sys.executable} -m pdtui demo"
    with Terminal(command, 160, 50, environment()) as terminal:
        terminal.until("chat", "Running", "2:1", seconds=120)
        terminal.press("Enter")
        terminal.until("Endpoint", "2 of 2", "1 of 1")
        terminal.press("E")
        terminal.until("--max-model-len 32768", "Disaggregation")
        terminal.press(*"jjjjjjjjjj")
        terminal.when(lambda s: "--max-model-len" in cursor_line(s), "the cursor on the argument")
        terminal.press("Enter", *["BSpace"] * 5, *"16384", "Enter")
        terminal.until("--max-model-len 16384")
        terminal.press("W")
        terminal.until("Save chat?", "16384")
        terminal.press("Enter")
        terminal.until("Config changed", "Endpoint")
        assert not _running_with("16384")
        terminal.press("c")
        terminal.until("Saved, not running yet", "16384")
        terminal.press("Escape")
        terminal.until("Config changed", "Endpoint")
        terminal.press("r")
        terminal.until("Restart chat?")
        terminal.press("Enter")
        terminal.when(
            lambda s: "Config changed" not in s and "● Running" in s and "2 of 2" in s,
            "the group run with what was saved", seconds=120,
        )  # fmt: skip
        assert _running_with("16384")
        assert not _running_with("32768")
        terminal.press("q")
        terminal.until("ended with 0", seconds=90)


def _running_with(length: str) -> list[str]:
    """Command lines of the demo's members that were started with this context length."""
    return [c for c in commands() if f"--max-model-len {length}" in c and "pdtui-demo-" in c]


def test_in_a_pipe_it_tells_the_story_and_every_claim_is_checked() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "pdtui", "demo"], capture_output=True, text=True, timeout=240,
        env=environment(), check=False,
    )  # fmt: skip
    assert told.returncode == 0, told.stdout + told.stderr
    for said in (
        "Pending", "Partially ready", "Running",
        "the router started after both roles had a ready member",
        "prompt tokens came as KV", "3:1; the router knows the new member",
        "Config changed, and nothing moved", "does not scale up",
        "before the first new one started", "no process, no open port", "no port is left",
    ):  # fmt: skip
        assert said in told.stdout
