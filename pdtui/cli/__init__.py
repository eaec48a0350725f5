"""The command line. Heavy imports live inside the commands: `--help` must not wait for them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from pdtui import __version__
from pdtui.cli import (
    adopt,
    advising,
    caches,
    complete,
    convert,
    declare,
    diagnosing,
    export,
    groups,
    history,
    hosts,
    instances,
    inventory,
    practice,
    wait,
    watching,
)
from pdtui.cli import daemon as daemon_
from pdtui.cli import doctor as doctor_
from pdtui.cli import ports as ports_
from pdtui.cli.common import Options, guarded
from pdtui.cli.finish import finish
from pdtui.i18n import pick, tr, use

use(pick(os.environ))
app = typer.Typer(
    name="pdtui",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
groups.add_to(app)
declare.add_to(app)
export.add_to(app)
wait.add_to(app)
complete.add_to(app)
history.add_to(app)
instances.add_to(app)
adopt.add_to(app)
inventory.add_to(hosts.app)
doctor_.add_to(app)
ports_.add_to(app)
watching.add_to(app)
daemon_.add_to(app)
diagnosing.add_to(app)
advising.add_to(app)
app.add_typer(hosts.app, name="hosts")
app.add_typer(convert.app, name="convert")
app.add_typer(caches.app, name="caches")
app.add_typer(practice.app, name="practice")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pdtui {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def console(
    context: typer.Context,
    state_dir: Annotated[
        Path | None,
        typer.Option(help="Where the store lies.", envvar="PDTUI_STATE_DIR", show_default=False),
    ] = None,
    read_only: Annotated[bool, typer.Option(help="Let no key change anything.")] = False,
    theme: Annotated[
        Literal["dark", "light"] | None,
        typer.Option(help="Colours of the console.", show_default="the terminal's"),
    ] = None,
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_version, is_eager=True),
    ] = False,
) -> None:
    """Deploy, scale and restart prefill/decode disaggregated LLM serving over SSH.

    Without a command: the console, on the backend that runs or on one of its own.
    """
    context.obj = Options(state_dir)
    if context.invoked_subcommand is None:
        open_console(state_dir, read_only=read_only, theme=theme)


@guarded
def open_console(
    state_dir: Path | None, *, read_only: bool = False, theme: str | None = None
) -> None:
    """Draw first; the backend is looked for, or started, after the first frame."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        from backend.domain.errors import Invalid

        raise Invalid.of("cli.no_screen", tr("cli.no_screen"), remedy=tr("cli.no_screen.remedy"))
    from pdtui.start import run

    async def connect():  # type: ignore[no-untyped-def]
        from backend.client.connect import open_client

        return await open_client(state_dir)

    run(connect, read_only=read_only, theme=theme, state_dir=state_dir)


@app.command()
@guarded
def demo(
    headless: Annotated[
        bool, typer.Option("--headless", help="Run the same story without a screen.")
    ] = False,
    hosts: Annotated[int, typer.Option(help="Embedded hosts.", min=2, max=16)] = 4,
) -> None:
    """A 2P1D group on embedded hosts: no GPU, no sshd, no root. Leaving it cleans everything up."""
    from pdtui.cli.demo import interactive, story

    if headless or not sys.stdout.isatty():
        raise typer.Exit(story(hosts))
    interactive(hosts)


finish(app)


def main() -> None:
    """The `pdtui` command."""
    app()
