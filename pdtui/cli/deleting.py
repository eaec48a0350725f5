"""What `delete -f` does: everything that the files name, what refers to others first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from backend.domain.errors import NotFound, PdError
from pdtui.cli.common import Options, ask, complain, confirm, print_json
from pdtui.cli.fleet import Fleet
from pdtui.cli.planned import Item, complain_all, each, read_items, saved_document, worst
from pdtui.i18n import tr

if TYPE_CHECKING:
    from backend.client.http import HttpClient


def delete_files(
    options: Options,
    files: Sequence[Path],
    *,
    yes: bool,
    wait: bool | None,
    timeout: float,
    json: bool,
) -> int:
    """Delete what the files name; what is not there any more is well. Returns the exit code."""
    items = read_items(files)
    good = [i for i in reversed(items) if not i.code and i.part.name]
    gone: dict[tuple[str, str], bool] = {}
    errors: list[PdError] = []

    async def question(client: HttpClient) -> None:
        groups = {g.name: g for g in await client.groups()}
        there = [i for i in good if await saved_document(client, i.kind, i.part.name)]
        gone.update({(i.kind, i.part.name): True for i in good if i not in there})
        if there and not yes:
            count = sum(len(groups[i.part.name].members) for i in there if i.part.name in groups)
            names = ", ".join(f"{i.kind} {i.part.name}" for i in there)
            confirm(tr("cli.delete?", names=names, count=count))
        deployments = [i for i in there if i.kind == "Deployment"]
        await _delete(client, deployments)
        rest = [i for i in there if i.kind != "Deployment"]
        must = client.owned if wait is None else wait
        try:
            for item in deployments if must or rest else ():
                await Fleet(client, timeout).gone(item.part.name)
        except PdError as error:
            errors.append(error)
        for kind in ("CacheService", "Host"):
            await _delete(client, [i for i in rest if i.kind == kind])
        for i in there:
            gone[i.kind, i.part.name] = not i.code and (i.kind != "Deployment" or must)

    ask(options, question)
    _say(good, gone, json)
    complain_all(items)
    for error in errors:
        complain(error)
    return worst([*(i.code for i in items), *(e.exit_code for e in errors)])


async def _delete(client: HttpClient, items: Sequence[Item]) -> None:
    calls = {
        "Deployment": client.delete,
        "CacheService": client.delete_cache,
        "Host": client.delete_host,
    }

    async def one(item: Item) -> None:
        try:
            await calls[item.kind](item.part.name)
        except NotFound:
            return  # somebody was quicker

    await each(items, one)


def _say(items: Sequence[Item], gone: dict[tuple[str, str], bool], json: bool) -> None:
    told = [i for i in items if not i.code]
    if json:
        print_json([
            {"kind": i.kind, "name": i.part.name, "deleted": gone[i.kind, i.part.name]}
            for i in told
        ])  # fmt: skip
        return
    for i in told:
        key = "cli.deleted" if gone[i.kind, i.part.name] else "cli.being_deleted"
        typer.echo(tr(key, name=f"{i.kind} {i.part.name}"))
