"""The client's questions on cache services, on which mode fits, and on what would be started."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from pydantic import TypeAdapter

from backend.client.calls import Calls
from backend.client.door import ANY
from backend.domain.views import CacheChoice, CacheView, ModeChoice, RenderedView


class CacheCalls(Calls):
    """What `HttpClient` asks of the routes on caches and mode choices."""

    async def caches(self) -> tuple[CacheView, ...]:
        """All cache services."""
        body = await self._pages("/caches")
        return TypeAdapter(tuple[CacheView, ...]).validate_python(body)

    async def cache_document(self, name: str) -> dict[str, Any]:
        """The saved document of one."""
        body: dict[str, Any] = await self._call("GET", f"/caches/{quote(name, safe='')}")
        return body

    async def cache_choices(
        self, mode: str | None = None, role: str | None = None
    ) -> tuple[CacheChoice, ...]:
        """Every cache service, and why a role in a mode may not use it."""
        asked = {"mode": mode, "role": role}
        params = {k: v for k, v in asked.items() if v}
        body = await self._call("GET", "/caches-choices", params=params)
        return TypeAdapter(tuple[CacheChoice, ...]).validate_python(body)

    async def apply_cache(self, document: dict[str, Any], *, etag: str | None = None) -> CacheView:
        """Save a cache service. `etag` is what the document was made from, empty for a new one;
        without it, it replaces what is there at this moment. Raises Changed."""
        metadata = document.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        path = f"/caches/{quote(str(name or 'unnamed'), safe='')}"
        expect = await self._etag(path) if etag is None else etag
        return CacheView.model_validate(await self._call("PUT", path, json=document, expect=expect))

    async def delete_cache(self, name: str, *, etag: str = ANY) -> None:
        """Forget a cache service that no deployment uses."""
        await self._call("DELETE", f"/caches/{quote(name, safe='')}", expect=etag)

    async def render(self, document: dict[str, Any]) -> tuple[RenderedView, ...]:
        """What one instance of each role would be started with."""
        body = await self._call("POST", "/render", json=document)
        return TypeAdapter(tuple[RenderedView, ...]).validate_python(body)

    async def mode_choices(
        self, document: dict[str, Any] | None = None, **about: str
    ) -> tuple[ModeChoice, ...]:
        """Which modes a deployment may take: of a document, or of `engine=` and `vendor=`."""
        if document is not None:
            body = await self._call("POST", "/mode-choices", json=document)
        else:
            body = await self._call("GET", "/mode-choices", params=about)
        return TypeAdapter(tuple[ModeChoice, ...]).validate_python(body)
