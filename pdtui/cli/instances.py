"""Commands on single instances and their router: delete-instance, told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pdtui.cli.common import ask, confirm, guarded, print_json
from pdtui.i18n import tr
from pdtui.present.telling import of_deletion

if TYPE_CHECKING:
    from backend.client.http import HttpClient
    from backend.domain.views import Deletion, GroupView

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@guarded
def delete_instance(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The deployment.")],
    instance: Annotated[str, typer.Argument(help="The instance, as `pdtui get` lists it.")],
    force: Annotated[
        bool, typer.Option(help="Do not wait for a host that does not answer; fence it there.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Take one instance out; a new one takes its place unless changes wait for a restart."""

    async def question(client: HttpClient) -> Deletion:
        meant = await client.delete_instance(name, instance, dry_run=True, force=force)
        for line in of_deletion(meant):
            typer.echo(line, err=True)
        if not yes:
            confirm(f"Take {instance} out?")
        return await client.delete_instance(name, instance, force=force)

    found = ask(context.obj, question, changes=True)
    print_json(found) if json else typer.echo(tr("cli.instance.to_go", instance=instance))


@guarded
def told(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The deployment.")],
    json: Json = False,
) -> None:
    """Say that you told a router which is kept up by hand of its members: its to-do is done."""

    async def question(client: HttpClient) -> GroupView:
        return await client.told(name)

    group = ask(context.obj, question, changes=True)
    if json:
        print_json(group)
        return
    known = [m.id for m in group.members if m.role != "router" and m.state == "ready"]
    members = ", ".join(known) or tr("cli.instance.no_member")
    typer.echo(tr("cli.instance.known", name=name, members=members))
