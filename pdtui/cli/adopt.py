"""The command that takes over groups whose store was lost."""

from __future__ import annotations

from typing import Annotated

import typer

from pdtui.cli.common import ask, confirm, guarded, print_json, print_table
from pdtui.i18n import tr

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@guarded
def adopt(
    context: typer.Context,
    owner: Annotated[
        str | None, typer.Argument(help="Whose; without it, what there is.", show_default=False)
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Take over groups whose store was lost, from what lies on the hosts. They run on untouched."""
    if owner is None:
        found, unasked = ask(context.obj, lambda client: client.adoptable())
        if json:
            print_json({"found": [f.model_dump(mode="json") for f in found], "unasked": unasked})
            return
        rows = [
            (f.owner, f.group or "-", f"{f.living}/{len(f.instances)}", ", ".join(f.hosts))
            for f in found
        ]
        print_table(("OWNER", "GROUP", "LIVING", "HOSTS"), rows)
        for host, why in sorted(unasked.items()):
            typer.echo(tr("cli.adopt.unasked", host=host, why=why), err=True)
        return
    if not yes:
        confirm(tr("cli.adopt?", owner=owner))
    done = ask(context.obj, lambda client: client.adopt(owner), changes=True)
    if json:
        print_json(done)
        return
    groups = ", ".join(done.groups) or tr("cli.adopt.none")
    typer.echo(tr("cli.adopted", groups=groups, count=len(done.instances)))
    if done.ended:
        typer.echo(tr("cli.adopt.ended", instances=", ".join(done.ended)))
