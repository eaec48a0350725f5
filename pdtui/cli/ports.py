"""`pdtui ports`: a host's port map, what nobody can manage drawn in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pdtui.cli.common import ask, guarded, print_json, print_table
from pdtui.cli.hosts import Json, Name
from pdtui.cli.output import wide
from pdtui.i18n import tr

if TYPE_CHECKING:
    from backend.domain.portmap import PortMap, PortRun, PortWindow

UNMANAGED = {
    "engine": "engines choose ports here by themselves",
    "ephemeral": "the kernel's, for outgoing connections",
}
WORDS = {
    "ours": "in use",
    "claimed": "claimed by another",
    "foreign": "a stranger listens",
    "stuck": "cannot be bound",
    "free": "free",
}


@guarded
def ports(
    context: typer.Context,
    name: Name,
    every: Annotated[bool, typer.Option("--all", help="List each free run too.")] = False,
    json: Json = False,
) -> None:
    """Show who holds the ports of a host's service port range, and what reaches into it."""
    found = ask(context.obj, lambda client: client.host_ports(name))
    print_json(found) if json else _print(found, every)


def _print(found: PortMap, every: bool) -> None:
    shown = [r for r in found.runs if every or wide() or r.kind != "free"]
    header: tuple[str, ...] = ("PORTS", "COUNT", "WHAT", "HOLDER", "BAND")
    if wide():
        header = (*header, "LISTENING")
    rows = [_run(r) for r in shown] + [_window(w) for w in found.windows]
    if rows:
        print_table(header, rows)
    first, last = found.port_range
    free = tr(
        "cli.ports.free", host=found.host, free=found.free, total=last - first + 1, first=first,
        last=last, widest=found.widest,
    )  # fmt: skip
    typer.echo(free + ("" if found.tried else tr("cli.ports.untried")))


def span(first: int, last: int) -> str:
    """`40000-40007`, or the one port."""
    return str(first) if first == last else f"{first}-{last}"


def _run(run: PortRun) -> tuple[str, ...]:
    row = (
        span(run.first, run.last), str(run.size), WORDS[run.kind], run.holder or "-",
        run.band or "-",
    )  # fmt: skip
    return (*row, str(run.listening)) if wide() else row


def _window(window: PortWindow) -> tuple[str, ...]:
    what = UNMANAGED[window.kind] + (": OVERLAPS the range" if window.overlaps else "")
    names = sorted({x.name for x in window.listeners if x.name})
    size = window.last - window.first + 1
    row = (span(window.first, window.last), str(size), what, ", ".join(names[:5]) or "-", "-")
    return (*row, str(window.count)) if wide() else row
