"""Commands on files of documents: plan, apply, diff, and what `delete -f` does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pdtui.cli.common import ask, confirm, guarded, plain, print_json
from pdtui.cli.output import BAD, GOOD, paint
from pdtui.i18n import tr

if TYPE_CHECKING:
    from backend.client.http import HttpClient
    from backend.domain.views import GroupView
    from pdtui.cli.planned import Item

DIFFERS = 5
Files = Annotated[
    list[Path],
    typer.Option(
        "-f", "--file", help="YAML or JSON: a file, a folder, - for stdin. May be repeated."
    ),
]
Recursive = Annotated[bool, typer.Option("--recursive", "-R", help="Folders in the folders too.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@guarded
def plan(
    context: typer.Context, file: Files, recursive: Recursive = False, json: Json = False
) -> None:
    """Show what `apply` would do, and store nothing.

    Exit code 1 when a document is refused, 2 when one cannot be read.
    """
    from pdtui.cli.planned import complain_all, plan_all, read_items, worst

    items = read_items(file, recursive=recursive)

    async def question(client: HttpClient) -> None:
        from pdtui.cli.groups import settled

        await settled(client)
        await plan_all(client, items)

    ask(context.obj, question)
    _show(items, json)
    complain_all(items)
    _leave(worst(i.code for i in items))


@guarded
def diff(
    context: typer.Context, file: Files, recursive: Recursive = False, json: Json = False
) -> None:
    """Show the lines by which files differ from what is saved. Exit code 5 when they do."""
    from pdtui.cli.planned import complain_all, plan_all, read_items, worst

    items = read_items(file, recursive=recursive)
    ask(context.obj, lambda client: plan_all(client, items))
    found = [(i, _diff(i)) for i in items if i.plan is not None]
    if json:
        print_json([
            {"kind": i.kind, "name": i.name, "file": str(i.part.file), "lines": lines}
            for i, lines in found
        ])  # fmt: skip
    else:
        for item, lines in found:
            _print_diff(item, lines)
    complain_all([i for i in items if i.plan is None])
    differs = DIFFERS if any(lines for _, lines in found) else 0
    _leave(worst(i.code for i in items if i.plan is None) or differs)


def _diff(item: Item) -> list[str]:
    from backend.domain.secrets import masked
    from pdtui.state.yamltext import diff as lines_of

    assert item.plan is not None
    return lines_of(masked(item.plan.saved) or None, masked(item.plan.document))


def _print_diff(item: Item, lines: list[str]) -> None:
    if not lines:
        return
    saved = f"saved {item.kind} {item.name}"
    typer.echo(paint(f"--- {saved if item.plan and item.plan.saved else '/dev/null'}", bold=True))
    typer.echo(paint(f"+++ {item.part.at()}", bold=True))
    for line in lines:
        colour = {"+": GOOD, "-": BAD}.get(line[:1])
        typer.echo(paint(plain(line), colour))


@guarded
def apply(
    context: typer.Context,
    file: Files,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option(help="Show the plan, store nothing.")] = False,
    recursive: Recursive = False,
    prune: Annotated[
        bool, typer.Option(help="Delete deployments that --selector picks and no file holds.")
    ] = False,
    selector: Annotated[
        list[str] | None, typer.Option("--selector", "-l", help="KEY=VALUE, for --prune.")
    ] = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="Restart groups whose configuration changed.")
    ] = False,
    wait: Annotated[
        bool | None,
        typer.Option(
            "--wait/--no-wait", help="Wait until it serves.", show_default="unless a daemon runs"
        ),
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds to wait at most.", min=1)] = 900,
    json: Json = False,
) -> None:
    """Save deployments, cache services and hosts from files, after showing what that changes.

    What runs is not touched before a restart. A document that is broken or refused is told and
    left out; the others are saved. Exit code: 0 done, 1 something was refused, 2 something could
    not be read, 3 a count is stored and waits for a restart, 4 a host or a time-out.
    """
    from pdtui.cli.applying import Run

    labels = _selected(prune, selector)
    if json and not (yes or dry_run):
        raise typer.BadParameter(tr("cli.json_needs"))
    run = Run(file, recursive=recursive, labels=labels, restart=restart, wait=wait, timeout=timeout)

    async def question(client: HttpClient) -> list[GroupView]:
        from pdtui.cli.groups import settled

        await settled(client)
        await run.plan(client)
        if not json:
            _show(run.items, False)
            run.show_rest()
        run.complain()
        if dry_run or not run.pending:
            return await run.unchanged(client)
        if not yes:
            _ask(file, run.pending)
        return await run.save(client)

    groups = ask(context.obj, question, changes=not dry_run)
    if json and dry_run:
        _show(run.items, True)
    elif json:
        print_json(groups)
    run.complain()
    _leave(run.code)


def _selected(prune: bool, selector: Sequence[str] | None) -> dict[str, str] | None:
    """The labels of what may be pruned; None without --prune. Raises BadParameter."""
    from pdtui.cli.hosts import pairs

    if prune != bool(selector):
        raise typer.BadParameter(tr("cli.prune_needs"))
    return pairs(list(selector or ())) if prune else None


def _ask(files: Sequence[Path], count: int) -> None:
    if Path("-") in files:  # the documents came on stdin, so no answer can
        from backend.domain.errors import Invalid

        raise Invalid.of(
            "cli.no_terminal",
            tr("cli.stdin_taken"),
            values={"flag": "--yes"},
            remedy=tr("cli.no_terminal.remedy", flag="--yes"),
        )
    confirm(tr("cli.apply?", count=count))


def _show(items: Sequence[Item], json: bool) -> None:
    from backend.domain.secrets import masked
    from pdtui.cli.planned import show

    if not json:
        show(items)
        _summary(items)
        return
    out: list[dict[str, Any]] = []
    for i in items:
        body: dict[str, Any] = {"kind": i.kind, "name": i.part.name, "file": str(i.part.file),
                                "line": i.part.line(), "action": "refused"}  # fmt: skip
        if i.plan is not None:
            body |= masked(i.plan.model_dump(mode="json"))
        problems = [{**p.model_dump(mode="json"), "line": i.part.line(p.path)} for p in i.problems]
        out.append({**body, "later": i.later, "problems": problems})
    print_json(out)


def _summary(items: Sequence[Item]) -> None:
    counts: dict[str, int] = {}
    for i in items:
        key = "refused" if i.code or i.plan is None else "later" if i.later else i.plan.action
        counts[key] = counts.get(key, 0) + 1
    words = ", ".join(tr(f"cli.plan.count.{k}", count=n) for k, n in counts.items())
    typer.echo(tr("cli.plan.summary", words=words))


def _leave(code: int) -> None:
    if code:
        raise typer.Exit(code)
