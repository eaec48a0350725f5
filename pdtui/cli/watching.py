"""Commands on what is watched: top, metrics, canary, alerts."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from pdtui.cli.common import ask, guarded, print_json, print_table
from pdtui.i18n import tr
from pdtui.i18n.catalog import word
from pdtui.present.telling import of_canary, of_watched

if TYPE_CHECKING:
    from backend.client.http import HttpClient
    from backend.domain.views import GroupView, MemberView
    from backend.domain.watch_views import CanaryView, MemberMetrics, PairView

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
FIRST_PAGE_S = 8.0
"""How long a backend that was started for this command is given to read each page twice."""
SPARKS = "▁▂▃▄▅▆▇█"
HEADER = (
    "GROUP", "MEMBER", "STATE", "PD", "REQ/S", "PROMPT/S", "GEN/S", "RUN", "WAIT", "KV", "TTFT",
    "TTFT95", "ITL", "KV MB/S",
)  # fmt: skip


@guarded
def top(
    context: typer.Context,
    names: Annotated[list[str] | None, typer.Argument(help="Deployments; all when none.")] = None,
    every: Annotated[float, typer.Option(help="Seconds between two looks.", min=0.5)] = 5.0,
    once: Annotated[bool, typer.Option("--once", help="Print once, and end.")] = False,
    json: Json = False,
) -> None:
    """Show what every member does now: requests, tokens, latencies, and whether PD works."""
    import asyncio

    async def question(client: HttpClient) -> None:
        live = not (once or json) and sys.stdout.isatty()
        await _first_pages(client)
        while True:
            groups = [g for g in await client.groups() if not names or g.name in names]
            if json:
                print_json([_plain(g) for g in groups])
                return
            if live:
                typer.echo("\x1b[H\x1b[J", nl=False)
            _table(groups)
            if not live:
                return
            await asyncio.sleep(every)

    ask(context.obj, question)


async def _first_pages(client: HttpClient) -> None:
    """Wait until members have figures, where some serve: a fresh backend has read nothing yet."""
    import asyncio

    from pdtui.cli.groups import settled

    await settled(client)
    deadline = asyncio.get_running_loop().time() + FIRST_PAGE_S
    while asyncio.get_running_loop().time() < deadline:
        members = [m for g in await client.groups() for m in g.members if m.state == "ready"]
        if not members or any(m.figures for m in members):
            return
        await asyncio.sleep(0.25)


def _plain(group: GroupView) -> dict[str, object]:
    return {
        "group": group.name,
        "effect": group.effect.model_dump(mode="json") if group.effect else None,
        "members": [
            {
                "id": m.id,
                "role": m.role,
                "state": m.state,
                "effect": m.effect.model_dump(mode="json") if m.effect else None,
                "figures": m.figures,
            }
            for m in group.members
        ],
    }


def _table(groups: Sequence[GroupView]) -> None:
    rows = [_row(g, m) for g in groups for m in g.members]
    print_table(HEADER, rows)
    for group in groups:
        if group.effect is not None:
            verdict, text = word("effect", group.effect.verdict), of_watched(group.effect)
            typer.echo(tr("cli.top.effect", name=group.name, verdict=verdict, text=text))


def _row(group: GroupView, m: MemberView) -> tuple[str, ...]:
    f = m.figures
    return (
        group.name,
        m.id,
        m.state,
        m.effect.verdict if m.effect else "-",
        _figure(f.get("requests")),
        _figure(f.get("prompt_tokens")),
        _figure(f.get("generation_tokens")),
        _figure(f.get("running")),
        _figure(f.get("waiting")),
        _percent(f.get("cache_usage")),
        _time(f.get("first_token_p50")),
        _time(f.get("first_token_p95")),
        _time(f.get("next_token_p50")),
        _figure(f["kv_bytes"] / 1e6 if "kv_bytes" in f else None),
    )


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.0f}%"


def _time(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value * 1000:.0f}ms" if value < 1 else f"{value:.2g}s"


@guarded
def metrics(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="A deployment, or one of its instances.")],
    window: Annotated[float, typer.Option(help="Minutes back from now.", min=0.1, max=60)] = 15.0,
    json: Json = False,
) -> None:
    """Show figures over time; of one instance also the newest value of every series."""

    async def question(client: HttpClient) -> object:
        await _first_pages(client)
        instances = {m.id for g in await client.groups() for m in g.members}
        if name in instances:
            return await client.member_metrics(name, window=60 * window)
        return await client.metrics(name, window=60 * window, points=60)

    found = ask(context.obj, question)
    if json:
        print_json(found)
        return
    from backend.domain.watch_views import GroupMetrics

    for member in found.members if isinstance(found, GroupMetrics) else (found,):
        _curves(member)  # type: ignore[arg-type]


def _curves(member: MemberMetrics) -> None:
    said = f": {member.problem}" if member.problem else ""
    typer.echo(f"{member.instance} ({member.role} on {member.host}){said}")
    for name, values in member.series.items():
        known = [v for v in values if v is not None]
        if known and any(known):
            typer.echo(f"  {name:<18} {_figure(known[-1]):>10}  {spark(values)}")
    for key, value in member.raw.items():
        if ".le:" not in key:
            typer.echo(f"  {key:<48} {value:g}")


def spark(values: Sequence[float | None]) -> str:
    """One character a value, from nought to the largest; a space where there is none."""
    most = max((v for v in values if v is not None), default=0.0)
    if most <= 0:
        return ""
    scale = len(SPARKS) - 1
    return "".join(" " if v is None else SPARKS[round(max(0.0, v) / most * scale)] for v in values)


@guarded
def canary(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The deployment.")],
    json: Json = False,
) -> None:
    """Send one small request through every prefill and decode, and one through the router.

    Exit code 1 when a pair does not answer, answers wrongly, or moves no KV.
    """

    async def question(client: HttpClient) -> CanaryView:
        from pdtui.cli.groups import settled

        await settled(client)
        return await client.canary(name)

    run = ask(context.obj, question)
    if json:
        print_json(run)
    else:
        _matrix(run)
    if not run.ok:
        raise typer.Exit(1)


def _matrix(run: CanaryView) -> None:
    """Prefills down, decodes across, then what is wrong."""
    decodes = sorted({p.decode for p in run.pairs})
    cells = {(p.prefill, p.decode): p for p in run.pairs}
    rows = [
        (prefill, *(_cell(cells.get((prefill, d))) for d in decodes))
        for prefill in sorted({p.prefill for p in run.pairs})
    ]
    if rows:
        print_table(("PREFILL \\ DECODE", *decodes), rows)
    if run.router is not None:
        colon = tr("colon")
        typer.echo(f"router{colon}{_cell(run.router)}{colon}{of_watched(run.router)}")
    for pair in run.pairs:
        if pair.verdict not in ("ok", "unknown"):
            typer.echo(f"{pair.prefill} -> {pair.decode}{tr('colon')}{of_watched(pair)}")
    if run.left_out:
        typer.echo(tr("cli.canary.left_out", count=run.left_out))
    key = "cli.canary.well" if run.ok else "cli.canary.fails"
    typer.echo(tr(key, seconds=f"{run.seconds:.1f}", note=of_canary(run)))


def _cell(pair: PairView | None) -> str:
    if pair is None:
        return "-"
    proof = " moved" if pair.moved else ""
    return f"{pair.verdict}{proof} {pair.seconds:.2f}s"


@guarded
def alerts(context: typer.Context, json: Json = False) -> None:
    """List what somebody should look at now. Exit code 1 when there is anything."""

    async def question(client: HttpClient):  # type: ignore[no-untyped-def]
        from pdtui.cli.groups import settled

        await settled(client)
        return await client.alerts()

    found = ask(context.obj, question)
    if json:
        print_json(found)
    elif not found:
        typer.echo(tr("cli.alerts.none"))
    else:
        rows = []
        for a in found:
            when = datetime.datetime.fromtimestamp(a.since, tz=datetime.UTC).astimezone()
            rows.append((f"{when:%m-%d %H:%M:%S}", a.level, a.kind, a.group or "-", of_watched(a)))
        print_table(("SINCE", "LEVEL", "KIND", "GROUP", "WHAT"), rows)
    if found:
        raise typer.Exit(1)
