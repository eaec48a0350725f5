"""The client's questions on what is watched: metrics, canaries, alerts."""

from __future__ import annotations

from urllib.parse import quote

from pydantic import TypeAdapter

from backend.client.calls import Calls
from backend.domain.watch_views import AlertView, CanaryView, GroupMetrics, MemberMetrics


class WatchCalls(Calls):
    """What `HttpClient` asks of the routes on watching."""

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

    async def canary(self, group: str) -> CanaryView:
        """Try every pair of a group now, and wait for all of them."""
        path = f"/groups/{quote(group, safe='')}/canary"
        while True:
            run = CanaryView.model_validate(await self._call("POST", path))
            if not run.running:
                return run

    async def alerts(self) -> tuple[AlertView, ...]:
        """Every alert that stands, the oldest first."""
        return TypeAdapter(tuple[AlertView, ...]).validate_python(
            await self._call("GET", "/alerts")
        )
