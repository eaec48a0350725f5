"""The keys that our own requests carry to members and routers that ask for one."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable

from backend.adapters.secrets import resolved
from backend.domain.api_keys import MEMBER_KEY, asked_key, bearer
from backend.domain.errors import Refused
from backend.domain.group import Instance

log = logging.getLogger(__name__)

LASTS_S = 30.0
"""So long a value is not fetched again: a round of requests runs its command once."""


class Keys:
    """What is sent to whom. Values kept elsewhere are fetched when they are first needed."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._known: dict[str, tuple[float, str]] = {}

    async def headers(self, instances: Iterable[Instance]) -> dict[str, str]:
        """The header for the first of the instances that asks for a key; none where none does, or
        where its value cannot be had now (the answer is then 401)."""
        found = next(((k, i.id) for i in instances if (k := asked_key(i.launch))), None)
        return bearer(await self._value(*found)) if found else {}

    async def _value(self, key: str, whose: str) -> str:
        async with self._lock:
            at, value = self._known.get(key, (0.0, ""))
            if not value or time.monotonic() - at > LASTS_S:
                try:
                    value = (await resolved({MEMBER_KEY: key}, whose))[MEMBER_KEY]
                except Refused as error:
                    log.info("the key of %s is not to be had: %s", whose, error.problem.values)
                    return ""
                self._known = {key: (time.monotonic(), value)}
        return value
