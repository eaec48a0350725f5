"""Cache services."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter

from backend.api.deps import Actor, TheBackend
from backend.api.wire import Document
from backend.domain.views import CacheChoice, CacheView

router = APIRouter(prefix="/caches", tags=["caches"])


@router.get("")
async def list_caches(backend: TheBackend) -> list[CacheView]:
    """All cache services, by name."""
    return list(backend.caches.all())


@router.get("-choices")
async def choices(
    backend: TheBackend, mode: str | None = None, role: Literal["prefill", "decode"] | None = None
) -> list[CacheChoice]:
    """Every cache service, and why a role in this mode may not use it."""
    return list(backend.caches.choices(mode, role))


@router.get("/{name}")
async def get_cache(name: str, backend: TheBackend) -> dict[str, Any]:
    """The saved document."""
    return backend.caches.document(name)


@router.put("/{name}")
async def put_cache(name: str, body: Document, backend: TheBackend, actor: Actor) -> CacheView:
    """Save a cache service; groups that use it show Config changed."""
    return await backend.caches.put(name, body, actor)


@router.delete("/{name}", status_code=204)
async def delete_cache(name: str, backend: TheBackend, actor: Actor) -> None:
    """Forget a cache service that no deployment uses."""
    await backend.caches.drop(name, actor)
