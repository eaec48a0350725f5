"""Commands that fill the inventory: import from the ssh configuration, edit an entry, unlock."""

from __future__ import annotations

import getpass
import json as jsonlib
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pdtui.cli.common import ask, guarded, print_json, print_table
from pdtui.cli.hosts import Json, Name, app, pairs, show
from pdtui.i18n import tr

if TYPE_CHECKING:
    from backend.client.base import BackendClient
    from backend.domain.views import HostView, SshAlias

Patterns = Annotated[list[str] | None, typer.Argument(help="Aliases or patterns: 'gpu-*'.")]


@app.command("import")
@guarded
def import_hosts(
    context: typer.Context,
    patterns: Patterns = None,
    dry_run: Annotated[bool, typer.Option(help="Only list what would be added.")] = False,
    runtime: Annotated[str, typer.Option(help="process, docker or podman.")] = "process",
    label: Annotated[list[str] | None, typer.Option(help="KEY=VALUE.")] = None,
    json: Json = False,
) -> None:
    """Add the hosts that ~/.ssh/config names; their entries go on following that file."""
    import asyncio

    more = {"runtime": runtime, "labels": pairs(label)}

    async def question(client: BackendClient) -> list[tuple[SshAlias, HostView | None]]:
        found = await client.ssh_aliases(patterns or ())
        fresh = [a for a in found if not (a.entry or a.note or dry_run)]
        added = await asyncio.gather(
            *(client.add_host({"name": a.name, "address": a.alias, **more}) for a in fresh)
        )
        views = dict(zip((a.alias for a in fresh), added, strict=True))
        return [(a, views.get(a.alias)) for a in found]

    rows = ask(context.obj, question)
    if json:
        print_json([{**a.model_dump(mode="json"), "state": v.state if v else ""} for a, v in rows])
        return
    if not rows:
        typer.echo("~/.ssh/config names no such host")
        raise typer.Exit(1)
    header = ("ALIAS", "ENTRY", "LEADS TO", "JUMP", "IDENTITY", "WHAT")
    print_table(header, [_row(a, v, dry_run) for a, v in rows])


def _row(a: SshAlias, view: HostView | None, dry_run: bool) -> tuple[str, ...]:
    user = f"{a.user}@" if a.user else ""
    if a.note:
        what = a.note
    elif a.entry:
        what = "is in the inventory"
    elif view is None:
        what = "would be added" if dry_run else "-"
    else:
        what = f"added: {view.state}" + (f" ({view.note})" if view.note else "")
    identity = ", ".join(a.identity_files) or "-"
    return (a.alias, a.name, f"{user}{a.hostname}:{a.port}", a.jump or "-", identity, what)


@app.command("edit")
@guarded
def edit(
    context: typer.Context,
    name: Name,
    change: Annotated[
        list[str],
        typer.Argument(help="FIELD=VALUE; an empty value returns the field to its default."),
    ],
    json: Json = False,
) -> None:
    """Change fields of an entry, for example `kv_transfer_ifname=eth1 labels.zone=a`."""
    changes = pairs(change)

    async def question(client: BackendClient) -> HostView:
        entry, etag = await client.host_entry_at(name)
        for field, text in changes.items():
            _set(entry, field, text)
        return await with_keys(client, await client.add_host(entry, etag=etag))

    show(ask(context.obj, question), json)


def _set(entry: dict[str, Any], field: str, text: str) -> None:
    """Write one field; `labels.KEY` and `executables.PROGRAM` are fields of a field."""
    outer, dot, inner = field.partition(".")
    into = entry
    if dot:
        into = entry.setdefault(outer, {})
        if not isinstance(into, dict):
            raise typer.BadParameter(f"{outer!r} has no fields of its own")
        field = inner
    if not text:
        into.pop(field, None)
    elif field == "service_port_range":
        into[field] = [int(w) if w.isdecimal() else w for w in text.split("-")]
    elif field == "identity_files":
        into[field] = [w.strip() for w in text.split(",")]
    elif text[0] in "{[":
        try:
            into[field] = jsonlib.loads(text)
        except ValueError:
            raise typer.BadParameter(f"{field}: {text!r} is no JSON") from None
    else:
        into[field] = text


@app.command("unlock")
@guarded
def unlock(
    context: typer.Context,
    identity: Annotated[str, typer.Argument(help="Private key file of the backend's user.")],
) -> None:
    """Ask for a key file's passphrase and unlock it for as long as the backend lives."""
    import os

    path = identity if identity.startswith("~") else os.path.abspath(identity)
    secret = _passphrase(path) if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")

    async def question(client: Any) -> tuple[str, bool]:
        return await client.unlock(path, secret), bool(client.owned)

    fingerprint, alone = ask(context.obj, question)
    typer.echo(tr("cli.hosts.unlocked", path=path, fingerprint=fingerprint))
    if alone:
        typer.echo(
            "note: no daemon runs, so the key was unlocked for this command only; "
            "start `pdtui daemon` first.",
            err=True,
        )


def _passphrase(path: str) -> str:
    return getpass.getpass(f"Passphrase of {path}: ")


async def tested(client: BackendClient, name: str) -> HostView:
    """Look at a host; asks a person for the passphrase of a key that would be needed.

    Raises what the look met.
    """
    import asyncio

    from backend.domain.errors import HostDenied

    try:
        return await client.test_host(name)
    except HostDenied as error:
        if error.problem.rule != "host.passphrase" or not sys.stdin.isatty():
            raise
        for path in error.problem.values.get("identities", []):
            secret = await asyncio.to_thread(_passphrase, path)
            if secret:
                await client.unlock(path, secret)
        return await client.test_host(name)


async def with_keys(client: BackendClient, view: HostView) -> HostView:
    """The view of a host just saved; once more when a passphrase lets us in after all."""
    if view.state != "denied" or not sys.stdin.isatty():
        return view
    from backend.domain.errors import HostError

    try:
        return await tested(client, view.name)
    except HostError:
        return view  # the entry stays, its note says why
