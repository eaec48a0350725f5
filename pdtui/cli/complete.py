"""What a shell completes, and the scripts that make it do so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from backend.client.names import Listed

ROLES = ("prefill", "decode", "replica")


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="Your shell.")],
) -> None:
    """Print the script that completes commands, options, and names of what there is."""
    from typer._completion_shared import get_completion_script

    typer.echo(
        get_completion_script(prog_name="pdtui", complete_var="_PDTUI_COMPLETE", shell=shell)
    )


def groups(context: typer.Context, incomplete: str) -> list[str]:
    """Names of deployments."""
    return _of(context, "groups", incomplete)


def hosts(context: typer.Context, incomplete: str) -> list[str]:
    """Names of hosts."""
    return _of(context, "hosts", incomplete)


def caches(context: typer.Context, incomplete: str) -> list[str]:
    """Names of cache services."""
    return _of(context, "caches", incomplete)


def instances(context: typer.Context, incomplete: str) -> list[str]:
    """Ids of instances."""
    return _of(context, "instances", incomplete)


def modes(context: typer.Context, incomplete: str) -> list[str]:
    """Names of modes."""
    return _of(context, "modes", incomplete)


def everything(context: typer.Context, incomplete: str) -> list[str]:
    """Names of whatever is saved as a document."""
    sorts: tuple[Listed, ...] = ("groups", "caches", "hosts")
    return [n for what in sorts for n in _of(context, what, incomplete)]


def counts(incomplete: str) -> list[str]:
    """The roles that have a count."""
    return [f"{r}=" for r in ROLES if r.startswith(incomplete)]


def _of(context: Any, what: Listed, incomplete: str) -> list[str]:
    from backend.client.names import names

    root = context.find_root().params
    return [n for n in names(root.get("state_dir"), what) if n.startswith(incomplete)]
