"""What every command shares: its options, how errors leave, how rows are printed."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

if TYPE_CHECKING:
    from backend.client.http import HttpClient
    from backend.domain.errors import PdError

R = TypeVar("R")
_CONTROL = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[PX^_].*?(?:\x1b\\|$)|\x1b\[[0-?]*[ -/]*[@-~]"
    r"|\x1b[ -/]*[0-~]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)


@dataclass(frozen=True)
class Options:
    """Options given before the command."""

    state_dir: Path | None = None


def guarded(command: Callable[..., R]) -> Callable[..., R]:
    """A command whose explained errors leave as text on stderr and an exit code."""

    @functools.wraps(command)
    def wrapper(*args: Any, **kwargs: Any) -> R:
        from backend.domain.errors import PdError

        try:
            return command(*args, **kwargs)
        except PdError as error:
            complain(error)
            raise typer.Exit(error.exit_code) from None
        except KeyboardInterrupt:
            raise typer.Exit(130) from None

    return wrapper


def complain(error: PdError) -> None:
    """Every problem of an error, one paragraph each, on stderr."""
    for problem in error.problems:
        where = f"{problem.path}: " if problem.path else ""
        typer.echo(f"error: {where}{problem.message}", err=True)
        if problem.remedy:
            typer.echo(f"       {problem.remedy}", err=True)
        typer.echo(f"       [{problem.rule}]", err=True)


def ask(
    options: Options,
    question: Callable[[HttpClient], Coroutine[Any, Any, R]],
    *,
    changes: bool = False,
    embed: bool = True,
) -> R:
    """Ask the living backend, or (with `embed`) one started for this command. Raises PdError.

    A command that changes something says so when nobody watches the groups after it.
    """
    import asyncio

    from backend.client.connect import open_client

    async def session() -> R:
        client = await open_client(options.state_dir, embed=embed, revive=False)
        try:
            answer = await question(client)
            if changes and client.owned:
                typer.echo(
                    "note: no daemon runs, so nothing watches the groups now; `pdtui daemon` does.",
                    err=True,
                )
            return answer
        finally:
            await client.aclose()

    return asyncio.run(session())


def plain(text: str) -> str:
    """A log's text without what would drive the terminal: escape sequences, bells, backspaces."""
    return _CONTROL.sub("", text)


def print_json(value: Any) -> None:
    """`value` as JSON on stdout; models and tuples of models too."""
    typer.echo(json.dumps(_plain(value), indent=2, ensure_ascii=False))


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Columns as wide as their widest cell; the last one is not padded."""
    lines = [list(header), *([_clean(c) for c in row] for row in rows)]
    widths = [max(map(_cells, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = [c + " " * (w - _cells(c)) for c, w in zip(line, widths, strict=True)]
        typer.echo("  ".join(cells).rstrip())


def _cells(text: str) -> int:
    import unicodedata

    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _clean(text: str) -> str:
    """Foreign text without control codes: a host's words must not drive the terminal."""
    return "".join(c if c.isprintable() else " " for c in text)


def port_range(text: str | None) -> tuple[int, int] | None:
    """`40000-40063` as two numbers. Raises typer.BadParameter."""
    if text is None:
        return None
    first, _, last = text.partition("-")
    if not (first.isdigit() and last.isdigit() and 1024 <= int(first) <= int(last) <= 65535):
        raise typer.BadParameter(
            f"{text!r} is no port range: write FIRST-LAST with 1024 <= FIRST <= LAST <= 65535, "
            "for example 40000-40063"
        )
    return int(first), int(last)
