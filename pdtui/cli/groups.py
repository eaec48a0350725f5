"""Commands on deployments: get, scale, restart, pause, resume, delete, logs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pdtui.cli import complete
from pdtui.cli.common import (
    Options,
    ask,
    confirm,
    guarded,
    plain,
    print_json,
    print_table,
)
from pdtui.i18n import tr

if TYPE_CHECKING:
    from backend.client.http import HttpClient
    from backend.domain.views import GroupView

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Wait = Annotated[
    bool | None,
    typer.Option(
        "--wait/--no-wait", help="Wait until it is done.", show_default="unless a daemon runs"
    ),
]
Force = Annotated[
    bool, typer.Option(help="Do not wait for hosts that do not answer; fence what they hold.")
]
Timeout = Annotated[float, typer.Option(help="Seconds to wait at most.", min=1)]
Name = Annotated[str, typer.Argument(help="The deployment.", autocompletion=complete.groups)]


@guarded
def get(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(help="One deployment; all without it.", autocompletion=complete.groups),
    ] = None,
    json: Json = False,
) -> None:
    """Show groups, or one group with its members."""
    from pdtui.cli.tables import group_lines, group_rows

    async def question(client: HttpClient) -> tuple[GroupView, ...]:
        await settled(client)
        return await client.groups() if name is None else (await client.group(name),)

    found = ask(context.obj, question)
    if json:
        print_json(found if name is None else found[0])
    elif name is None:
        print_table(*group_rows(found), empty=tr("cli.none.groups"))
    else:
        for line in group_lines(found[0]):
            typer.echo(line)


async def settled(client: HttpClient) -> None:
    """Give a backend that was started for this command a moment to look at the hosts."""
    if client.owned:
        from pdtui.cli.waiting import until_seen

        await until_seen(client)


@guarded
def scale(
    context: typer.Context,
    name: Name,
    counts: Annotated[
        list[str],
        typer.Argument(help="ROLE=N, for example prefill=3.", autocompletion=complete.counts),
    ],
    wait: Wait = None,
    timeout: Timeout = 900,
    json: Json = False,
) -> None:
    """Set wanted members by role. Exit code 3 when the count was stored but waits for a restart."""
    wanted = dict(_count(c) for c in counts)

    async def question(client: HttpClient) -> GroupView:
        from pdtui.cli.progress import Progress
        from pdtui.cli.waiting import until_ratio

        await client.scale(name, wanted)
        if client.owned if wait is None else wait:
            return await until_ratio(client, name, timeout, Progress())
        return await client.group(name)

    _say(ask(context.obj, question, changes=True), json)


def _count(text: str) -> tuple[str, int]:
    role, sign, number = text.partition("=")
    if not sign or not number.isdecimal():
        raise typer.BadParameter(f"{text!r}: write ROLE=N, for example prefill=3")
    return role, int(number)


@guarded
def restart(
    context: typer.Context,
    name: Name,
    force: Force = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    wait: Wait = None,
    timeout: Timeout = 900,
    json: Json = False,
) -> None:
    """Stop the whole group, confirm it gone, and form it from the saved configuration."""

    async def question(client: HttpClient) -> GroupView:
        from pdtui.cli.progress import Progress
        from pdtui.cli.waiting import until_restarted

        group = await client.group(name)
        if not yes:
            confirm(f"Restart {name}? It stops {len(group.members)} instances; requests fail "
                     "until it serves again.")  # fmt: skip
        group = await client.restart(name, force=force, etag=group.etag)
        if client.owned if wait is None else wait:
            group = await until_restarted(client, name, timeout, Progress())
        return group

    _say(ask(context.obj, question, changes=True), json)


@guarded
def pause(
    context: typer.Context,
    name: Name,
    force: Force = False,
    wait: Wait = None,
    timeout: Timeout = 900,
    json: Json = False,
) -> None:
    """Stop every member and keep the document."""
    _switch(context.obj, name, True, wait, timeout, json, force=force)


@guarded
def resume(
    context: typer.Context,
    name: Name,
    wait: Wait = None,
    timeout: Timeout = 900,
    json: Json = False,
) -> None:
    """Form a paused group again."""
    _switch(context.obj, name, False, wait, timeout, json)


def _switch(
    options: Options,
    name: str,
    paused: bool,
    wait: bool | None,
    timeout: float,
    json: bool,
    *,
    force: bool = False,
) -> None:
    async def question(client: HttpClient) -> GroupView:
        from pdtui.cli.progress import Progress
        from pdtui.cli.waiting import until_serving, until_stopped

        group = await client.pause(name, paused, force=force)
        if client.owned if wait is None else wait:
            settle = until_stopped if paused else until_serving
            group = await settle(client, name, timeout, Progress())
        return group

    _say(ask(options, question, changes=not paused), json)


@guarded
def delete(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(help="The deployment.", autocompletion=complete.groups)
    ] = None,
    file: Annotated[
        list[Path] | None,
        typer.Option("-f", "--file", help="Delete what this file or folder names, - for stdin."),
    ] = None,
    force: Force = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    wait: Wait = None,
    timeout: Timeout = 900,
    json: Json = False,
) -> None:
    """Stop the group and forget the deployment; with files, everything that they name."""
    if (name is None) == (not file):
        raise typer.BadParameter(tr("cli.delete_what"))
    if name is None:
        from pdtui.cli.deleting import delete_files

        code = delete_files(context.obj, file or [], yes=yes, wait=wait, timeout=timeout, json=json)
        raise typer.Exit(code)

    async def question(client: HttpClient) -> bool:
        from pdtui.cli.progress import Progress
        from pdtui.cli.waiting import until_gone

        group = await client.group(name)
        if not yes:
            confirm(tr("cli.delete?", names=name, count=len(group.members)))
        await client.delete(name, force=force, etag=group.etag)
        if client.owned if wait is None else wait:
            await until_gone(client, name, timeout, Progress())
            return True
        return False

    gone = ask(context.obj, question)
    if json:
        print_json({"name": name, "deleted": gone})
    else:
        typer.echo(tr("cli.deleted" if gone else "cli.being_deleted", name=name))


@guarded
def logs(
    context: typer.Context,
    instance: Annotated[
        str,
        typer.Argument(
            help="An instance, as `pdtui get NAME` lists them.",
            autocompletion=complete.instances,
        ),
    ],
    follow: Annotated[bool, typer.Option("-F", "--follow", help="Go on as it grows.")] = False,
    previous: Annotated[bool, typer.Option("-p", "--previous", help="The attempt before.")] = False,
    tail: Annotated[int, typer.Option(help="Bytes from the end.", min=1)] = 65536,
    json: Json = False,
) -> None:
    """Print an instance's log."""

    async def question(client: HttpClient) -> Any:
        import asyncio

        from backend.domain.errors import NotFound

        chunk = await client.log(instance, tail_bytes=tail)
        if previous and chunk.generation == 1:
            raise NotFound.of(
                "log.no_earlier",
                f"{instance} is in its first attempt: there is none before.",
                values={"instance": instance, "generation": 1},
                remedy="Leave --previous out.",
            )
        if previous:
            chunk = await client.log(instance, generation=chunk.generation - 1, tail_bytes=tail)
        if json:
            return chunk
        typer.echo(plain(chunk.text), nl=False)
        while follow:
            await asyncio.sleep(0.5)
            chunk = await client.log(instance, generation=chunk.generation, offset=chunk.offset)
            typer.echo(plain(chunk.text), nl=False)
        return None

    chunk = ask(context.obj, question)
    if chunk is not None:
        print_json(chunk)


