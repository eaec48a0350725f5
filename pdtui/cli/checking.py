"""The `check` command: every document of a file judged, whatever is wrong with the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pdtui.cli.common import Options, ask, guarded, print_json, told
from pdtui.i18n import tr
from pdtui.i18n.catalog import word
from pdtui.i18n.foreign import said_as

if TYPE_CHECKING:
    from backend.client.http import HttpClient
    from pdtui.cli.files import Part

Answer = dict[str, Any]
REFUSED, UNREADABLE = 1, 2
NO_FILE = ("file.unreadable", "file.empty", "file.too_large")
VERDICT_CELLS = 12
"""Terminal cells of the column of verdicts, the blanks behind it among them."""
_COUNTED = ("refused", "warning", "unverified")


@guarded
def check(
    context: typer.Context,
    files: Annotated[
        list[Path], typer.Argument(help="YAML or JSON, files or folders, - for stdin.")
    ],
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    every: Annotated[
        bool, typer.Option("--all", help="Also list the rules that found nothing.")
    ] = False,
    recursive: Annotated[
        bool, typer.Option("--recursive", "-R", help="Folders in the folders too.")
    ] = False,
) -> None:
    """Judge deployments without saving. Exit code 1 when anything is refused, 2 when unreadable."""
    code = run(context.obj, files, json=json, every=every, recursive=recursive)
    if code:
        raise typer.Exit(code)


def run(
    options: Options, files: Sequence[Path], *, json: bool, every: bool, recursive: bool = False
) -> int:
    """Judge and print; the exit code: 2 when some document could not be read, 1 when one is
    refused, else 0. Raises Invalid when no file of them holds a document at all."""
    from backend.domain.errors import Invalid
    from pdtui.cli.files import read_parts

    parts = read_parts(files, recursive=recursive)
    lost = [p.problem for p in parts if p.problem is not None and p.problem.rule in NO_FILE]
    if lost and len(lost) == len(parts):
        raise Invalid(*lost)
    answers = _judged(options, parts, every=every)
    verdicts = [v for a in answers for v in a["verdicts"]]
    skipped = sorted({s for a in answers for s in a["skipped"]})
    if json:
        print_json({"verdicts": verdicts, "skipped": skipped})
    else:
        _print(verdicts, skipped, len(parts))
    if any(a.get("unreadable") for a in answers):
        return UNREADABLE
    return REFUSED if any(v["verdict"] == "refused" for v in verdicts) else 0


def _unreadable(verdicts: list[Any]) -> Answer:
    return {"verdicts": verdicts, "skipped": [], "unreadable": True}


def _judged(options: Options, parts: list[Part], *, every: bool) -> list[Answer]:
    """The backend's answers where one lives, else what the recipes alone say."""
    from backend.client.offline import OfflineJudge, listening

    if listening(options.state_dir):

        async def question(client: HttpClient) -> list[Answer]:
            return [await _asked(client, part, every=every) for part in parts]

        return ask(options, question, embed=False)
    judge = OfflineJudge(options.state_dir)
    return [_alone(judge.check, part, every=every) for part in parts]


async def _asked(client: HttpClient, part: Part, *, every: bool) -> Answer:
    from backend.domain.errors import Invalid

    try:
        return _named(part, _only_read(part) or await client.check(part.data, every=every))
    except Invalid as error:
        return _named(part, _unreadable([p.model_dump(mode="json") for p in error.problems]))


def _alone(check: Callable[..., Answer], part: Part, *, every: bool) -> Answer:
    from backend.domain.errors import Invalid

    try:
        return _named(part, _only_read(part) or check(part.data, every=every))
    except Invalid as error:
        return _named(part, _unreadable([p.model_dump(mode="json") for p in error.problems]))


def _only_read(part: Part) -> Answer | None:
    """The answer for what no rule judges: kinds without rules. Raises Invalid."""
    from backend.domain.errors import Invalid
    from backend.domain.kinds import kind_of, parse

    if part.problem is not None:
        raise Invalid(part.problem)
    if kind_of(part.data) == "Deployment":
        return None
    parse(part.data)
    return {"verdicts": [], "skipped": []}


def _named(part: Part, answer: Answer) -> Answer:
    """The answer, each verdict with the name of the document it is about and where it stands."""
    more: Answer = {"file": str(part.file)}
    if part.name:
        more["document"] = part.name
    for v in answer["verdicts"]:
        v.update(more | {"line": part.line(v["path"])})
    return answer


def _print(verdicts: list[Any], skipped: list[str], documents: int) -> None:
    for v in verdicts:
        of = f"{v['document']}: " if documents > 1 and v.get("document") else ""
        message, remedy = words(v)
        where = v["path"] or tr("cli.check.line", line=v["line"])
        typer.echo(f"{_beside(word('verdict', v['verdict']))}{of}{where}: {message}  [{v['rule']}]")
        if remedy:
            typer.echo(f"{_beside('')}{remedy}")
    for what in skipped:
        typer.echo(f"{_beside(tr('cli.check.skipped'))}{said_as(what)}")
    counts = {c: sum(v["verdict"] == c for v in verdicts) for c in _COUNTED}
    said = ", ".join(f"{n} {tr(f'cli.check.{c}')}" for c, n in counts.items() if n)
    said = said or tr("cli.check.nothing")
    key = "cli.check.one" if documents == 1 else "cli.check.many"
    typer.echo(tr(key, count=documents, said=said))


def _beside(text: str) -> str:
    """The first column: a word, as wide as the widest."""
    from pdtui.cli.output import cells

    return text + " " * (VERDICT_CELLS - cells(text))


def words(verdict: dict[str, Any]) -> tuple[str, str]:
    """Message and remedy in the language in use."""
    from backend.domain.errors import Problem

    return told(Problem.model_validate(verdict))
