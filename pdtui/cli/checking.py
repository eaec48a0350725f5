"""The `check` command: every document of a file judged, whatever is wrong with the others."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from pdtui.cli.common import Options, ask, print_json

if TYPE_CHECKING:
    from backend.client.http import HttpClient

Answer = dict[str, Any]
REFUSED, UNREADABLE = 1, 2
_BEGIN = re.compile(r"^---(?=\s|$)", re.M)
_COUNTED = ("refused", "warning", "unverified")


@dataclass(frozen=True)
class Part:
    """One document of a file: its data, or the answer that says why there is none."""

    data: object = None
    broken: Answer | None = None


def run(options: Options, file: Path, *, json: bool, every: bool) -> int:
    """Judge and print; the exit code: 2 when some document could not be read, 1 when one is
    refused, else 0. Raises Invalid for a file that cannot be read at all."""
    parts = list(read_parts(file))
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


def read_parts(file: Path) -> Iterator[Part]:
    """The documents of a file, `-` for stdin. Raises Invalid when it cannot be opened."""
    from backend.domain.errors import Invalid
    from pdtui.cli.files import read_text

    text = read_text(file)
    found = [part for piece in _pieces(text) if (part := _parsed(file, *piece)) is not None]
    if not found:
        raise Invalid.of(
            "file.empty",
            f"{file} holds no document.",
            values={"file": str(file)},
            remedy="Start from the example in the README.",
        )
    yield from found


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """Each document's text and the lines before it: a marker at a line's start begins one."""
    starts = [0, *(m.start() for m in _BEGIN.finditer(text)), len(text)]
    for start, end in pairwise(starts):
        if end > start:
            yield text.count("\n", 0, start), text[start:end]


def _parsed(file: Path, line: int, text: str) -> Part | None:
    import yaml

    from backend.domain.errors import Problem
    from pdtui.cli.files import load_all

    try:
        found = load_all(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        at = line + (mark.line + 1 if mark else 1)
        why = getattr(error, "problem", None) or "it is not YAML"
        problem = Problem(
            rule="file.yaml",
            message=f"{file} is not readable YAML at line {at}: {why}.",
            values={"file": str(file), "line": at},
            remedy="Correct that line; a tab or a missing quote is the usual cause.",
        )
        return Part(broken=_unreadable([problem.model_dump(mode="json")]))
    return Part(found[0]) if found else None


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

    if part.broken is not None:
        return part.broken
    try:
        if not isinstance(part.data, dict):
            from backend.domain.documents import parse_deployment

            parse_deployment(part.data)  # says what it is instead
        return _named(part, await client.check(part.data, every=every))  # type: ignore[arg-type]
    except Invalid as error:
        return _named(part, _unreadable([p.model_dump(mode="json") for p in error.problems]))


def _alone(check: Callable[..., Answer], part: Part, *, every: bool) -> Answer:
    from backend.domain.errors import Invalid

    if part.broken is not None:
        return part.broken
    try:
        return _named(part, check(part.data, every=every))
    except Invalid as error:
        return _named(part, _unreadable([p.model_dump(mode="json") for p in error.problems]))


def _named(part: Part, answer: Answer) -> Answer:
    """The answer, each verdict with the name of the document it is about."""
    metadata = part.data.get("metadata") if isinstance(part.data, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if isinstance(name, str):
        answer["verdicts"] = [{**v, "document": name} for v in answer["verdicts"]]
    return answer


def _print(verdicts: list[Any], skipped: list[str], documents: int) -> None:
    for v in verdicts:
        of = f"{v['document']}: " if documents > 1 and v.get("document") else ""
        message, remedy = words(v)
        typer.echo(f"{v['verdict']:<10}  {of}{v['path'] or '-'}: {message}  [{v['rule']}]")
        if remedy:
            typer.echo(f"{'':<12}{remedy}")
    for what in skipped:
        typer.echo(f"{'skipped':<10}  {what}")
    counts = {c: sum(v["verdict"] == c for v in verdicts) for c in _COUNTED}
    said = ", ".join(f"{n} {c}" for c, n in counts.items() if n) or "nothing found"
    typer.echo(f"{documents} document{'' if documents == 1 else 's'}: {said}")


def words(verdict: dict[str, Any]) -> tuple[str, str]:
    """Message and remedy in the language in use."""
    from backend.domain.errors import Problem
    from backend.domain.rules.words import LANGUAGES, say
    from pdtui.i18n import current

    language = current()
    if language not in LANGUAGES:
        return verdict["message"], verdict["remedy"]
    problem = Problem.model_validate({k: v for k, v in verdict.items() if k != "document"})
    return say(problem, language)
