"""How an answer leaves: as a table, a wider one, JSON or YAML; one way for every command.

A command that can print JSON declares `json: Json`, hands its answer to `print_json` or its rows to
`print_table`, and is finished by `shaped`, which gives it `--output` beside `--json`.
"""

from __future__ import annotations

import functools
import inspect
import json as jsonlib
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import IO, Annotated, Any, Literal

import typer

Shape = Literal["table", "wide", "json", "yaml"]

_shape: ContextVar[Shape] = ContextVar("shape", default="table")
_Output = Annotated[
    Shape | None,
    typer.Option(
        "--output", "-o", help="How to print it; wide shows more columns.", show_default="table"
    ),
]

GOOD, DOUBTFUL, BAD = "green", "yellow", "red"
_STATES = {
    **dict.fromkeys(("Running", "ready", "up", "pass", "recommended"), GOOD),
    **dict.fromkeys(
        ("Pending", "Partially ready", "starting", "draining", "stopping", "warn", "warning",
         "unverified", "unknown", "waiting", "key_unknown"), DOUBTFUL,
    ),
    **dict.fromkeys(
        ("crash_loop", "unreachable", "denied", "key_changed", "fail", "failed", "error",
         "refused", "lost"), BAD,
    ),
}  # fmt: skip
"""Colours of words that stand alone in a cell."""


def wide() -> bool:
    """Whether the table is to show every column."""
    return _shape.get() == "wide"


def wants_yaml() -> bool:
    """Whether YAML was asked for by name."""
    return _shape.get() == "yaml"


def shaped(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command with `json` as one that takes `--output` too; any other command as it is."""
    signature = inspect.signature(command, eval_str=True)
    if "json" not in signature.parameters or "output" in signature.parameters:
        return command

    @functools.wraps(command)
    def wrapper(*args: Any, output: Shape | None = None, json: bool = False, **more: Any) -> Any:
        if json and output not in (None, "json"):
            raise typer.BadParameter(f"--json and --output {output} contradict each other")
        chosen: Shape = output or ("json" if json else "table")
        before = _shape.set(chosen)
        try:
            return command(*args, json=chosen in ("json", "yaml"), **more)
        finally:
            _shape.reset(before)

    kind = inspect.Parameter.KEYWORD_ONLY
    one = inspect.Parameter("output", kind, default=None, annotation=_Output)
    parameters = [*signature.parameters.values(), one]
    wrapper.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {p.name: p.annotation for p in parameters}
    del wrapper.__wrapped__
    return wrapper


def print_json(value: Any) -> None:
    """`value` as JSON, or as YAML where that was asked for; models and sequences of models too."""
    body = _plain(value)
    if _shape.get() == "yaml":
        from pdtui.state.yamltext import dump

        typer.echo(dump(body), nl=False)
    else:
        typer.echo(jsonlib.dumps(body, indent=2, ensure_ascii=False))


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]], empty: str = "") -> None:
    """Columns as wide as their widest cell; the last one is not padded. `header` is in English and
    shown in the language in use. Without a row, `empty` says on stderr what to do about it."""
    lines = [headed(header), *([clean(c) for c in row] for row in rows)]
    if len(lines) == 1 and empty:
        typer.echo(empty, err=True)
    widths = [max(map(cells, column)) for column in zip(*lines, strict=True)]
    for number, line in enumerate(lines):
        out = []
        for column, (cell, width) in enumerate(zip(line, widths, strict=True)):
            pad = " " * (width - cells(cell)) if column < len(widths) - 1 else ""
            shown = paint(cell, bold=True) if number == 0 else paint(cell, _STATES.get(cell))
            out.append(shown + pad)
        typer.echo("  ".join(out).rstrip())


def headed(header: Sequence[str]) -> list[str]:
    """A table's head in the language in use; what is no known word stays as it is."""
    from pdtui.i18n import current

    if current() == "en":
        return list(header)
    from pdtui.i18n.zh_heads import HEADS

    return [HEADS.get(word, word) for word in header]


def paint(
    text: str, colour: str | None = None, *, bold: bool = False, stream: IO[str] | None = None
) -> str:
    """`text` in a colour, where the stream (stdout) shows colours."""
    if not (colour or bold) or not coloured(stream or sys.stdout):
        return text
    return typer.style(text, fg=colour, bold=bold or None)


def coloured(stream: IO[str]) -> bool:
    """Whether colours go to a stream: to a terminal that has them, unless NO_COLOR is set."""
    dumb = os.environ.get("TERM", "") in ("", "dumb")
    return stream.isatty() and not os.environ.get("NO_COLOR") and not dumb


def redraws(stream: IO[str]) -> bool:
    """Whether one line of a stream can be drawn anew: a terminal that is no dumb one."""
    return stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb")


_drawn: list[IO[str]] = []


def draw_line(text: str, stream: IO[str]) -> None:
    """Show as much of a text as one line takes, in the place of the line before."""
    try:
        width = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        width = 80
    text = clean(text)
    while cells(text) >= width:
        text = text[:-1]
    stream.write(f"\r\x1b[K{text}")
    stream.flush()
    if stream not in _drawn:
        _drawn.append(stream)


def clear_line() -> None:
    """Take away the line that was drawn, before anything else is printed."""
    while _drawn:
        stream = _drawn.pop()
        stream.write("\r\x1b[K")
        stream.flush()


def cells(text: str) -> int:
    """How many columns of a terminal a text takes."""
    import unicodedata

    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def clean(text: str) -> str:
    """Foreign text without control codes: a host's words must not drive the terminal."""
    return "".join(c if c.isprintable() else " " for c in text)