@guarded
def events(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(help="One deployment; all without it.", autocompletion=complete.groups),
    ] = None,
    limit: Annotated[int, typer.Option(help="At most so many.", min=1)] = 100,
    json: Json = False,
) -> None:
    """Show what happened."""
    from pdtui.cli.tables import event_rows

    found = ask(context.obj, lambda client: client.events(name, limit))
    print_json(found) if json else print_table(*event_rows(found))


@guarded
def modes(
    context: typer.Context,
    file: Annotated[
        Path | None, typer.Option("--for", help="Say which ones fit the deployment of this file.")
    ] = None,
    engine: Annotated[str | None, typer.Option(help="Say which ones fit this engine.")] = None,
    vendor: Annotated[str | None, typer.Option(help="nvidia or ascend, with --engine.")] = None,
    json: Json = False,
) -> None:
    """Show the mode catalogue, or which modes a deployment may take and why not the others."""
    from pdtui.cli.choices import show_choices

    if file is not None or engine is not None:
        show_choices(context.obj, file, engine, vendor, json)
        return
    found = ask(context.obj, lambda client: client.modes())
    if json:
        print_json(found)
        return
    header = ("MODE", "ENGINES", "ACCELERATORS", "MEMBERSHIP", "RECIPE", "ORIGIN")
    rows = [
        (m.name, ",".join(m.engines) or "any", m.vendor or "any", m.membership, m.title, m.origin)
        for m in found
    ]
    print_table(header, rows)


def _say(group: GroupView, json: bool) -> None:
    from pdtui.cli.tables import group_lines

    if json:
        print_json(group)
        return
    for line in group_lines(group):
        typer.echo(line)
