"""Health of every instance, asked on its own address through its host's SSH connection."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

import httpx
from prometheus_client.parser import text_string_to_metric_families

from backend.adapters.http import HostHttp
from backend.adapters.ssh.pool import SshPool
from backend.domain.errors import PdError
from backend.domain.group import Instance
from backend.domain.host import Host
from backend.domain.transitions import FAILED_PROBES
from backend.observe.tasks import Watchers
from backend.store.clock import steady
from backend.store.store import Store


@dataclass(frozen=True)
class Probes:
    """Health answers of one generation.

    While it leaves: `quiet_since` is set while it holds no request. `goals` says for each decode
    how many requests it must have begun for all that waited there then to be under way; 0 once it
    has. `idle_since` is set while nobody needs the member any more.
    """

    generation: int = 0
    healthy: int = 0
    failed: int = 0
    problem: str = ""
    latency_s: float = 0.0
    idle_since: float | None = None
    quiet_since: float | None = None
    goals: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class HealthPace:
    """Seconds between probes: at the beginning of a start and at most during it, while it serves
    and while it drains. In between, a start is asked again after `patience` times its age, so that
    it is seen to serve at most that much later than it does, however long it takes.

    `hop_s` is how long a router may take to carry a prefill's answer on to its decode.
    """

    young_s: float = 0.05
    starting_s: float = 1.0
    patience: float = 0.05
    serving_s: float = 1.0
    draining_s: float = 0.3
    timeout_s: float = 2.0
    hop_s: float = 0.5


RUNNING = ("vllm:num_requests_running", "sglang:num_running_reqs")
SENDING = "sglang:num_prefill_inflight_queue_reqs"
QUEUED = (
    "vllm:num_requests_waiting",
    "sglang:num_queue_reqs",
    "sglang:num_decode_prealloc_queue_reqs",
    "sglang:num_decode_transfer_queue_reqs",
)
"""Gauges of requests that have not begun to generate: a decode may yet fetch KV for them."""
FINISHED = ("vllm:request_success",)
"""Counters of requests that ended, whatever their end."""
IN_FLIGHT = (*RUNNING, *QUEUED, SENDING)
"""Gauges whose sum is what an engine still holds, by their names on its metrics page."""


class HealthWatch:
    """One probing task per living instance; `on_change(group)` when a verdict may have changed."""

    def __init__(
        self,
        store: Store,
        http: HostHttp,
        pool: SshPool,
        on_change: Callable[[str], None],
        pace: HealthPace | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._store, self._http, self._pool = store, http, pool
        self._clock = clock or steady()
        self._on_change = on_change
        self._pace = pace or HealthPace()
        self._tasks = Watchers("health", self._watch)
        self._probes: dict[str, Probes] = {}

    def probes(self, instance: str) -> Probes:
        """What was answered of late."""
        return self._probes.get(instance, Probes())

    def sync(self, group: str) -> None:
        """Probe the group's instances whose process lives, and no others of it."""
        living = {
            i.id
            for i in self._store.of_group(group)
            if i.state in ("starting", "ready", "unhealthy", "draining") and i.launch is not None
        }
        for key in self._tasks.sync(living, group):
            self._probes.pop(key, None)

    async def close(self) -> None:
        """End every probing task."""
        await self._tasks.close()

    async def _watch(self, key: str) -> None:
        began = time.monotonic()
        while (instance := self._store.instances.get(key)) is not None:
            before = self.probes(key)
            after = await self._probe(instance, before)
            self._probes[key] = after
            if _turned(before, after) or instance.state == "draining":
                self._on_change(instance.group)
            await asyncio.sleep(self._pause(instance, time.monotonic() - began))

    def _pause(self, instance: Instance, age: float) -> float:
        if instance.state == "draining":
            return self._pace.draining_s
        if instance.state == "starting":
            due = max(age * self._pace.patience, self._pace.young_s)
            return min(due, self._pace.starting_s)
        return self._pace.serving_s

    async def _probe(self, instance: Instance, before: Probes) -> Probes:
        launch, host = instance.launch, self._store.hosts.get(instance.host)
        if launch is None or host is None:
            return before
        if before.generation != instance.generation:
            before = Probes(generation=instance.generation)
        began = time.monotonic()
        problem = ""
        try:
            if launch.health_path is None:
                await self._knock(host, launch.address, launch.port)
            else:
                answer = await self._http.request(
                    host, "GET", launch.url + launch.health_path, timeout=self._pace.timeout_s
                )
                if answer.status_code != httpx.codes.OK:
                    problem = f"HTTP {answer.status_code}"
        except (PdError, httpx.HTTPError, OSError) as error:
            problem = str(error) or type(error).__name__
        after = Probes(
            generation=instance.generation,
            healthy=0 if problem else before.healthy + 1,
            failed=before.failed + 1 if problem else 0,
            problem=problem,
            latency_s=time.monotonic() - began,
        )
        return await self._leaving(instance, before, after) if _drains(instance) else after

    async def _knock(self, host: Host, address: str, port: int) -> None:
        """An open port is all that can be asked of a program without a health path."""
        async with asyncio.timeout(self._pace.timeout_s):
            _, writer = await self._pool.open_tcp(host, address, port)
        writer.close()

    async def _leaving(self, instance: Instance, before: Probes, after: Probes) -> Probes:
        """The probe of a draining member, with since when it is idle.

        A prefill without a request is not idle yet: it keeps the KV of every prompt that waits at a
        decode. Queues are served in turn: once a decode has begun as many requests as waited there,
        or has none waiting, all that was handed to it before is fetched.
        """
        page = await self._page(instance)
        if page is None or in_flight(page) != 0:
            return after
        now = self._clock()
        since = now if before.quiet_since is None else before.quiet_since
        quiet = replace(after, quiet_since=since, goals=before.goals)
        if instance.role == "prefill":
            if now - since < self._pace.hop_s:
                return quiet
            goals = await self._goals(instance.group, before.goals)
            if any(goals.values()):
                return replace(quiet, goals=goals)
            quiet = replace(quiet, goals=goals)
        return replace(quiet, idle_since=before.idle_since or now)

    async def _goals(self, group: str, before: Mapping[str, float]) -> dict[str, float]:
        """The goals of the group's decodes, brought up to date."""
        states = ("ready", "draining", "unhealthy")
        decodes = [
            i for i in self._store.of_group(group) if i.role == "decode" and i.state in states
        ]
        left = [d for d in decodes if before.get(d.id, math.inf) > 0]
        pages = await asyncio.gather(*(self._page(d) for d in left))
        after = {d.id: 0.0 for d in decodes}
        for decode, page in zip(left, pages, strict=True):
            after[decode.id] = goal(page or "", before.get(decode.id, math.inf))
        return after

    async def _page(self, instance: Instance) -> str | None:
        """An engine's metrics page; None when there is none."""
        launch, host = instance.launch, self._store.hosts.get(instance.host)
        if launch is None or host is None:
            return None
        try:
            page = await self._http.request(
                host, "GET", f"{launch.url}/metrics", timeout=self._pace.timeout_s
            )
        except (PdError, httpx.HTTPError):
            return None
        return page.text if page.status_code == httpx.codes.OK else None


