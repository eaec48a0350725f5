"""What a group is going through, a line whenever it changes, on stderr while a command waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from pdtui.cli.common import plain
from pdtui.present.telling import of_mark

if TYPE_CHECKING:
    from backend.domain.views import GroupView

TELLING = ("restart_blocked", "placement", "unreachable_host", "registration", "draining")
"""Marks that say what is waited for."""


class Progress:
    """Prints where a group stands, once per change."""

    def __init__(self) -> None:
        self._last: tuple[str, ...] = ()

    def __call__(self, group: GroupView) -> None:
        """Print what is new about the group."""
        lines = describe(group)
        for line in lines:
            if line not in self._last:
                typer.echo(f"  {plain(line)}", err=True)
        self._last = lines


def describe(group: GroupView) -> tuple[str, ...]:
    """The group's phase or its status with members by role, then what it waits for."""
    if group.phase is not None:
        p = group.phase
        first = f"{p.name} {p.done}/{p.total}"
    elif group.deleting or group.paused:
        first = f"stopping, {len(group.members)} left" if group.members else "stopped"
    else:
        roles = ", ".join(f"{r} {c.ready}/{c.wanted}" for r, c in group.roles.items())
        first = f"{group.status}: {roles}"
    return (first, *(of_mark(m) for m in group.marks if m.id in TELLING))
