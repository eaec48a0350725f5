"""What clients and monitoring are told of the groups: OpenAI endpoints and scrape targets. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from backend.domain.group import Group, Instance
from backend.domain.instance import host_port
from backend.domain.recipes import pinned, pinned_mode
from backend.domain.views import EndpointRow, GroupView
from backend.domain.worker_calls import served_name

SCRAPED = ("ready", "unhealthy", "draining")
"""States in which a metrics page is worth asking for: it has been served, and its process lives."""


def endpoint_rows(groups: Iterable[GroupView]) -> tuple[EndpointRow, ...]:
    """Every group's OpenAI base URL; empty while none is registered, and the status says why."""
    return tuple(
        EndpointRow(
            group=g.name,
            url=g.endpoint.url if g.endpoint else "",
            model=g.endpoint.model if g.endpoint else "",
            status=g.status,
        )
        for g in groups
    )


def metrics_place(group: Group, instance: Instance) -> tuple[int, str] | None:
    """Port and path of an instance's metrics page; None where it has none.

    A member is scraped at its HTTP port; a router at its metrics band, in modes that give it one,
    by the recipe the group runs on.
    """
    catalogue, mode = pinned(group), pinned_mode(group)
    if catalogue is None or group.formed is None or instance.state not in SCRAPED:
        return None
    if instance.role != "router":
        path = catalogue.engine(_engine(group, instance.role)).metrics_path
        return None if path is None else (instance.port, path)
    recipe = mode.router if mode is not None else None
    port = next((b.base for b in instance.bands if recipe and b.name == recipe.metrics_band), 0)
    return (port, recipe.metrics_path) if recipe is not None and port else None


def scrape_targets(group: Group, instances: Iterable[Instance]) -> list[dict[str, Any]]:
    """Prometheus' HTTP service discovery entries of a group's members and its router; those without
    a metrics page are left out."""
    if group.formed is None:
        return []
    document = group.formed.document
    out = []
    for i in instances:
        place = metrics_place(group, i)
        if place is None:
            continue
        port, path = place
        labels = {
            "__metrics_path__": path, "group": group.name, "role": i.role, "instance": i.id,
            "host": i.host, "model": served_name(document),
            "mode": document.spec.disaggregation.mode if document.spec.disaggregation else "",
        }  # fmt: skip
        out.append(_target(i.address, port, labels))
    return out


def _engine(group: Group, role: str) -> str:
    """The engine of a role, its own or the deployment's."""
    assert group.formed is not None
    spec = group.formed.document.spec
    own = getattr(spec.roles, role, None) if spec.roles is not None else None
    return str((own.engine if own is not None else None) or spec.engine)


def _target(address: str, port: int, labels: Mapping[str, str]) -> dict[str, Any]:
    at = host_port(address, port)
    return {"targets": [at], "labels": {k: v for k, v in labels.items() if v}}
