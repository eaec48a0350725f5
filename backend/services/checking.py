"""Judging a document with everything the backend knows: its hosts, and the models they have."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
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


class Checking:
    """Asks the rules. Reading hosts never makes a check fail: it makes it know less."""

    def __init__(self, world: World, reader: ModelReader) -> None:
        self._world, self._reader = world, reader
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def check(self, document: Deployment, *, every: bool = False) -> tuple[Problem, ...]:
        """Every finding about a document, worst first; with `every` what is fine too."""
        return judge(document, await self.known(document), every=every)

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
        wanted: tuple[str, str, str, str, str],
        models: dict[tuple[str, str], ModelSeen],
        versions: dict[tuple[str, str], str],
    ) -> None:
        name, model, revision, program, cache = wanted
        host = known.entries[name]
        async with self._slots:
            models[name, model] = await self._reader.read(
                host, model, revision=revision, hub_cache=cache
            )
            if host.runtime == "process" and program:
                version = await self._reader.version(host, program)
                if version:
                    versions[name, program] = version

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


def _reads(subject: Subject) -> Iterable[tuple[str, str, str, str, str]]:
    """What to read: host, model, its revision, the engine's program, and where the hub's cache is.

    Hosts that were not seen answering are not asked: they would make a save wait.
    """
    wanted: dict[tuple[str, str, str], tuple[str, str, str, str, str]] = {}
    compared = subject.mode is not None and "engine_version" in subject.mode.pairing.handshake
    for side in subject.sides:
        program = side.program if compared else ""
        for host in subject.known.eligible(side.role):
            if host in subject.known.facts:
                wanted[host, side.model, program] = (
                    host, side.model, side.revision or "main", program, hub_cache(side.role.env),
                )  # fmt: skip
    return wanted.values()
