"""The daemon, and what is around it: tokens, backups."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pdtui.cli.common import ask, confirm, guarded, print_json, print_table
from pdtui.i18n import tr

if TYPE_CHECKING:
    from backend.client.http import HttpClient

tokens = typer.Typer(help="Tokens for callers over TCP.", no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@guarded
def daemon(
    context: typer.Context,
    service_port_range: Annotated[
        str | None,
        typer.Option(
            help="Ports of hosts that set none, FIRST-LAST.",
            envvar="PDTUI_SERVICE_PORT_RANGE",
            show_default="40000-40063",
        ),
    ] = None,
    kv_transfer_ifname: Annotated[
        str | None,
        typer.Option(
            help="KV interface of hosts that set none.",
            envvar="PDTUI_KV_TRANSFER_IFNAME",
            show_default=False,
        ),
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(
            help="Also answer on TCP at HOST:PORT, to callers with a token.",
            envvar="PDTUI_LISTEN",
            show_default=False,
        ),
    ] = None,
    tls_cert: Annotated[
        Path | None, typer.Option(help="Certificate chain, PEM.", envvar="PDTUI_TLS_CERT")
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(help="Its key, PEM.", envvar="PDTUI_TLS_KEY")
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(help="A further name that TCP callers may reach it under; repeatable."),
    ] = None,
    plain_http: Annotated[
        bool, typer.Option("--plain-http", help="No TLS here: a proxy in front does it.")
    ] = False,
    takeover: Annotated[
        bool | None,
        typer.Option(
            "--takeover/--no-takeover",
            help="Take over from the backend that runs; the groups run on.",
            show_default="if it is older or lives for a console only",
        ),
    ] = None,
    print_unit: Annotated[
        bool, typer.Option("--print-unit", help="Print a unit file for systemd, and leave.")
    ] = False,
) -> None:
    """Run the backend without a screen until it is told to stop."""
    from backend.daemon import run
    from backend.listening import parse_tcp
    from pdtui.cli.common import port_range

    names = tuple(allowed_host or ())
    tcp = None
    if listen is not None:
        tcp = parse_tcp(listen, certificate=tls_cert, key=tls_key, names=names, plain=plain_http)
    ports = port_range(service_port_range)
    if print_unit:
        typer.echo(_unit(context), nl=False)
        return
    raise typer.Exit(
        run(
            state_dir=context.obj.state_dir,
            ports=ports,
            kv_transfer_ifname=kv_transfer_ifname,
            tcp=tcp,
            takeover=takeover,
        )
    )


def _unit(context: typer.Context) -> str:
    """The unit that runs the daemon as this command line does, wherever it is started from."""
    from backend.systemd import unit_text

    options: list[str] = []
    if context.obj.state_dir is not None:
        options += ["--state-dir", str(Path(context.obj.state_dir).absolute())]
    options.append("daemon")
    for name, value in context.params.items():
        flag = f"--{name.replace('_', '-')}"
        if value is None or name == "print_unit":
            continue
        if value is True:
            options.append(flag)
        elif value is False:
            options += ["--no-takeover"] if name == "takeover" else []
        elif isinstance(value, list | tuple):
            options += [w for v in value for w in (flag, str(v))]
        else:
            options += [flag, str(value.absolute()) if isinstance(value, Path) else str(value)]
    return unit_text(options)


@guarded
def backup(
    context: typer.Context,
    file: Annotated[
        Path | None, typer.Argument(help="The new file.", show_default="pdtui-TIME.tar.gz")
    ] = None,
    json: Json = False,
) -> None:
    """Write the store, accepted host keys and own modes to one file, also while a daemon runs.

    It holds the secrets of the documents too, so only its owner may read it.
    """
    import time

    from backend.keeping import backup as write
    from backend.paths import Paths
    from pdtui import __version__

    target = file or Path(time.strftime("pdtui-%Y%m%d-%H%M%S.tar.gz"))
    kept = write(Paths.default(context.obj.state_dir), target, __version__)
    if json:
        print_json({"file": str(kept.file), "groups": kept.groups, "hosts": kept.hosts})
    else:
        typer.echo(tr("cli.backup.kept", file=kept.file, groups=kept.groups, hosts=kept.hosts))


@guarded
def restore(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="What `pdtui backup` wrote.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Put a backup in the place of the store, which is moved aside. No backend may run."""
    from backend.keeping import restore as put
    from backend.paths import Paths

    paths = Paths.default(context.obj.state_dir)
    if not yes:
        confirm(f"Replace the store in {paths.state} by {file}?")
    kept = put(paths, file)
    if json:
        print_json({"groups": kept.groups, "hosts": kept.hosts, "aside": str(kept.aside)})
    else:
        typer.echo(tr("cli.backup.back", groups=kept.groups, hosts=kept.hosts))
        typer.echo(tr("cli.backup.aside", path=kept.aside))


@tokens.command("add")
@guarded
def add_token(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="What the history calls its holder.")],
    role: Annotated[
        Literal["read", "operate", "admin"],
        typer.Option(help="read sees; operate also changes; admin also gives out tokens."),
    ] = "read",
    days: Annotated[
        float | None, typer.Option(help="How long it holds.", show_default="until it is removed")
    ] = None,
    json: Json = False,
) -> None:
    """Give out a token. It is printed now, once, and kept nowhere."""
    made = ask(context.obj, lambda client: client.add_token(name, role, days))
    if json:
        print_json(made)
        return
    typer.echo(made.token)
    typer.echo(tr("cli.token.once"), err=True)


@tokens.command("list")
@guarded
def list_tokens(context: typer.Context, json: Json = False) -> None:
    """Who holds a token."""
    import time

    async def question(client: HttpClient):  # type: ignore[no-untyped-def]
        return await client.tokens()

    found = ask(context.obj, question)
    if json:
        print_json(found)
        return

    def day(at: float | None) -> str:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(at)) if at else ""

    rows = [(t.name, t.role, day(t.created), t.created_by, day(t.expires)) for t in found]
    print_table(("NAME", "ROLE", "CREATED", "BY", "EXPIRES"), rows)


@tokens.command("remove")
@guarded
def remove_token(
    context: typer.Context, name: Annotated[str, typer.Argument(help="The token's name.")]
) -> None:
    """Take a token back; it holds no longer from now on."""
    ask(context.obj, lambda client: client.drop_token(name))
    typer.echo(tr("cli.token.taken", name=name))