def _turned(before: Probes, after: Probes) -> bool:
    """Whether a verdict may have changed: the first good answer, the first bad one too many."""
    healthy = (before.healthy > 0) != (after.healthy > 0)
    failing = (before.failed >= FAILED_PROBES) != (after.failed >= FAILED_PROBES)
    return healthy or failing or before.generation != after.generation


def _drains(instance: Instance) -> bool:
    return instance.state == "draining" and instance.role != "router"


def in_flight(page: str) -> float | None:
    """Requests an engine holds, from its metrics page; None when the page does not say.

    A page without the number of running requests does not say, however few wait.
    """
    found = _gauges(page, IN_FLIGHT)
    total = sum(found.values())
    return total if any(r in found for r in RUNNING) and math.isfinite(total) else None


def goal(page: str, before: float) -> float:
    """How many requests a decode must have begun; 0 once it has. `before` is inf at first.

    An engine that does not count what it finished is only done when nothing waits.
    """
    found = _gauges(page, (*RUNNING, *QUEUED, *FINISHED))
    waiting = sum(n for name, n in found.items() if name in QUEUED)
    if not any(r in found for r in RUNNING):
        return before
    if waiting == 0:
        return 0.0
    if not any(f in found for f in FINISHED):
        return math.inf
    begun = sum(n for name, n in found.items() if name not in QUEUED)
    if math.isinf(before):
        return begun + waiting
    return 0.0 if begun >= before else before


def _gauges(page: str, names: Collection[str]) -> dict[str, float]:
    """Sums over the samples of each of those families that the page has; empty for no page."""
    found: dict[str, float] = {}
    try:
        for family in text_string_to_metric_families(page):
            if family.name in names:
                samples = [s.value for s in family.samples if not s.name.endswith("_created")]
                found[family.name] = sum(samples)
    except ValueError:  # no metrics page at all, or one cut short
        return {}
    return found
