"""A program in a real terminal: tmux types the keys and reads the screen."""

from __future__ import annotations

import subprocess
import time
import uuid
from collections.abc import Callable
from types import TracebackType


class Terminal:
    """One tmux server of our own with one window, `columns` x `rows`, ended with the block."""

    def __init__(self, command: str, columns: int, rows: int, env: dict[str, str]) -> None:
        self._name = f"pdtui-{uuid.uuid4().hex[:8]}"
        self._command, self._size, self._env = command, (columns, rows), env

    def __enter__(self) -> Terminal:
        columns, rows = self._size
        settings = [f"{k}={v}" for k, v in self._env.items()]
        shell = " ".join(["exec", "env", *settings, self._command])
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows),
                   "sh", "-c", f"{self._command_with_end(shell)}")  # fmt: skip
        return self

    def _command_with_end(self, shell: str) -> str:
        return f'({shell}); echo; echo "ended with $?"; sleep 600'

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._tmux("kill-server", check=False)

    def _tmux(self, *args: str, check: bool = True) -> str:
        argv = ["tmux", "-L", self._name, *args]
        done = subprocess.run(argv, check=check, capture_output=True, text=True, timeout=20)
        return done.stdout

    def press(self, *keys: str) -> None:
        """Send keys by tmux's names (`Enter`, `Escape`, `S`)."""
        for key in keys:
            self._tmux("send-keys", key)
            time.sleep(0.05)

    def write(self, text: str) -> None:
        """Type text as it is, blanks and dashes too."""
        self._tmux("send-keys", "-l", "--", text)

    def screen(self) -> str:
        """The screen's text."""
        return self._tmux("capture-pane", "-p")

    def until(self, *words: str, seconds: float = 60) -> str:
        """The screen once it shows all the words. Raises AssertionError with what it showed."""
        return self.when(lambda s: all(w in s for w in words), f"{words}", seconds)

    def when(self, done: Callable[[str], bool], what: str, seconds: float = 60) -> str:
        """The screen once `done` holds."""
        end = time.monotonic() + seconds
        while True:
            screen = self.screen()
            if done(screen):
                return screen
            if time.monotonic() > end:
                raise AssertionError(f"never saw {what}; the screen is:\n{screen}")
            time.sleep(0.1)
