"""The client's questions on what is watched: metrics."""

from __future__ import annotations

from urllib.parse import quote

from backend.client.calls import Calls
from backend.domain.watch_views import GroupMetrics, MemberMetrics


class WatchCalls(Calls):
    """What `HttpClient` asks of the routes on metrics."""

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
