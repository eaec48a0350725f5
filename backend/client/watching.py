"""The client's questions on what is watched: metrics."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from backend.domain.watch_views import GroupMetrics, MemberMetrics


class WatchCalls:
    """What `HttpClient` asks of the routes on metrics."""

    async def _call(
        self, method: str, path: str, *, json: Any = None, params: dict[str, Any] | None = None
    ) -> Any:
        raise NotImplementedError

    async def metrics(self, group: str, *, window: float = 900, points: int = 120) -> GroupMetrics:
        """The figures of a group's instances over the last `window` seconds."""
        params = {"window": window, "points": points}
        path = f"/metrics/groups/{quote(group, safe='')}"
        return GroupMetrics.model_validate(await self._call("GET", path, params=params))

    async def member_metrics(
        self, instance: str, *, window: float = 900, points: int = 120
    ) -> MemberMetrics:
        """The figures of one instance, and the newest value of every series."""
        params = {"window": window, "points": points}
        path = f"/metrics/members/{quote(instance, safe='')}"
        return MemberMetrics.model_validate(await self._call("GET", path, params=params))
