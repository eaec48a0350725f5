"""`pdtui diagnose`: the first cause in the logs of a group, an instance, or files."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pdtui.cli.common import ask, guarded, plain, print_json
from pdtui.i18n import current, tr

if TYPE_CHECKING:
    from backend.client.http import HttpClient
    from backend.domain.diagnosis.model import Diagnosis, Finding, GroupDiagnosis

STDIN = "-"
FOUND = 1
"""Exit code when a cause was found."""


@guarded
def diagnose(
    context: typer.Context,
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="GROUP|INSTANCE|FILE...",
            help="A deployment, an instance, or log files (- is standard input); several files "
            "are read together.",
        ),
    ],
    attempt: Annotated[
        int | None, typer.Option(help="An earlier attempt of an instance.", min=1)
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="List what else was found.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say why something does not serve, by its logs. Exit code 1 when a cause was found."""
    if any(_is_file(t) for t in targets):
        found = _files(targets)
    elif len(targets) > 1:
        raise typer.BadParameter("name one group or one instance, or files only")
    else:
        found = ask(context.obj, lambda client: _ask(client, targets[0], attempt))
    if json:
        print_json(found)
    else:
        _print(found, every=every)
    if any(d.first and d.first.severity in ("fatal", "unrecognised") for d in found.members):
        raise typer.Exit(FOUND)


def _is_file(target: str) -> bool:
    return target == STDIN or "/" in target or Path(target).is_file()


async def _ask(client: HttpClient, target: str, attempt: int | None) -> GroupDiagnosis:
    from backend.domain.diagnosis.model import GroupDiagnosis
    from pdtui.cli.groups import settled

    await settled(client)
    if attempt is None and any(g.name == target for g in await client.groups()):
        return await client.diagnose_group(target)
    one = await client.diagnose_instance(target, attempt)
    return GroupDiagnosis(group="", causes=(one.name,) if one.first else (), members=(one,))


def _files(targets: Sequence[str]) -> GroupDiagnosis:
    """Files, read together as members of one group are; a name that says a role gives it."""
    from backend.domain.diagnosis.model import GroupDiagnosis
    from backend.domain.diagnosis.pair import facts, first_causes, together
    from backend.domain.diagnosis.scan import diagnose as scan

    texts = {t: _read(t) for t in targets}
    found = [scan(text, name=t, role=_role(t)) for t, text in texts.items()]
    members = together(found, {}, {}, {t: facts(text) for t, text in texts.items()})
    causes = tuple(name for name, _ in first_causes(members))
    return GroupDiagnosis(group="", causes=causes, members=members)


def _role(name: str) -> str:
    stem = Path(name).name.lower()
    return next((r for r in ("prefill", "decode", "router") if r in stem), "")


def _read(target: str) -> str:
    """A file's beginning and end, as much as is diagnosed. Raises Invalid."""
    from backend.domain.diagnosis.text import MOST
    from backend.domain.errors import Invalid

    if target == STDIN:
        return sys.stdin.buffer.read().decode("utf-8", "replace")
    half = MOST // 2
    try:
        with open(target, "rb") as file:
            head = file.read(half)
            size = file.seek(0, os.SEEK_END)
            file.seek(max(half, size - half))
            tail = file.read()
    except OSError as error:
        raise Invalid.of(
            "diagnose.file",
            f"{target} cannot be read: {error.strerror}.",
            values={"file": target},
            remedy="Name a readable log file.",
        ) from None
    left = size - len(head) - len(tail)
    gap = f"\n[... {left} bytes in between were not read ...]\n" if left > 0 else ""
    return head.decode("utf-8", "replace") + gap + tail.decode("utf-8", "replace")


def _print(found: GroupDiagnosis, *, every: bool) -> None:
    order = {name: n for n, name in enumerate(found.causes)}
    for diagnosis in sorted(found.members, key=lambda d: (order.get(d.name, len(order)), d.name)):
        for line in _member(diagnosis, every=every):
            typer.echo(plain(line).rstrip())


def _member(diagnosis: Diagnosis, *, every: bool) -> Iterator[str]:
    about = [diagnosis.role] if diagnosis.role else []
    if diagnosis.generation > 1 or diagnosis.previous:
        about.append(tr("diagnosis.attempt", number=diagnosis.generation))
    yield f"{diagnosis.name} ({', '.join(about)}):" if about else f"{diagnosis.name}:"
    if diagnosis.unread:
        yield f"  {diagnosis.unread}"
    elif diagnosis.first is None:
        yield f"  {tr('diagnosis.nothing')}"
    elif diagnosis.peer:
        yield f"  {tr('diagnosis.peer', peer=diagnosis.peer)}"
        yield f"  {tr('diagnosis.line', line=diagnosis.first.line)}: {diagnosis.first.text}"
    else:
        yield from _finding(diagnosis.first)
    if every:
        for other in diagnosis.others:
            words = other.cause.text(current()) or other.text
            yield f"  {tr('diagnosis.also')}: {other.line}: {words} [{other.rule or '-'}]"
    for earlier in diagnosis.previous:
        if earlier.first is not None:
            words = earlier.first.cause.text(current()) or earlier.first.text
            yield f"  {tr('diagnosis.attempt', number=earlier.generation)}: {words}"


def _finding(finding: Finding) -> Iterator[str]:
    from backend.domain.diagnosis.document import link

    language = current()
    yield f"  {finding.cause.text(language) or tr('diagnosis.unknown')}"
    for note in finding.notes:
        yield f"  {note.text(language)}"
    times = f" ({tr('diagnosis.times', count=finding.count)})" if finding.count > 1 else ""
    yield f"  {tr('diagnosis.line', line=finding.line)}: {finding.text}{times}"
    if finding.remedy:
        yield f"  {tr('diagnosis.remedy')}: {finding.remedy.text(language)}"
    for explained in finding.explains:
        name, _, rule = explained.partition(" ")
        yield f"  {tr('diagnosis.explains', name=name, rule=rule)}"
    if finding.rule:
        yield f"  [{finding.rule}] {link(finding.rule)}"
