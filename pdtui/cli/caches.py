"""Commands on cache services: list, apply, delete."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from pdtui.cli import complete
from pdtui.cli.common import ask, guarded, print_json, print_table
from pdtui.i18n import tr

app = typer.Typer(
    help="Cache services that roles attach to.", no_args_is_help=True, rich_markup_mode=None
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
@guarded
def list_caches(
    context: typer.Context,
    mode: Annotated[
        str | None,
        typer.Option(help="Say which ones this mode can use.", autocompletion=complete.modes),
    ] = None,
    role: Annotated[str | None, typer.Option(help="prefill or decode, with --mode.")] = None,
    json: Json = False,
) -> None:
    """Show every cache service, and who uses it, or why a role may not."""
    if role is not None and (mode is None or role not in ("prefill", "decode")):
        raise typer.BadParameter("--role is prefill or decode, and needs --mode")
    if mode is None:
        found = ask(context.obj, lambda client: client.caches())
        rows: list[Sequence[str]] = [
            (c.name, c.provider, c.endpoint or "-", ", ".join(c.used_by) or "-") for c in found
        ]
        header = ("NAME", "PROVIDER", "ENDPOINT", "USED BY")
        print_json(found) if json else print_table(header, rows)
        return
    offered = ask(context.obj, lambda client: client.cache_choices(mode, role))
    choices = [(c.name, c.provider, c.why_not or "yes") for c in offered]
    print_json(offered) if json else print_table(("NAME", "PROVIDER", "FITS"), choices)


@app.command("apply")
@guarded
def apply_caches(
    context: typer.Context,
    file: Annotated[
        Path,
        typer.Option("-f", "--file", help="YAML or JSON with kind: CacheService; - reads stdin."),
    ],
) -> None:
    """Save the cache services of a file. Groups that use one show Config changed."""
    from pdtui.cli.files import read_documents

    documents = read_documents(file)

    async def question(client: Any) -> list[str]:
        return [(await client.apply_cache(d)).name for d in documents]

    for name in ask(context.obj, question, changes=True):
        typer.echo(tr("cli.saved", kind="CacheService", name=name))


@app.command("delete")
@guarded
def delete_cache(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The cache service.", autocompletion=complete.caches)],
) -> None:
    """Forget a cache service that no deployment uses."""
    ask(context.obj, lambda client: client.delete_cache(name), changes=True)
    typer.echo(tr("cli.deleted", name=name))
