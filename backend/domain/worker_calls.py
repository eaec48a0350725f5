"""The router's membership API, as pure requests and readings; the dialect is the mode's data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote as percent

from backend.domain.bands import HTTP
from backend.domain.deployment import Deployment
from backend.domain.errors import Invalid, Refused
from backend.domain.instance import Band, http_url
from backend.domain.mode import Mode, WorkerApi
from backend.domain.template import Renderer


@dataclass(frozen=True)
class Peer:
    """A member as its router sees it."""

    instance: str
    role: str
    address: str
    port: int
    bands: tuple[Band, ...] = ()
    generation: int = 1

    @property
    def url(self) -> str:
        """Base URL of the member's HTTP server."""
        return http_url(self.address, self.port)

    def scope(self) -> dict[str, Any]:
        """The peer's placeholders: disjoint from an instance's own by their prefix."""
        ports = {f"peer.ports.{b.name}": b.base for b in self.bands if b.name != HTTP}
        return {
            "peer.ip": self.address,
            "peer.port": self.port,
            "peer.url": self.url,
            "peer.role": self.role,
            "peer.instance": self.instance,
            **ports,
        }


@dataclass(frozen=True)
class HttpCall:
    """One request: `accepted` statuses did it, `gone` ones mean it was already so."""

    method: str
    path: str
    json: Any = None
    accepted: tuple[int, ...] = (200,)
    gone: tuple[int, ...] = ()


@dataclass(frozen=True)
class WorkerRow:
    """One row of the router's registry; `role` is ours, or the router's word where it is none."""

    id: str
    url: str
    role: str
    healthy: bool | None = None


def add_call(mode: Mode, deployment: Deployment, peer: Peer) -> HttpCall:
    """The request that adds `peer`. Raises Refused when a placeholder has no value."""
    call = _api(mode).add
    body = call.body_by_role.get(peer.role, call.body)  # type: ignore[call-overload]
    renderer = Renderer({**peer.scope(), "model_name": served_name(deployment)})
    json = renderer.data(body, "the membership body")
    path = renderer.text(call.path, "the membership path")
    renderer.finish(f"mode {mode.name}")
    return HttpCall(call.method, path, json, call.accepted, call.gone)


def remove_call(mode: Mode, row: WorkerRow) -> HttpCall:
    """The request that removes `row`, by the key the dialect deletes by."""
    api = _api(mode)
    key = row.id if api.key == "id" and row.id else row.url
    renderer = Renderer({"worker.key": percent(key, safe="")})
    path = renderer.text(api.remove.path, "the membership path")
    renderer.finish(f"mode {mode.name}")
    return HttpCall(api.remove.method, path, None, api.remove.accepted, api.remove.gone)


def list_call(mode: Mode) -> HttpCall:
    """The request that reads the registry back."""
    call = _api(mode).read
    return HttpCall(call.method, call.path, None, call.accepted)


def parse_workers(mode: Mode, json: object) -> tuple[WorkerRow, ...]:
    """The registry's rows.

    Raises Invalid (`router.registry`) for a shape that is not the dialect's: an unreadable answer
    is not an empty registry.
    """
    api = _api(mode)
    rows = json.get(api.rows) if isinstance(json, Mapping) else None
    if not isinstance(rows, list):
        raise _unreadable(mode, f"it has no list {api.rows!r}")
    return tuple(_row(mode, api, row) for row in rows)


def served_name(deployment: Deployment) -> str:
    """The name clients ask for: `served_model_name`, else the deployment's name."""
    return deployment.spec.served_model_name or deployment.name


def _row(mode: Mode, api: WorkerApi, row: object) -> WorkerRow:
    fields = api.fields
    if not isinstance(row, Mapping) or not isinstance(row.get(fields.url), str):
        raise _unreadable(mode, f"a row has no text {fields.url!r}")
    word = str(row.get(fields.role, ""))
    known = row.get(fields.healthy) if fields.healthy else None
    return WorkerRow(
        id=str(row.get(fields.id, "")) if fields.id else "",
        url=row[fields.url],
        role=fields.roles.get(word, word),
        healthy=known if isinstance(known, bool) else None,
    )


def _unreadable(mode: Mode, why: str) -> Invalid:
    return Invalid.of(
        "router.registry",
        f"The registry of the {mode.router.program} of mode {mode.name} cannot be read: {why}.",
        remedy="Check that the endpoint is that router and its version is a known one.",
    )


def _api(mode: Mode) -> WorkerApi:
    if mode.router.api is None:
        raise Refused.of(
            "router.membership",
            f"The router of mode {mode.name} has no membership API.",
            values={"mode": mode.name, "membership_update": mode.router.membership_update},
        )
    return mode.router.api
