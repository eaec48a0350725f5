"""The client's question on what saving a document would do."""

from __future__ import annotations

from typing import Any

from backend.client.calls import Calls
from backend.domain.planning import Plan


class PlanCalls(Calls):
    """What `HttpClient` asks of the route on plans."""

    async def plan(self, document: dict[str, Any]) -> Plan:
        """What saving a document of any kind would change and move."""
        return Plan.model_validate(await self._call("POST", "/plan", json=document))
