"""Commands on the inventory: list, add, test, accept-key, fence, remove."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pdtui.cli import complete
from pdtui.cli.common import ask, confirm, guarded, port_range, print_json, print_table
from pdtui.i18n import tr

app = typer.Typer(help="The hosts that groups run on.", no_args_is_help=True, rich_markup_mode=None)

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Name = Annotated[str, typer.Argument(help="The host.", autocompletion=complete.hosts)]


@app.command("list")
@guarded
def list_hosts(context: typer.Context, json: Json = False) -> None:
    """Show every host, what it has and who holds it."""
    from pdtui.cli.groups import settled
    from pdtui.cli.tables import host_rows

    async def question(client):  # type: ignore[no-untyped-def]
        await settled(client)
        return await client.hosts()

    found = ask(context.obj, question)
    print_json(found) if json else print_table(*host_rows(found), empty=tr("cli.none.hosts"))


@app.command()
@guarded
def add(
    context: typer.Context,
    name: Name,
    address: Annotated[str, typer.Argument(help="Name, IP or ssh_config alias.")],
    port: Annotated[int, typer.Option(help="SSH port.")] = 22,
    user: Annotated[str | None, typer.Option(help="SSH user.")] = None,
    identity: Annotated[list[str] | None, typer.Option(help="Private key file.")] = None,
    jump: Annotated[str | None, typer.Option(help="Host to hop over.")] = None,
    runtime: Annotated[str, typer.Option(help="process, docker or podman.")] = "process",
    work_dir: Annotated[str, typer.Option(help="Instance directories go here.")] = ".pdtui",
    service_port_range: Annotated[str | None, typer.Option(help="FIRST-LAST.")] = None,
    kv_transfer_ifname: Annotated[str | None, typer.Option(help="KV interface.")] = None,
    executable: Annotated[list[str] | None, typer.Option(help="PROGRAM=PATH.")] = None,
    label: Annotated[list[str] | None, typer.Option(help="KEY=VALUE.")] = None,
    accept_key: Annotated[
        str | None, typer.Option(help="Accept the host's key if it has this fingerprint.")
    ] = None,
    json: Json = False,
) -> None:
    """Add a host, and look at it. Exit code 4 when it was added and cannot be used yet."""
    from backend.domain.errors import HostError

    document: dict[str, Any] = {
        "name": name,
        "address": address,
        "port": port,
        "user": user,
        "identity_files": identity or [],
        "jump": jump,
        "runtime": runtime,
        "work_dir": work_dir,
        "service_port_range": port_range(service_port_range),
        "kv_transfer_ifname": kv_transfer_ifname,
        "executables": pairs(executable),
        "labels": pairs(label),
    }

    async def question(client):  # type: ignore[no-untyped-def]
        from pdtui.cli.inventory import with_keys

        view = await client.add_host(document)
        if accept_key is not None and view.state == "key_unknown":
            view = await client.accept_host_key(name, accept_key)
        return await with_keys(client, view)

    view = ask(context.obj, question)
    show(view, json)
    if view.state != "up":  # it is kept, and cannot be used yet
        raise typer.Exit(HostError.exit_code)


def pairs(items: list[str] | None) -> dict[str, str]:
    """`KEY=VALUE` words as a mapping. Raises typer.BadParameter."""
    found = {}
    for item in items or []:
        key, sign, value = item.partition("=")
        if not sign or not key:
            raise typer.BadParameter(f"{item!r}: write KEY=VALUE")
        found[key] = value
    return found


@app.command("test")
@guarded
def look_at(context: typer.Context, name: Name, json: Json = False) -> None:
    """Look at a host now; says what is wrong and what to do."""
    from pdtui.cli.inventory import tested

    show(ask(context.obj, lambda client: tested(client, name)), json)


@app.command("accept-key")
@guarded
def accept_key_(
    context: typer.Context,
    name: Name,
    fingerprint: Annotated[str, typer.Argument(help="SHA256:..., as `hosts test` shows it.")],
    json: Json = False,
) -> None:
    """Trust the key a host shows, if it has this fingerprint."""
    show(ask(context.obj, lambda client: client.accept_host_key(name, fingerprint)), json)


@app.command()
@guarded
def fence(
    context: typer.Context,
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Give up all that is on a host that does not answer, so that it is placed elsewhere.

    What still lives there is killed the moment the host is back.
    """
    if not yes:
        confirm(f"Give up all that is on {name}? It may go on there unseen until {name} is back.")
    show(ask(context.obj, lambda client: client.fence_host(name), changes=True), json)


@app.command()
@guarded
def remove(
    context: typer.Context,
    name: Name,
    force: Annotated[
        bool, typer.Option(help="Also one that does not answer, giving up what is on it.")
    ] = False,
    json: Json = False,
) -> None:
    """Remove a host that carries nothing of ours."""
    ask(context.obj, lambda client: client.delete_host(name, force=force), changes=force)
    print_json({"name": name, "removed": True}) if json else typer.echo(
        tr("cli.removed", name=name)
    )


def show(view: Any, json: bool) -> None:
    """One host as a row, or as JSON."""
    from pdtui.cli.tables import host_rows

    print_json(view) if json else print_table(*host_rows([view]))
