"""`pdtui doctor`: what each host lacks, and how to mend it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pdtui.cli import complete
from pdtui.cli.common import ask, guarded, print_json, print_table
from pdtui.cli.hosts import Json
from pdtui.i18n import tr
from pdtui.present.telling import of_finding

if TYPE_CHECKING:
    from backend.domain.doctor import Finding


@guarded
def doctor(
    context: typer.Context,
    hosts: Annotated[
        list[str] | None,
        typer.Argument(help="Hosts; all when none.", autocompletion=complete.hosts),
    ] = None,
    deployment: Annotated[
        str | None,
        typer.Option(
            "--for", help="Also what this deployment needs.", autocompletion=complete.groups
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="List what is well too.")] = False,
    json: Json = False,
) -> None:
    """Examine hosts. Exit code 1 when something would keep members from running there."""
    found = ask(context.obj, lambda client: client.doctor(hosts or (), deployment))
    failed = any(f.verdict == "fail" for f in found)
    if json:
        print_json(found)
    else:
        _print(found, every)
    if failed:
        raise typer.Exit(1)


def _print(found: tuple[Finding, ...], every: bool) -> None:
    if not found:
        typer.echo(tr("doctor.no_hosts"))
        return
    shown = [f for f in found if every or f.verdict != "pass"]
    rows = [(f.host, f.verdict, f.check, _sentence(f)) for f in shown]
    if rows:
        print_table(("HOST", "VERDICT", "CHECK", "WHAT AND WHAT TO DO"), rows)
    counts = {v: sum(1 for f in found if f.verdict == v) for v in ("pass", "warn", "fail")}
    hosts = len({f.host for f in found})
    key = "cli.doctor.summary.one" if hosts == 1 else "cli.doctor.summary"
    told = tr(key, hosts=hosts, well=counts["pass"], warned=counts["warn"], failed=counts["fail"])
    typer.echo(told)


def _sentence(found: Finding) -> str:
    """What was seen, and what to do."""
    seen, remedy = of_finding(found)
    return f"{seen}{tr('stop')}{remedy}".rstrip()
