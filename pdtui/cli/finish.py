"""What every command gets without asking for it: `--output` beside `--json`, and its examples."""

from __future__ import annotations

import typer

from pdtui.cli.examples import EXAMPLES
from pdtui.cli.output import shaped
from pdtui.i18n import tr


def finish(app: typer.Typer, *path: str) -> None:
    """Finish the commands of an application and of those in it; `path` are the words before."""
    app.info.epilog = _epilog(" ".join(path))
    for command in app.registered_commands:
        if command.callback is None:
            continue
        name = command.name or command.callback.__name__.replace("_", "-")
        command.callback = shaped(command.callback)
        command.epilog = _epilog(" ".join((*path, name)))
    for group in app.registered_groups:
        if group.typer_instance is not None and isinstance(group.name, str):
            finish(group.typer_instance, *path, group.name)


def _epilog(command: str) -> str | None:
    lines = EXAMPLES.get(command)
    if not lines:
        return None
    shown = "\n".join(f"  {line}" for line in lines)
    return f"\b\n{tr('cli.examples')}\n{shown}"
