"""Judging a document with everything the backend knows: its hosts, and the models they have."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from backend.adapters.models import ModelReader
from backend.domain.deployment import Deployment
from backend.domain.errors import Problem
from backend.domain.host import Host, HostFacts
from backend.domain.hub import hub_cache
from backend.domain.rules.known import Known, ModelSeen
from backend.domain.rules.subject import Subject
from backend.domain.rules.table import judge
from backend.reconcile.world import World

READ_S = 15.0
"""Seconds for reading all models of all hosts; what has not answered by then is unknown."""
AT_ONCE = 16
STANDS_S = 30.0
"""How long what a host said of a model is taken for true: a form that is being written is judged
over and over. What led to a refusal is asked again, for a person will now go and mend it."""
MOST_KEPT = 4096

Wanted = tuple[str, str, str, str, str]
"""Host, model, its revision, the engine's program, and where the hub's cache is."""


class Checking:
    """Asks the rules. Reading hosts never makes a check fail: it makes it know less."""

    def __init__(
        self, world: World, reader: ModelReader, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._world, self._reader, self._clock = world, reader, clock
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._kept: dict[tuple[Wanted, str], tuple[float, ModelSeen, str]] = {}

    async def check(self, document: Deployment, *, every: bool = False) -> tuple[Problem, ...]:
        """Every finding about a document, worst first; with `every` what is fine too."""
        found = judge(document, await self.known(document), every=every)
        if any(p.verdict == "refused" for p in found):
            self._kept.clear()
        return found

    async def known(self, document: Deployment) -> Known:
        """What there is to judge `document` by."""
        bare = self._hosts(document.name)
        wanted = _reads(Subject(document, bare))
        models: dict[tuple[str, str], ModelSeen] = {}
        versions: dict[tuple[str, str], str] = {}
        jobs = [asyncio.create_task(self._one(bare, w, models, versions)) for w in wanted]
        if jobs:
            _, late = await asyncio.wait(jobs, timeout=READ_S)
            for job in late:
                job.cancel()
            for result in await asyncio.gather(*jobs, return_exceptions=True):
                if isinstance(result, BaseException) and not isinstance(
                    result, asyncio.CancelledError
                ):
                    raise result
        return replace(bare, models=models, versions=versions)

    async def _one(
        self,
        known: Known,
        wanted: Wanted,
        models: dict[tuple[str, str], ModelSeen],
        versions: dict[tuple[str, str], str],
    ) -> None:
        name, model, _, program, _ = wanted
        key = (wanted, known.entries[name].model_dump_json())
        kept = self._kept.get(key)
        if kept is None or self._clock() - kept[0] >= STANDS_S:
            async with self._slots:
                kept = (self._clock(), *await self._read(known.entries[name], wanted))
            if kept[1].state != "unknown":
                if len(self._kept) >= MOST_KEPT:
                    self._kept.clear()
                self._kept[key] = kept
        models[name, model] = kept[1]
        if kept[2]:
            versions[name, program] = kept[2]

    async def _read(self, host: Host, wanted: Wanted) -> tuple[ModelSeen, str]:
        _, model, revision, program, cache = wanted
        seen = await self._reader.read(host, model, revision=revision, hub_cache=cache)
        if host.runtime != "process" or not program:
            return seen, ""
        return seen, await self._reader.version(host, program)

    def _hosts(self, group: str) -> Known:
        """The inventory as it was last seen."""
        world = self._world
        entries: Mapping[str, Host] = dict(world.store.hosts)
        facts: dict[str, HostFacts] = {}
        for name in entries:
            sight = world.hosts.sight(name)
            if sight.facts is not None:
                facts[name] = sight.facts
        ours = {i.host: set[int]() for i in world.store.of_group(group)}
        for instance in world.store.of_group(group):
            ours[instance.host].update(instance.ports)
        rooms = {name: world.room(name) for name in entries}
        return Known(
            catalogue=world.catalogue(),
            hosts=frozenset(entries),
            widths={n: len(f.accelerators) for n, f in facts.items()},
            entries=entries,
            facts=facts,
            port_ranges={n: r.port_range for n, r in rooms.items()},
            taken={n: frozenset(r.taken_ports - ours.get(n, set())) for n, r in rooms.items()},
            kv_transfer_ifname=world.defaults.kv_transfer_ifname,
            services={n: c.service() for n, c in world.store.caches.items()},
        )


def _reads(subject: Subject) -> Iterable[Wanted]:
    """What to read.

    Hosts that were not seen answering are not asked: they would make a save wait.
    """
    wanted: dict[tuple[str, str, str], Wanted] = {}
    compared = subject.mode is not None and "engine_version" in subject.mode.pairing.handshake
    for side in subject.sides:
        program = side.program if compared else ""
        for host in subject.known.eligible(side.role):
            if host in subject.known.facts:
                wanted[host, side.model, program] = (
                    host, side.model, side.revision or "main", program, hub_cache(side.role.env),
                )  # fmt: skip
    return wanted.values()
