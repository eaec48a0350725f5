"""What every command shares: its options, how errors leave, how rows are printed."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from pdtui.cli.output import BAD, clear_line, paint, print_json, print_table
from pdtui.i18n import current, tr

if TYPE_CHECKING:
    from backend.client.http import HttpClient
    from backend.domain.errors import PdError, Problem

__all__ = ["Options", "ask", "complain", "confirm", "guarded", "plain", "port_range",
           "print_json", "print_table"]  # fmt: skip

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
        except UnicodeEncodeError as error:
            if not _UNDECODED.search(error.object[error.start : error.end]):
                raise
            unclear = _not_text(error.object)
            complain(unclear)
            raise typer.Exit(unclear.exit_code) from None
        except KeyboardInterrupt:
            raise typer.Exit(130) from None

    return wrapper


_UNDECODED = re.compile("[\ud800-\udfff]")
"""How Python keeps bytes of an argument that are no text."""


def _not_text(text: str) -> PdError:
    """An argument that holds bytes which are not UTF-8; nothing that is kept or sent may."""
    from backend.domain.errors import Invalid

    at = _UNDECODED.search(text)
    first, last = (at.start(), at.end()) if at else (0, 0)
    near = text[:first].rpartition('"')[2][-30:] + text[first:last] + text[last:].partition('"')[0]
    near = near[:60]
    shown = near.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return Invalid.of(
        "cli.not_text",
        tr("cli.not_text", shown=shown),
        values={"near": shown},
        remedy=tr("cli.not_text.do"),
    )


def complain(error: PdError) -> None:
    """Every problem of an error, one paragraph each, on stderr, in the language in use."""
    for problem in error.problems:
        complain_of(problem)


def complain_of(problem: Problem, at: str = "") -> None:
    """One problem; `at` says where its document stands (`chat.yaml:12`)."""
    message, remedy = told(problem)
    where = "".join(f"{w}: " for w in (at, problem.path) if w)
    typer.echo(f"{paint(tr('cli.error'), BAD, stream=sys.stderr)}: {where}{message}", err=True)
    near = _near(problem)
    if near:
        remedy = f"{tr('cli.meant', near=near)} {remedy}".rstrip()
    if remedy:
        typer.echo(f"       {remedy}", err=True)
    typer.echo(f"       [{problem.rule}]", err=True)


_ASKED = ("name", "host", "service", "mode")
"""Values that are the name somebody asked for."""


def _near(problem: Problem) -> str:
    """The name that was meant, of those that are known; empty when none is near."""
    import difflib

    known = problem.values.get("known")
    asked = next((problem.values[k] for k in _ASKED if k in problem.values), None)
    if not isinstance(asked, str) or not isinstance(known, list):
        return ""
    return next(iter(difflib.get_close_matches(asked, map(str, known), n=1)), "")


def told(problem: Problem) -> tuple[str, str]:
    """Message and remedy in the language in use, where the rule has words of it."""
    from backend.domain.rules.words import LANGUAGES, say

    language = current()
    return say(problem, language) if language in LANGUAGES else (problem.message, problem.remedy)


def confirm(question: str, *, flag: str = "--yes") -> None:
    """Ask a person. Raises Invalid (`cli.no_terminal`) where nobody can answer, Exit on no."""
    if not sys.stdin.isatty():
        from backend.domain.errors import Invalid

        raise Invalid.of(
            "cli.no_terminal",
            tr("cli.no_terminal", question=question),
            values={"flag": flag},
            remedy=tr("cli.no_terminal.remedy", flag=flag),
        )
    if not typer.confirm(question, err=True):
        raise typer.Exit(130)


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
                typer.echo(tr("cli.unwatched"), err=True)
            return answer
        finally:
            clear_line()
            await client.aclose()

    return asyncio.run(session())


def plain(text: str) -> str:
    """A log's text without what would drive the terminal: escape sequences, bells, backspaces."""
    return _CONTROL.sub("", text)


def port_range(text: str | None) -> tuple[int, int] | None:
    """`40000-40063` as two numbers. Raises typer.BadParameter."""
    if text is None:
        return None
    first, _, last = text.partition("-")
    if not (first.isdecimal() and last.isdecimal() and 1024 <= int(first) <= int(last) <= 65535):
        raise typer.BadParameter(
            f"{text!r} is no port range: write FIRST-LAST with 1024 <= FIRST <= LAST <= 65535, "
            "for example 40000-40063"
        )
    return int(first), int(last)
