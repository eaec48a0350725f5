"""Cache services."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter, Response

from backend.api.deps import Actor, Expected, TheBackend, Who
from backend.api.masking import shown_to
from backend.api.pages import Paged
from backend.api.wire import Document
from backend.domain.views import CacheChoice, CacheView

router = APIRouter(prefix="/caches", tags=["caches"])


@router.get("")
async def list_caches(backend: TheBackend, page: Paged) -> list[CacheView]:
    """All cache services, by name."""
    return page.of(sorted(backend.store.caches), backend.caches.view)


@router.get("-choices")
async def choices(
    backend: TheBackend, mode: str | None = None, role: Literal["prefill", "decode"] | None = None
) -> list[CacheChoice]:
    """Every cache service, and why a role in this mode may not use it."""
    return list(backend.caches.choices(mode, role))


@router.get("/{name}")
async def get_cache(name: str, backend: TheBackend, who: Who, response: Response) -> dict[str, Any]:
    """The saved document; a caller who may only read sees no secret of it."""
    response.headers["ETag"] = backend.caches.view(name).etag
    return shown_to(who, backend.caches.document(name))


@router.put("/{name}")
async def put_cache(
    name: str,
    body: Document,
    backend: TheBackend,
    actor: Actor,
    expect: Expected,
    response: Response,
) -> CacheView:
    """Save a cache service; groups that use it show Config changed."""
    view = await backend.caches.put(name, body, actor, expect)
    response.headers["ETag"] = view.etag
    return view


@router.delete("/{name}", status_code=204)
async def delete_cache(name: str, backend: TheBackend, actor: Actor, expect: Expected) -> None:
    """Forget a cache service that no deployment uses."""
    await backend.caches.drop(name, actor, expect)
