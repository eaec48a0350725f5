"""Earlier documents, registered endpoints, and what monitoring is to scrape."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from backend.api.deps import Actor, Expected, TheBackend, Who
from backend.api.masking import shown_to
from backend.api.pages import Paged
from backend.api.wire import RollbackBody
from backend.domain.endpoints import endpoint_rows, scrape_targets
from backend.domain.views import Difference, EndpointRow, GroupView, VersionView
from backend.services.history import History

router = APIRouter(tags=["deployments"])
Version = Annotated[int, Query(ge=1, le=2**53)]


def _history(backend: TheBackend) -> History:
    return History(backend.store, backend.groups)


@router.get("/deployments/{name}/history")
async def history(name: str, backend: TheBackend, who: Who, page: Paged) -> list[VersionView]:
    """Earlier documents, newest first; a caller who may only read sees no secret of them."""
    found = await _history(backend).versions(name)
    rows = {f"{10**12 - v.version:013}": v for v in found}
    return [
        v.model_copy(update={"document": shown_to(who, v.document)})
        for v in page.of(sorted(rows), rows.__getitem__)
    ]


@router.get("/deployments/{name}/diff")
async def difference(
    name: str, backend: TheBackend, older: Version, newer: Version | None = None
) -> Difference:
    """What changed between two versions; without `newer`, up to the present one."""
    return await _history(backend).difference(name, older, newer)


@router.post("/deployments/{name}/rollback")
async def rollback(
    name: str, body: RollbackBody, backend: TheBackend, actor: Actor, expect: Expected
) -> GroupView:
    """Save an earlier document again, through the same rules as any save."""
    return await _history(backend).rollback(name, body.version, actor, expect=expect)


@router.get("/endpoints", tags=["endpoints"])
async def endpoints(backend: TheBackend, page: Paged) -> list[EndpointRow]:
    """Every group's OpenAI base URL and served model name."""
    names = backend.pictures.group_names()
    return list(endpoint_rows(page.of(names, backend.pictures.group)))


@router.get("/prometheus/targets", tags=["endpoints"])
async def targets(backend: TheBackend) -> list[dict[str, Any]]:
    """All members and routers, as Prometheus' HTTP service discovery reads them."""
    store = backend.store
    return [
        target
        for name in sorted(store.groups)
        for target in scrape_targets(store.groups[name], store.of_group(name))
    ]
