"""Commands that turn other programs' files into documents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pdtui.cli.common import guarded
from pdtui.cli.output import DOUBTFUL, paint
from pdtui.i18n import tr

app = typer.Typer(
    help="Turn other programs' files into documents.", no_args_is_help=True, rich_markup_mode=None
)


@app.callback()
def _group() -> None:
    """Turn other programs' files into documents."""


@app.command()
@guarded
def gpustack(
    file: Annotated[
        Path, typer.Argument(help="A model as GPUStack's API gives it, or a list; - for stdin.")
    ],
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit code 1 when something has no place here.")
    ] = False,
) -> None:
    """Print a GPUStack model as a deployment document; stderr names every field without a place.

    Judge the result with `pdtui check`: what the source let pass may be refused here.
    """
    import sys

    from backend.domain.gpustack import convert, models_in
    from pdtui.cli.files import read_documents
    from pdtui.state.yamltext import dump

    found = [convert(m) for data in read_documents(file) for m in models_in(data)]
    typer.echo("---\n".join(dump(c.document) for c in found), nl=False)
    for one in found:
        for path, why, values in one.dropped:
            name = one.document["metadata"]["name"]
            note = paint(tr("cli.note"), DOUBTFUL, stream=sys.stderr)
            reason = tr(f"cli.convert.{why}", **values)
            typer.echo(f"{note}: {name}: {path}: {reason}", err=True)
    if strict and any(c.dropped for c in found):
        raise typer.Exit(1)
