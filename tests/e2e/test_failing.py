"""A member that ends at once, and what a person presses to learn why: in a real terminal."""

from __future__ import annotations

import sys

import pytest

from tests.e2e.around import cursor_line, environment, processes, roots
from tests.e2e.tmux import Terminal

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]
WRONG = "--max-num-seq-len 9"
SAYS = "vllm: error: unrecognized arguments: --max-num-seq-len 9"


@pytest.mark.needs("tmux")
@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (160, 50)])
def test_why_a_member_fails_is_two_keys_away(columns: int, rows: int) -> None:
    """Give decode an argument its engine does not know, restart, read the cause and the log."""
    with Terminal(f"{sys.executable} -m pdtui demo", columns, rows, environment()) as terminal:
        terminal.until("chat", "Running", "2:1", seconds=120)
        terminal.press("Enter")
        terminal.until("Endpoint", "2 of 2", "1 of 1")
        _spoil(terminal)
        terminal.press("r")
        terminal.until("Restart chat?", WRONG)
        terminal.press("Enter")
        terminal.until("0 of 1 ready", "✗", "i why", "f first error", seconds=120)

        terminal.press("i")
        why = terminal.until("cause", "does not know the arguments", SAYS, "do ")
        assert "decode" in why
        terminal.press("Escape")
        terminal.until("0 of 1 ready", "f first error")

        terminal.press("f")
        log = terminal.until(SAYS, "decode")
        assert "chat-decode-" in log.splitlines()[0]
        assert "No error" not in log
        terminal.press("Escape")
        terminal.until("0 of 1 ready")

        terminal.press("Escape")
        terminal.until("NAME", "STATUS")
        terminal.press("5")
        terminal.until("INSTANCE", "chat-decode-", "✗")
        terminal.press("!")
        terminal.when(lambda s: "chat-prefill-" not in s and "chat-decode-" in s, "the faults only")
        terminal.until("f first error")
        terminal.press("f")
        terminal.until(SAYS, "chat-decode-")
        hosts = roots()
        terminal.press("q")
        terminal.until("ended with 0", seconds=90)
    assert hosts
    assert not processes(hosts)


def _spoil(terminal: Terminal) -> None:
    """Override decode's parameters with one more, in the form, and save."""
    terminal.press("E")
    terminal.until("Disaggregation", "decode", "FIELD")
    terminal.press("]", "]", "]")
    terminal.until("Replicas", "inherited", "Parameters")
    terminal.when(lambda s: "Replicas" in cursor_line(s), "the cursor on decode's first field")
    for _ in range(6):
        terminal.press("j")
    terminal.when(lambda s: "Parameters" in cursor_line(s), "the cursor on the parameters")
    terminal.press("o")
    terminal.until("own value")
    terminal.press("n")
    terminal.until("enter keep what is written")
    terminal.write(WRONG)
    terminal.press("Enter")
    terminal.until(WRONG, "W save")
    terminal.press("W")
    terminal.until("Save chat?", WRONG.split()[0])
    terminal.press("Enter")
    terminal.until("Config changed", "Endpoint")
