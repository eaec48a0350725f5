"""Earlier documents, registered endpoints, and what monitoring is to scrape."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from backend.api.deps import Actor, TheBackend
from backend.api.wire import RollbackBody
from backend.domain.endpoints import endpoint_rows, scrape_targets
from backend.domain.views import Difference, EndpointRow, GroupView, VersionView
from backend.services.history import History

router = APIRouter(tags=["deployments"])


def _history(backend: TheBackend) -> History:
    return History(backend.store, backend.groups)


@router.get("/deployments/{name}/history")
async def history(name: str, backend: TheBackend) -> list[VersionView]:
    """Earlier documents, newest first."""
    return list(await _history(backend).versions(name))


@router.get("/deployments/{name}/diff")
async def difference(
    name: str, backend: TheBackend, older: int, newer: int | None = None
) -> Difference:
    """What changed between two versions; without `newer`, up to the present one."""
    return await _history(backend).difference(name, older, newer)


@router.post("/deployments/{name}/rollback")
async def rollback(name: str, body: RollbackBody, backend: TheBackend, actor: Actor) -> GroupView:
    """Save an earlier document again, through the same rules as any save."""
    return await _history(backend).rollback(name, body.version, actor)


@router.get("/endpoints", tags=["endpoints"])
async def endpoints(backend: TheBackend) -> list[EndpointRow]:
    """Every group's OpenAI base URL and served model name."""
    return list(endpoint_rows(backend.pictures.groups()))


@router.get("/prometheus/targets", tags=["endpoints"])
async def targets(backend: TheBackend) -> list[dict[str, Any]]:
    """All members and routers, as Prometheus' HTTP service discovery reads them."""
    store = backend.store
    return [
        target
        for name in sorted(store.groups)
        for target in scrape_targets(store.groups[name], store.of_group(name))
    ]
