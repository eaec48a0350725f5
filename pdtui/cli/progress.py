"""What groups are going through, on stderr while a command waits.

A terminal gets one line that is redrawn, anything else a plain line whenever something changes.
"""

from __future__ import annotations

import sys
import time
from typing import IO, TYPE_CHECKING

from pdtui.cli.common import plain
from pdtui.cli.output import draw_line, redraws
from pdtui.i18n import tr
from pdtui.i18n.catalog import word
from pdtui.present.telling import of_mark

if TYPE_CHECKING:
    from backend.domain.views import GroupView

TELLING = ("restart_blocked", "placement", "unreachable_host", "registration", "draining")
"""Marks that say what is waited for."""


class Progress:
    """Tells where groups stand, once per change; `named` says which group each line is about."""

    def __init__(self, *, named: bool = False, stream: IO[str] | None = None) -> None:
        self._stream, self._named = stream or sys.stderr, named
        self._last: dict[str, tuple[str, ...]] = {}
        self._began = time.monotonic()

    def __call__(self, group: GroupView) -> None:
        """Tell what is new about the group."""
        lines, before = describe(group), self._last.get(group.name, ())
        if lines == before:
            return
        self._last[group.name] = lines
        name = f"{group.name}: " if self._named else ""
        if redraws(self._stream):
            more = f"  (+{len(self._last) - 1})" if len(self._last) > 1 else ""
            said = "  ".join(lines)
            seconds = time.monotonic() - self._began
            draw_line(plain(f"{seconds:5.1f} s  {name}{said}{more}"), self._stream)
            return
        for line in lines:
            if line not in before:
                self._stream.write(f"  {name}{plain(line)}\n")
        self._stream.flush()


def describe(group: GroupView) -> tuple[str, ...]:
    """The group's phase or its status with members by role, then what it waits for."""
    if group.phase is not None:
        p = group.phase
        first = f"{word('phase', p.name)} {p.done}/{p.total}"
    elif group.deleting or group.paused:
        left = len(group.members)
        first = tr("cli.progress.stopping", count=left) if left else tr("cli.progress.stopped")
    else:
        roles = ", ".join(f"{r} {c.ready}/{c.wanted}" for r, c in group.roles.items())
        first = f"{word('status', group.status)}: {roles}"
    return (first, *(of_mark(m) for m in group.marks if m.id in TELLING))
