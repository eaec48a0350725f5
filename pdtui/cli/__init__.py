"""The command line. Heavy imports live inside the commands: `--help` must not wait for them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from pdtui import __version__
from pdtui.cli.common import Options, guarded
from pdtui.cli.finish import finish
from pdtui.cli.tree import Tree
from pdtui.i18n import pick, tr, use

use(pick(os.environ))
app = typer.Typer(
    cls=Tree,
    name="pdtui",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
finish(app)


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


def main() -> None:
    """The `pdtui` command."""
    app()
