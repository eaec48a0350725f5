"""The command that writes what is saved as documents, also into files that people keep."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pdtui.cli import complete
from pdtui.cli.common import ask, guarded
from pdtui.i18n import tr

if TYPE_CHECKING:
    from backend.client.http import HttpClient
    from backend.domain.kinds import Kind

Document = dict[str, Any]


@guarded
def export(
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(help="What to export.", autocompletion=complete.everything),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Everything there is.")] = False,
    kind: Annotated[
        list[str] | None,
        typer.Option(help="Only of this kind: Deployment, CacheService or Host. May be repeated."),
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option(
            help="Write into this file, or into a file each in this folder; comments, order and "
            "what did not change stay as they are."
        ),
    ] = None,
    with_secrets: Annotated[
        bool, typer.Option("--with-secrets", help="Write secrets out instead of masking them.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print saved deployments, cache services and hosts as documents that `apply` takes.

    A masked secret that is applied again stands for the saved value.
    """
    from backend.domain.kinds import KINDS
    from backend.domain.secrets import HIDDEN, masked

    if bool(names) == every:
        raise typer.BadParameter(tr("cli.export_what"))
    kinds = tuple(k for k in KINDS if not kind or k in kind)
    if kind and len(kinds) != len(set(kind)):
        raise typer.BadParameter(f"--kind: {', '.join(KINDS)}")
    found = ask(context.obj, lambda c: _saved(c, names or (), kinds))
    if not with_secrets:
        found = [masked(d) for d in found]
    if into is not None:
        for path, document, same in _write(into, found):
            key = "cli.export.same" if same else "cli.export.into"
            name = document["metadata"]["name"]
            typer.echo(tr(key, path=path, kind=document["kind"], name=name), err=True)
    else:
        _print(found, json)
    if any(HIDDEN in repr(d) for d in found):
        typer.echo(tr("cli.export.masked"), err=True)


def _print(found: Sequence[Document], json: bool) -> None:
    from pdtui.cli.output import print_json, wants_yaml
    from pdtui.state.yamltext import dump

    if json and not wants_yaml():
        print_json(found)
        return
    sys.stdout.write("---\n".join(dump(d) for d in found))
    sys.stdout.flush()


async def _saved(client: HttpClient, names: Sequence[str], kinds: Sequence[Kind]) -> list[Document]:
    """The documents of these names (all without any), by kind and name. Raises NotFound."""
    from backend.domain.errors import NotFound
    from backend.domain.kinds import KINDS
    from pdtui.cli.planned import saved_document

    there: dict[Kind, list[str]] = {
        "Host": [h.name for h in await client.hosts()],
        "CacheService": [c.name for c in await client.caches()],
        "Deployment": [g.name for g in await client.groups()],
    }
    known = {n for k in kinds for n in there[k]}
    for name in names:
        if name not in known:
            raise NotFound.of(
                "export.unknown",
                tr("cli.export.unknown", name=name),
                values={"name": name, "known": sorted(known)},
                remedy=tr("cli.export.unknown.do"),
            )
    chosen = [(k, n) for k in KINDS if k in kinds for n in sorted(there[k])]
    found = [await saved_document(client, k, n) for k, n in chosen if not names or n in names]
    return [d for d in found if d is not None]


def _write(into: Path, found: Sequence[Document]) -> list[tuple[Path, Document, bool]]:
    """Write each document where it stands already, else into a file of its own (a folder) or at
    the end (a file). Raises Invalid for a file that cannot be read or written."""
    from pdtui.cli.editing import place

    folder = into.is_dir() or (not into.suffix and not into.is_file())
    return [place(into, folder, d) for d in found]
