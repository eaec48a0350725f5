"""How far a wait has come, on stderr: one line that is redrawn, or a plain line per change."""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType
from typing import IO, Self

from backend.domain.views import GroupView
from pdtui.cli.output import cells, clean

WIDTH = 80


class Standing:
    """Tells where the groups that are waited for stand."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb")
        self._said: dict[str, str] = {}
        self._began = time.monotonic()
        self._drawn = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._drawn:
            self._write("\r\x1b[K")

    def saw(self, group: GroupView) -> None:
        """Tell of a group as it is now, unless that was told already."""
        text = said(group)
        if self._said.get(group.name) == text:
            return
        self._said[group.name] = text
        if not self._live:
            self._write(f"{group.name}: {text}\n")
            return
        rest = f"  (+{len(self._said) - 1})" if len(self._said) > 1 else ""
        seconds = f"{time.monotonic() - self._began:5.1f} s"
        self._write(f"\r\x1b[K{_cut(f'{seconds}  {group.name}: {text}{rest}')}")
        self._drawn = True

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def said(g: GroupView) -> str:
    """A group's status, ratio and phase in one line."""
    from pdtui.i18n.catalog import word

    text = word("status", g.status)
    if g.ratio:
        text += f"  {g.ratio}" + (f" ({g.currently})" if g.currently else "")
    if g.phase:
        blocked = f", {g.phase.blocked_by}" if g.phase.blocked_by else ""
        text += f"  [{word('phase', g.phase.name)} {g.phase.done}/{g.phase.total}{blocked}]"
    return clean(text)


def _cut(text: str) -> str:
    """As much of the text as one line of the terminal takes."""
    try:
        width = os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        width = WIDTH
    while cells(text) >= width:
        text = text[:-1]
    return text
