"""Health of every instance, asked on its own address through its host's SSH connection."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import httpx
from prometheus_client.parser import text_string_to_metric_families

from backend.adapters.http import HostHttp
from backend.adapters.ssh.pool import SshPool
from backend.domain.errors import PdError
from backend.domain.group import Instance
from backend.domain.host import Host
from backend.store.store import Store


@dataclass(frozen=True)
class Probes:
    """Health answers of one generation. `idle_since` is set while it holds no request."""

    generation: int = 0
    healthy: int = 0
    failed: int = 0
    problem: str = ""
    latency_s: float = 0.0
    idle_since: float | None = None


@dataclass(frozen=True)
class HealthPace:
    """Seconds between probes: first seconds of a start, later in a start, while it serves."""

    young_s: float = 0.25
    starting_s: float = 1.0
    serving_s: float = 1.0
    draining_s: float = 0.3
    timeout_s: float = 2.0
    young_for_s: float = 15.0


RUNNING = ("vllm:num_requests_running", "sglang:num_running_reqs")
IN_FLIGHT = (*RUNNING, "vllm:num_requests_waiting", "sglang:num_queue_reqs")
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
    ) -> None:
        self._store, self._http, self._pool = store, http, pool
        self._on_change = on_change
        self._pace = pace or HealthPace()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._probes: dict[str, Probes] = {}

    def probes(self, instance: str) -> Probes:
        """What was answered of late."""
        return self._probes.get(instance, Probes())

    def sync(self) -> None:
        """Probe the instances whose process lives, and no others."""
        living = {
            i.id
            for i in self._store.instances.values()
            if i.state in ("starting", "ready", "unhealthy", "draining") and i.launch is not None
        }
        for key in set(self._tasks) - living:
            self._tasks.pop(key).cancel()
            self._probes.pop(key, None)
        for key in living - set(self._tasks):
            self._tasks[key] = asyncio.create_task(self._watch(key), name=f"health {key}")

    async def close(self) -> None:
        """End every probing task."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._tasks.clear()

    async def _watch(self, key: str) -> None:
        began = time.monotonic()
        while (instance := self._store.instances.get(key)) is not None:
            before = self.probes(key)
            after = await self._probe(instance, before)
            self._probes[key] = after
            turned = (before.healthy > 0) != (after.healthy > 0) or before.failed != after.failed
            if turned or before.generation != after.generation or instance.state == "draining":
                self._on_change(instance.group)
            await asyncio.sleep(self._pause(instance, time.monotonic() - began))

    def _pause(self, instance: Instance, age: float) -> float:
        if instance.state == "draining":
            return self._pace.draining_s
        if instance.state == "starting":
            young = age < self._pace.young_for_s
            return self._pace.young_s if young else self._pace.starting_s
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
        idle = await self._idle(instance, before) if instance.state == "draining" else None
        return Probes(
            generation=instance.generation,
            healthy=0 if problem else before.healthy + 1,
            failed=before.failed + 1 if problem else 0,
            problem=problem,
            latency_s=time.monotonic() - began,
            idle_since=idle,
        )

    async def _knock(self, host: Host, address: str, port: int) -> None:
        """An open port is all that can be asked of a program without a health path."""
        async with asyncio.timeout(self._pace.timeout_s):
            _, writer = await self._pool.open_tcp(host, address, port)
        writer.close()

    async def _idle(self, instance: Instance, before: Probes) -> float | None:
        """Since when a draining member holds no request; None while it does or does not say."""
        launch, host = instance.launch, self._store.hosts.get(instance.host)
        if launch is None or host is None or instance.role == "router":
            return None
        try:
            page = await self._http.request(
                host, "GET", f"{launch.url}/metrics", timeout=self._pace.timeout_s
            )
        except (PdError, httpx.HTTPError):
            return None
        held = in_flight(page.text) if page.status_code == httpx.codes.OK else None
        if held is None or held > 0:
            return None
        return before.idle_since or time.time()


def in_flight(page: str) -> float | None:
    """Requests an engine holds, from its metrics page; None when the page does not say.

    A page without the number of running requests does not say, however few wait.
    """
    total, running = 0.0, False
    try:
        for family in text_string_to_metric_families(page):
            if family.name in IN_FLIGHT:
                running = running or family.name in RUNNING
                total += sum(s.value for s in family.samples)
    except ValueError:  # no metrics page at all, or one cut short
        return None
    return total if running and math.isfinite(total) else None
