"""The model's hosts: claims and processes, and what no backend may ever ask of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from backend.domain.bands import BandDemand
from backend.domain.deployment import Deployment
from backend.domain.group import Instance, PeerRecord
from backend.domain.host import Accelerator
from backend.domain.instance import ProcessStatus
from backend.domain.placement import Need, Room


class Failed(Exception):
    """An act that its host refused or did not answer."""


@dataclass
class Process:
    """A started process: it answers its health path from `ready_at` on, and dies at `dies_at`."""

    group: str
    role: str
    revision: str
    generation: int
    ready_at: float
    dies_at: float = float("inf")
    alive: bool = True
    peers: dict[str, PeerRecord] = field(default_factory=dict)


@dataclass
class Machine:
    """A host: its claims by instance, and the last process of each."""

    accelerators: tuple[Accelerator, ...]
    up: bool = True
    claims: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)
    processes: dict[str, Process] = field(default_factory=dict)


def need(document: Deployment, role: str, count: int) -> Need:
    """What members of a role ask for: one port, and as many accelerators as the document says."""
    bands = (BandDemand("http", 1), BandDemand("side", 1))
    return Need(role, count, 0 if role == "router" else document.spec.accelerators, bands)


class Ground:
    """The hosts, the clock, and the stored rows that hold places on the hosts."""

    def __init__(self, rng: random.Random, hosts: int, chips: int) -> None:
        self.rng, self.now = rng, 1000.0
        card = [
            Accelerator(index=n, uuid=f"G{n}", vendor="nvidia", type="H100") for n in range(chips)
        ]
        self.machines = {f"h{n}": Machine(tuple(card)) for n in range(hosts)}
        self.instances: dict[str, Instance] = {}
        self.reserved: dict[str, Instance] = {}
        self.releases: dict[str, str] = {}
        self.old: dict[str, set[str]] = {}
        self.doomed = 0.0

    def process(self, i: Instance) -> Process | None:
        return self.machines[i.host].processes.get(i.id)

    def living(self) -> Iterator[tuple[str, str, Process]]:
        for host, machine in self.machines.items():
            for key, process in machine.processes.items():
                if process.alive:
                    yield host, key, process

    def rooms(self) -> list[Room]:
        found = []
        for host, m in self.machines.items():
            rows = [i for i in self.instances.values() if i.host == host]
            rows += [i for i in self.reserved.values() if i.host == host]
            busy = {a: key for key, (chips, _) in m.claims.items() for a in chips}
            busy |= {a: i.id for i in rows for a in i.accelerators}
            ports = {p for _, held in m.claims.values() for p in held}
            ports |= {p for i in rows for p in i.ports}
            found.append(
                Room(
                    host,
                    f"10.0.0.{host[1:]}",
                    m.accelerators,
                    busy,
                    taken_ports=frozenset(ports),
                    members=len(rows),
                    why_not="" if m.up else "does not answer",
                )
            )
        return found

    def _claim(self, i: Instance) -> None:
        m = self._reach(i.host)
        for key, (chips, ports) in m.claims.items():
            assert not set(chips) & set(i.accelerators), f"{i.id} and {key} share accelerators"
            assert not set(ports) & set(i.ports), f"{i.id} and {key} share ports"
        m.claims[i.id] = (i.accelerators, i.ports)

    def _spawn(self, m: Machine, i: Instance) -> Process:
        old = m.processes.get(i.id)
        assert old is None or not old.alive, f"two living generations of {i.id}"
        mine = (set(i.accelerators), set(i.ports))
        for _, key, other in self.living():
            if key in m.processes and key in m.claims:
                chips, ports = m.claims[key]
                assert not mine[0] & set(chips), f"{i.id} and {key} run on one accelerator"
                assert not mine[1] & set(ports), f"{i.id} and {key} run on one port"
            before = self.old.get(i.group, set())
            if key in before - set(self.releases):
                assert i.id in before, f"{i.id} starts, but {key} of before the restart lives"
            if other.group == i.group and key not in self.releases:
                assert other.revision == i.revision, f"{i.id} starts beside {key} of another"
        doomed = self.rng.random() < self.doomed
        process = Process(
            i.group,
            i.role,
            i.revision,
            i.generation,
            ready_at=self.now + self.rng.choice([0.2, 1.0, 4.0]),
            dies_at=self.now + 0.1 if doomed else float("inf"),
            peers={r.url: r for r in i.snapshot or ()},
        )
        m.processes[i.id] = process
        return process

    def _serves(self, i: Instance) -> bool:
        process = self.process(i)
        return process is not None and process.alive and self.now >= process.ready_at

    def _reach(self, host: str) -> Machine:
        m = self.machines[host]
        if not m.up:
            raise Failed(f"{host} does not answer")
        return m

    def _router_process(self, router: Instance) -> Process:
        process = self._reach(router.host).processes.get(router.id)
        if process is None or not process.alive or process.generation != router.generation:
            raise Failed("the router does not answer")
        return process

    def _kill(self, m: Machine, key: str) -> None:
        if key in m.processes:
            m.processes[key].alive = False

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        for _, _, process in self.living():
            if self.now >= process.dies_at:
                process.alive = False


def seen_status(key: str, process: Process) -> ProcessStatus:
    return ProcessStatus(
        instance=key,
        state="running" if process.alive else "exited",
        generation=process.generation,
        pid=process.generation if process.alive else 0,
        exit_code=None if process.alive else 1,
    )
