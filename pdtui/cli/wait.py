"""The command that waits for groups to become something, for scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pdtui.cli import complete
from pdtui.cli.common import ask, guarded, print_json
from pdtui.i18n import tr

if TYPE_CHECKING:
    from backend.client.http import HttpClient
    from backend.domain.views import GroupView

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@guarded
def wait(
    context: typer.Context,
    names: Annotated[
        list[str],
        typer.Argument(help="Deployments.", autocompletion=complete.groups),
    ],
    until: Annotated[
        Literal["running", "serving", "stopped", "deleted"],
        typer.Option(
            "--for",
            help="running: the endpoint answers; serving: with every wanted member; "
            "stopped: nothing of it is left; deleted: it is forgotten.",
        ),
    ] = "running",
    timeout: Annotated[float, typer.Option(help="Seconds to wait at most.", min=0)] = 900,
    json: Json = False,
) -> None:
    """Wait until deployments are in a state; progress goes to stderr.

    Exit code 0 when all are, 1 when one cannot get there or is not there, 4 at the time-out.
    """
    from pdtui.cli.fleet import Fleet, serves

    async def question(client: HttpClient) -> list[GroupView]:
        fleet = Fleet(client, timeout)
        if until == "deleted":
            for name in names:
                await fleet.gone(name)
            return []
        for name in names:
            await client.group(name)  # raises NotFound
        done = {
            "running": (lambda g: g.status == "Running" and g.phase is None, "run"),
            "serving": (serves, "serve"),
            "stopped": (lambda g: not g.members, "stop"),
        }[until]
        return list((await fleet.until(names, *done)).values())

    groups = ask(context.obj, question)
    if json:
        print_json(groups or [{"name": n, "deleted": True} for n in names])
        return
    for name in names:
        status = next((g.status for g in groups if g.name == name), "")
        typer.echo(tr("cli.wait.done", name=name, state=status) if status
                   else tr("cli.deleted", name=name))  # fmt: skip
