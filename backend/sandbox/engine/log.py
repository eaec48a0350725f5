"""Log lines in vLLM's shape, or SGLang's, on standard output."""

from __future__ import annotations

import os
import sys
import threading
import time

_lock = threading.Lock()
_style = "vllm"


def use(style: str) -> None:
    """Write lines as another engine does; said once, at the start of the process."""
    global _style
    _style = style


class Log:
    """Writes as one of the engine's processes; a line says which, when and where from."""

    def __init__(self, process: str) -> None:
        self.process = process

    def _write(self, level: str, where: str, text: str) -> None:
        if _style == "sglang":
            stamp = time.strftime("[%Y-%m-%d %H:%M:%S]")
            word = "" if level == "INFO" else f"{level}: "
            raw("".join(f"{stamp} {word}{line}\n" for line in text.split("\n")))
            return
        stamp = time.strftime("%m-%d %H:%M:%S")
        head = f"({self.process} pid={os.getpid()}) {level} {stamp} [{where}] "
        raw("".join(f"{head}{line}\n" for line in text.split("\n")))

    def info(self, where: str, text: str) -> None:
        """An INFO line from `where` (`file.py:123`)."""
        self._write("INFO", where, text)

    def warning(self, where: str, text: str) -> None:
        """A WARNING line."""
        self._write("WARNING", where, text)

    def error(self, where: str, text: str) -> None:
        """An ERROR line; a text of several lines becomes several."""
        self._write("ERROR", where, text)


def raw(text: str) -> None:
    """Text as it is, in one write."""
    with _lock:
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except BrokenPipeError:
            return  # nobody reads the log any more: an engine goes on serving
