"""Which module has each command. A command is made when somebody runs it or asks what there is, so
that none waits for the imports of the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from pdtui.cli.finish import finish

COMMANDS = {
    "get": "groups:get",
    "check": "checking:check",
    "scale": "groups:scale",
    "restart": "groups:restart",
    "pause": "groups:pause",
    "resume": "groups:resume",
    "delete": "groups:delete",
    "logs": "groups:logs",
    "events": "groups:events",
    "modes": "groups:modes",
    "plan": "declare:plan",
    "apply": "declare:apply",
    "diff": "declare:diff",
    "export": "export:export",
    "wait": "wait:wait",
    "completion": "complete:completion",
    "history": "history:history",
    "rollback": "history:rollback",
    "endpoints": "history:endpoints",
    "delete-instance": "instances:delete_instance",
    "told": "instances:told",
    "adopt": "adopt:adopt",
    "doctor": "doctor:doctor",
    "ports": "ports:ports",
    "top": "watching:top",
    "metrics": "watching:metrics",
    "canary": "watching:canary",
    "alerts": "watching:alerts",
    "daemon": "daemon:daemon",
    "backup": "daemon:backup",
    "restore": "daemon:restore",
    "diagnose": "diagnosing:diagnose",
    "advise": "advising:advise",
    "demo": "practice:demo",
    "tokens": "daemon:tokens",
    "hosts": "inventory:app",
    "convert": "convert:app",
    "caches": "caches:app",
    "practice": "practice:app",
}
"""`module:name` in this package of every command and group of commands, in the help's order."""


class Tree(TyperGroup):
    """The program's commands."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Made()  # type: ignore[assignment]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name, or None. What its module raises is raised."""
        if cmd_name not in COMMANDS:
            return None
        return self.commands[cmd_name]


class _Made(Mapping[str, Any]):
    """The commands by name, each made when it is looked up."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = _make(name, COMMANDS[name])
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in COMMANDS

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


def _make(name: str, place: str) -> Any:
    module, _, attribute = place.partition(":")
    found = getattr(import_module(f"pdtui.cli.{module}"), attribute)
    holder = typer.Typer(rich_markup_mode=None)
    if isinstance(found, typer.Typer):
        holder.add_typer(found, name=name)
    else:
        holder.command(name)(found)
    finish(holder)
    return get_group(holder).commands[name]
