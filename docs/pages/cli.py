"""docs/cli.md: every command with its arguments, options and examples, from the commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

import typer.main

from pdtui.cli import app
from pdtui.cli.examples import EXAMPLES

HEAD = """\
# Command line

Generated from the commands by `make docs`; do not edit. `pdtui COMMAND --help` says the same.

Exit codes: 0 done; 1 refused or not found; 2 the input or the call cannot be read; 3 not now, a
configuration change waits for its restart; 4 a host, or a time-out; 130 interrupted or declined.
Errors go to stderr, one paragraph a problem, with the id of its rule. What is printed has colours
only in a terminal, and none with `NO_COLOR`.
"""


def page() -> str:
    """The whole page."""
    commands = list(_walk(typer.main.get_command(app), ()))
    lines = [HEAD, "| command | does |", "|---|---|"]
    for path, command in commands:
        if path:
            name = " ".join(("pdtui", *path))
            lines.append(f"| [`{name}`](#{name.replace(' ', '-')}) | {_first(command)} |")
    for path, command in commands:
        lines += ["", *_section(path, command)]
    return "\n".join(lines) + "\n"


def _walk(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        if not inner.hidden:
            yield from _walk(inner, (*path, name))


def _first(command: Any) -> str:
    """The first sentence of a command's help."""
    whole = " ".join(_plain(command.help).partition("\n\n")[0].split())
    return whole.partition(". ")[0].rstrip(".") + "."


def _section(path: tuple[str, ...], command: Any) -> Iterator[str]:
    yield f"## {' '.join(('pdtui', *path))}"
    yield from ["", "```", " ".join(_usage(path, command)), "```", "", _plain(command.help)]
    rows = [_row(p) for p in command.params if not p.hidden]
    if rows:
        yield from ["", "| argument or option | | default |", "|---|---|---|", *rows]
    examples = EXAMPLES.get(" ".join(path))
    if examples:
        yield from ["", "```", *examples, "```"]


def _usage(path: tuple[str, ...], command: Any) -> Iterator[str]:
    yield from ("pdtui", *path)
    for parameter in command.params:
        if _is_argument(parameter):
            name = parameter.name.upper() + ("..." if parameter.nargs == -1 else "")
            yield name if parameter.required else f"[{name}]"
    if any(not _is_argument(p) for p in command.params):
        yield "[OPTIONS]"
    if hasattr(command, "commands"):
        yield "COMMAND" if command.no_args_is_help else "[COMMAND]"


def _is_argument(parameter: Any) -> bool:
    return not parameter.opts[0].startswith("-")


def _plain(text: str | None) -> str:
    return "\n".join(line.strip() for line in (text or "").splitlines()).strip()


def _row(parameter: Any) -> str:
    argument = _is_argument(parameter)
    names = [parameter.name.upper()] if argument else [*parameter.opts, *parameter.secondary_opts]
    about = [" ".join(_plain(parameter.help).split())]
    kind = parameter.type_descriptor.annotation
    if get_origin(kind) is Literal:
        about.append(f"One of {', '.join(f'`{c}`' for c in get_args(kind))}.")
    if parameter.envvar:
        about.append(f"Also: `{parameter.envvar}`.")
    if get_origin(kind) is list:
        about.append("May be given several times.")
    if parameter.required:
        about.append("Required.")
    text = " ".join(a for a in about if a).replace("|", "\\|")
    return f"| {', '.join(f'`{n}`' for n in names)} | {text} | {_default(parameter)} |"


def _default(parameter: Any) -> str:
    if isinstance(parameter.show_default, str):
        return parameter.show_default
    shown = parameter.show_default and not callable(parameter.default)
    return f"`{parameter.default}`" if shown and parameter.default not in (None, False) else ""
