"""Commands on saved documents and registered endpoints: history, rollback, endpoints."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from pdtui.cli import complete
from pdtui.cli.common import ask, guarded, print_json, print_table
from pdtui.i18n import tr

if TYPE_CHECKING:
    from backend.client.http import HttpClient
    from backend.domain.views import Difference, EndpointRow, GroupView

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Name = Annotated[str, typer.Argument(help="The deployment.", autocompletion=complete.groups)]


@guarded
def history(
    context: typer.Context,
    name: Name,
    diff: Annotated[
        str | None,
        typer.Option(help="What changed: OLDER or OLDER:NEWER.", metavar="VERSIONS"),
    ] = None,
    json: Json = False,
) -> None:
    """Show who saved a deployment when, and what each save changed."""
    if diff is not None:
        older, newer = _versions(diff)
        found = ask(context.obj, lambda client: client.difference(name, older, newer))
        if json:
            print_json(found)
        else:
            for line in found.changes or ("no difference",):
                typer.echo(line)
        return

    async def question(client: HttpClient) -> list[dict[str, object]]:
        versions = await client.history(name)
        out = []
        for n, v in enumerate(versions):
            before = versions[n + 1].version if n + 1 < len(versions) else None
            lines = await _changed(client, name, before, v.version)
            out.append({**v.model_dump(mode="json"), "changes": list(lines)})
        return out

    rows = ask(context.obj, question)
    if json:
        print_json(rows)
    else:
        print_table(("VERSION", "WHEN", "WHO", "WHAT"), [_row(r) for r in rows])


async def _changed(
    client: HttpClient, name: str, before: int | None, after: int
) -> tuple[str, ...]:
    if before is None or before == after:
        return ("first saved",)
    found: Difference = await client.difference(name, before, after)
    return found.changes or ("nothing",)


def _row(version: dict[str, object]) -> tuple[str, str, str, str]:
    when = datetime.datetime.fromtimestamp(float(str(version["at"]))).astimezone()
    changes = version["changes"]
    assert isinstance(changes, list)
    return (
        str(version["version"]),
        when.strftime("%Y-%m-%d %H:%M:%S"),
        str(version["actor"]),
        "; ".join(changes),
    )


def _versions(text: str) -> tuple[int, int | None]:
    """`2` or `2:4`. Raises BadParameter."""
    older, colon, newer = text.partition(":")
    try:
        return int(older), int(newer) if colon else None
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not OLDER or OLDER:NEWER, as in 2:4") from None


@guarded
def rollback(
    context: typer.Context,
    name: Name,
    version: Annotated[int, typer.Argument(help="The version to save again.", min=1)],
    json: Json = False,
) -> None:
    """Save an earlier document again. What runs is not touched before a restart."""
    group: GroupView = ask(context.obj, lambda client: client.rollback(name, version), changes=True)
    if json:
        print_json(group)
        return
    text = tr("cli.rolled_back", name=name, version=version, status=group.status)
    if group.config_changed:
        text += f" ({tr('cli.effect.restart_applies')})"
    typer.echo(text)
    for line in group.changes:
        typer.echo(f"  {line}")


@guarded
def endpoints(
    context: typer.Context,
    prometheus: Annotated[
        bool, typer.Option("--prometheus", help="Print scrape targets as a file_sd document.")
    ] = False,
    json: Json = False,
) -> None:
    """Show where groups answer: OpenAI base URL, served model name, status."""
    if prometheus:
        print_json(ask(context.obj, lambda client: client.scrape_targets()))
        return

    async def question(client: HttpClient) -> tuple[EndpointRow, ...]:
        from pdtui.cli.groups import settled

        await settled(client)
        return await client.endpoints()

    found = ask(context.obj, question)
    if json:
        print_json(found)
    else:
        rows = [(e.group, e.url or "-", e.model or "-", e.status) for e in found]
        print_table(("GROUP", "URL", "MODEL", "STATUS"), rows)
