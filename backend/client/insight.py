"""The client's calls on why a group does not serve, and on whether its roles pay."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from backend.domain.advice.model import Advice
from backend.domain.diagnosis.model import Diagnosis, GroupDiagnosis


class InsightCalls:
    """Calls of `HttpClient` on diagnosis and advice."""

    async def _call(
        self, method: str, path: str, *, json: Any = None, params: dict[str, Any] | None = None
    ) -> Any:
        raise NotImplementedError

    async def diagnose_group(self, name: str) -> GroupDiagnosis:
        """All logs of a group, read together."""
        path = f"/groups/{quote(name, safe='')}/diagnosis"
        return GroupDiagnosis.model_validate(await self._call("GET", path))

    async def diagnose_instance(self, instance: str, generation: int | None = None) -> Diagnosis:
        """One instance's log in the light of its peers', or that of an earlier attempt."""
        path = f"/instances/{quote(instance, safe='')}/diagnosis"
        params = {} if generation is None else {"generation": generation}
        return Diagnosis.model_validate(await self._call("GET", path, params=params))

    async def advise(self, **asked: Any) -> Advice:
        """Advice on a deployment by `name`, or on a `document`; with what is known better."""
        body = {k: v for k, v in asked.items() if v is not None}
        return Advice.model_validate(await self._call("POST", "/advice", json=body))
