"""What every group of the client's questions builds on."""

from __future__ import annotations

from typing import Any


class Calls:
    """The ways to ask, as `HttpClient` has them."""

    async def _call(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        params: dict[str, Any] | None = None,
        expect: str | None = None,
    ) -> Any:
        """The answer's body. `expect` is what a write is based on: see `headers_for`."""
        raise NotImplementedError

    async def _read_at(self, path: str) -> tuple[dict[str, Any], str]:
        """A document, and its entity tag."""
        raise NotImplementedError

    async def _etag(self, path: str) -> str:
        """The entity tag of what is there; empty when nothing is."""
        raise NotImplementedError

    async def _pages(self, path: str) -> list[Any]:
        """Every item of a list, page after page."""
        raise NotImplementedError
