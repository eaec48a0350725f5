"""What each router says of its peers, read back through its membership API."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from itertools import count

import httpx

from backend.adapters.http import HostHttp
from backend.domain.api_keys import bearer, own_key
from backend.domain.errors import PdError
from backend.domain.group import Instance
from backend.domain.host import Host
from backend.domain.mode import Mode
from backend.domain.peers import Registry
from backend.domain.recipes import pinned_mode
from backend.domain.worker_calls import HttpCall, WorkerRow, list_call, parse_workers
from backend.observe.tasks import Watchers
from backend.store.store import Store

log = logging.getLogger(__name__)

CALL_TIMEOUT_S = 10.0


class RegistryWatch:
    """Reads the registry of every ready router on an interval, and at once after a change."""

    def __init__(
        self, store: Store, http: HostHttp, on_change: Callable[[str], None], every_s: float = 2.0
    ) -> None:
        self._store, self._http, self._on_change = store, http, on_change
        self._every = every_s
        self._tasks = Watchers("registry", self._watch)
        self._read: dict[str, Registry] = {}
        self._rows: dict[str, tuple[WorkerRow, ...]] = {}
        self._numbers = count(1)
        self._answered: dict[str, int] = {}  # the latest question of each group that was answered

    def registry(self, group: str) -> Registry:
        """The registry as last read."""
        return self._read.get(group, Registry())

    def rows(self, group: str) -> tuple[WorkerRow, ...]:
        """The rows as last read, with the ids that a removal may need."""
        return self._rows.get(group, ())

    def sync(self, group: str) -> None:
        """Watch the group's registry while it has a ready router."""
        ready = any(i.role == "router" and i.state == "ready" for i in self._store.of_group(group))
        if self._tasks.sync({group} if ready else set(), group):
            self._read.pop(group, None)
            self._rows.pop(group, None)
            self._answered.pop(group, None)

    async def close(self) -> None:
        """End every watching task."""
        await self._tasks.close()

    async def read(self, group: str) -> None:
        """Read the registry now; an answer that comes after that to a later question is dropped."""
        found = self._router(group)
        if found is None:
            return
        mode, router, host = found
        asked = next(self._numbers)
        try:
            answer = await self.call(host, router, list_call(mode))
            rows = parse_workers(mode, answer.json())
        except (PdError, httpx.HTTPError, ValueError) as error:
            log.info("registry of %s could not be read: %s", group, error)
            after = Registry(generation=router.generation)
            rows = self.rows(group)
        else:
            peers = {r.url: r.role or "" for r in rows}
            after = Registry(peers=peers, generation=router.generation)
        if asked < self._answered.get(group, 0):
            return
        before = self.registry(group)
        self._answered[group], self._read[group], self._rows[group] = asked, after, rows
        if after != before:
            self._on_change(group)

    async def call(self, host: Host, router: Instance, call: HttpCall) -> httpx.Response:
        """One call of the membership API. Raises PdError or httpx.HTTPError."""
        return await self._http.request(
            host, call.method, router.url + call.path, json=call.json,
            headers=bearer(own_key(router.launch)), timeout=CALL_TIMEOUT_S,
        )  # fmt: skip

    def _router(self, group: str) -> tuple[Mode, Instance, Host] | None:
        g = self._store.groups.get(group)
        router = next((i for i in self._store.of_group(group) if i.role == "router"), None)
        if g is None or router is None or g.formed is None:
            return None
        mode = pinned_mode(g)
        host = self._store.hosts.get(router.host)
        if mode is None or mode.router.api is None or host is None:
            return None
        return mode, router, host

    async def _watch(self, group: str) -> None:
        while True:
            await self.read(group)
            await asyncio.sleep(self._every)
