"""The truth about each host: whether it answers, what it has, and what lives there of ours."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from backend.adapters.facts import look
from backend.adapters.runtime import InstanceRuntime
from backend.adapters.ssh.pool import SshPool
from backend.domain.errors import (
    HostDenied,
    HostKeyChanged,
    HostKeyUnknown,
    PdError,
    Problem,
)
from backend.domain.host import Host, HostFacts
from backend.domain.instance import ProcessStatus
from backend.domain.picture import accelerator_views
from backend.domain.precondition import etag
from backend.domain.views import HostView
from backend.observe.tasks import Watchers
from backend.store.store import Store

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class HostSight:
    """What is known of one host. `seen` is when it last answered, epoch seconds."""

    state: str = "unknown"
    error: PdError | None = None
    facts: HostFacts | None = None
    seen: float = 0.0
    statuses: dict[str, ProcessStatus] = field(default_factory=dict)

    @property
    def problem(self) -> Problem | None:
        """Why it does not answer; None while it does."""
        return self.error.problem if self.error is not None else None

    @property
    def up(self) -> bool | None:
        """Whether it answers; None before it was asked."""
        return None if self.state == "unknown" else self.state == "up"


@dataclass(frozen=True)
class Pace:
    """Seconds between looks: at a host with instances of ours, and at one without."""

    busy_s: float = 1.0
    quiet_s: float = 15.0
    facts_s: float = 60.0


class HostWatch:
    """Looks at every host of the inventory, each in a task of its own, so that none delays another.

    `on_change(host)` is called when the host's state or a process on it changed; `files` are the
    paths whose presence a look reports.
    """

    def __init__(
        self,
        store: Store,
        pool: SshPool,
        runtime: InstanceRuntime,
        on_change: Callable[[str], None],
        pace: Pace | None = None,
        files: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self._store, self._pool, self._runtime = store, pool, runtime
        self._on_change, self._pace, self._files = on_change, pace or Pace(), files
        self._tasks = Watchers("host", self._watch)
        self._wake: dict[str, asyncio.Event] = {}
        self._looks: dict[str, asyncio.Task[None]] = {}
        self._looked: dict[str, float] = {}
        self._acted: dict[str, float] = {}
        self._sights: dict[str, HostSight] = {}

    def sight(self, host: str) -> HostSight:
        """What is known of a host."""
        return self._sights.get(host, HostSight())

    def sync(self) -> None:
        """Watch the hosts that are in the inventory now, and no others."""
        for name in self._store.hosts:
            if name not in self._tasks:
                self._wake[name] = asyncio.Event()
        for name in self._tasks.sync(self._store.hosts.keys()):
            self._sights.pop(name, None)

    def hint(self, host: str) -> None:
        """Look at the host now rather than at its next turn."""
        if host in self._wake:
            self._wake[host].set()

    def told(self, host: str, status: ProcessStatus) -> None:
        """A step has just learned an instance's status; newer than any look under way."""
        self._acted[status.instance] = time.monotonic()
        sight = self.sight(host)
        statuses = {**sight.statuses, status.instance: status}
        self._sights[host] = replace(sight, statuses=statuses)
        self.hint(host)  # it may have been quiet there until now

    def forget(self, host: str, instance: str) -> None:
        """An instance is gone for good, and its claim with it."""
        sight = self.sight(host)
        statuses = {k: v for k, v in sight.statuses.items() if k != instance}
        facts = sight.facts
        if facts is not None:
            left = tuple(c for c in facts.claims if c.instance != instance)
            facts = facts.model_copy(update={"claims": left})
        self._sights[host] = replace(sight, statuses=statuses, facts=facts)
        self._on_change(host)

    async def look(self, name: str, *, anew: bool = False) -> HostSight:
        """Look at one host's facts now. Never raises for what a host does: the sight says it.

        Callers share the look that is under way; with `anew` one that began before the call does
        not count.
        """
        running = self._looks.get(name)
        if anew and running is not None:
            await asyncio.wait({running})
            running = self._looks.get(name)  # it began after the call
        if running is None:
            running = asyncio.create_task(self._look(name), name=f"look at {name}")
            self._looks[name] = running
            running.add_done_callback(lambda task: self._look_done(name, task))
        await asyncio.shield(running)
        return self.sight(name)

    async def _look(self, name: str) -> None:
        host = self._store.hosts.get(name)
        if host is None:
            return
        began = time.monotonic()
        try:
            facts = await look(self._pool, host, files=self._files())
        except PdError as error:
            self._failed(name, error)
        else:
            self._looked[name] = began
            self._seen(name, facts=facts)

    def _look_done(self, name: str, task: asyncio.Task[None]) -> None:
        if self._looks.get(name) is task:
            del self._looks[name]

    async def look_at(self, names: Iterable[str], max_age_s: float = 0.0) -> None:
        """Look at several hosts at once, save those looked at less than `max_age_s` ago."""
        now = time.monotonic()
        due = [n for n in names if now - self._looked.get(n, -1e9) >= max_age_s]
        anew = max_age_s <= 0
        await asyncio.gather(*(self.look(n, anew=anew) for n in due if n in self._store.hosts))

    async def close(self) -> None:
        """End every watching task, and the looks under way."""
        await self._tasks.close()
        for task in self._looks.values():
            task.cancel()
        await asyncio.gather(*self._looks.values(), return_exceptions=True)

    async def _watch(self, name: str) -> None:
        while True:
            self._wake[name].clear()
            try:
                await self._round(name)
            except PdError as error:
                self._failed(name, error)
            except Exception as error:
                log.exception("looking at %s failed", name)
                problem = Problem(rule="host.internal", message=f"{type(error).__name__}: {error}")
                self._failed(name, PdError(problem))
            busy = any(True for _ in self._store.on_host(name))
            pause = self._pace.busy_s if busy else self._pace.quiet_s
            try:
                async with asyncio.timeout(pause):
                    await self._wake[name].wait()
            except TimeoutError:
                continue

    async def _round(self, name: str) -> None:
        host = self._store.hosts.get(name)
        if host is None:
            return
        age = time.monotonic() - self._looked.get(name, -1e9)
        due = age > self._pace.facts_s or not self.sight(name).up
        if due and (await self.look(name)).state != "up":
            return
        if any(True for _ in self._store.on_host(name)):
            await self._statuses(host)

    async def _statuses(self, host: Host) -> None:
        began = time.monotonic()
        found = {s.instance: s for s in await self._runtime.statuses(host, owner=self._store.id)}
        merged: dict[str, ProcessStatus] = {}
        for instance in self._store.on_host(host.name):
            told = self.sight(host.name).statuses.get(instance.id)
            newer = self._acted.get(instance.id, -1e9) >= began
            if newer and told is not None:
                merged[instance.id] = told
            elif instance.id in found:
                merged[instance.id] = found[instance.id]
            elif instance.process is not None and not newer:
                gone = {"state": "absent", "generation": instance.generation}
                merged[instance.id] = instance.process.model_copy(update=gone)
        self._seen(host.name, statuses=merged)

    def _seen(
        self,
        name: str,
        *,
        facts: HostFacts | None = None,
        statuses: dict[str, ProcessStatus] | None = None,
    ) -> None:
        old = self.sight(name)
        new = HostSight(
            state="up",
            facts=facts or old.facts,
            seen=time.time(),
            statuses=old.statuses if statuses is None else statuses,
        )
        self._sights[name] = new
        if old.state != "up" or new.statuses != old.statuses or new.facts != old.facts:
            self._on_change(name)

    def _failed(self, name: str, error: PdError) -> None:
        state = "unreachable"
        if isinstance(error, HostKeyUnknown):
            state = "key_unknown"
        elif isinstance(error, HostKeyChanged):
            state = "key_changed"
        elif isinstance(error, HostDenied):
            state = "denied"
        old = self.sight(name)
        self._sights[name] = replace(old, state=state, error=error)
        if old.state != state or old.problem != error.problem:
            self._on_change(name)


def host_view(
    host: Host,
    sight: HostSight,
    holders: dict[int, str],
    used: int,
    port_range: tuple[int, int],
) -> HostView:
    """A host as shown: `holders` maps accelerator index to who holds it."""
    note = sight.facts.accelerator_note if sight.facts else ""
    return HostView(
        name=host.name,
        etag=etag(host),
        address=host.address,
        port=host.port,
        user=host.user or "",
        runtime=host.runtime,
        state=sight.state,
        note=sight.problem.sentence() if sight.problem else note,
        accelerators=accelerator_views(sight.facts, holders),
        port_range=port_range,
        ports_used=used,
        labels=host.labels,
        seen=sight.seen,
    )
