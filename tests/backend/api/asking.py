"""An HTTP client that bases each write on what it finds, as a careful caller does."""

from __future__ import annotations

import re
from typing import Any

import httpx

_OF = re.compile(r"^(/(?:deployments|hosts|caches)/[^/?]+)")
STATES = {"if-match", "if-none-match"}


class Careful(httpx.AsyncClient):
    """Reads before it writes; a write that states its own condition is sent as it is."""

    async def request(self, method: str, url: Any, **kwargs: Any) -> httpx.Response:
        headers = dict(kwargs.pop("headers", None) or {})
        of = _OF.match(str(url))
        if method not in ("GET", "HEAD") and of and not STATES & {h.lower() for h in headers}:
            there = await super().request("GET", of[1])
            tag = there.headers.get("etag")
            headers |= {"If-Match": tag} if tag else {"If-None-Match": "*"}
            if there.status_code == 404 and method != "PUT":
                headers = {k: v for k, v in headers.items() if k != "If-None-Match"}
                headers["If-Match"] = "*"
        return await super().request(method, url, headers=headers, **kwargs)
