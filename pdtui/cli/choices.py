"""Which modes a deployment may take, as rows."""

from __future__ import annotations

from pathlib import Path

import typer

from pdtui.cli.common import Options, ask, print_json, print_table


def show_choices(
    options: Options, file: Path | None, engine: str | None, vendor: str | None, json: bool
) -> None:
    """Print every mode: recommended, eligible, or why not; then what the versions are worth."""
    if file is not None and (engine or vendor):
        raise typer.BadParameter("--for says the engine and the hosts: leave the others out")
    if vendor not in (None, "nvidia", "ascend"):
        raise typer.BadParameter(f"{vendor!r}: --vendor is nvidia or ascend")
    from pdtui.cli.files import read_documents

    documents = read_documents(file) if file is not None else []
    if file is not None and len(documents) != 1:
        raise typer.BadParameter(f"{file} holds {len(documents)} documents, not one")
    about = {k: v for k, v in {"engine": engine, "vendor": vendor}.items() if v}
    document = documents[0] if documents else None
    found = ask(options, lambda client: client.mode_choices(document, **about))
    if json:
        print_json(found)
        return
    rows = [
        (c.mode, "recommended" if c.recommended else c.why_not or "fits", c.membership)
        for c in found
    ]
    print_table(("MODE", "FITS", "ROUTER UPDATE"), rows)
    for choice in found:
        for warning in choice.warnings:
            typer.echo(f"warning: {choice.mode}: {warning}", err=True)
