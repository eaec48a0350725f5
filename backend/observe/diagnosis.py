"""Reading logs of instances on their hosts, and asking the rules of diagnosis about them."""

from __future__ import annotations

import asyncio

from backend.adapters.runtime import InstanceRuntime
from backend.domain.diagnosis.model import Diagnosis, GroupDiagnosis
from backend.domain.diagnosis.pair import facts, first_causes, together
from backend.domain.diagnosis.places import Scene, placed, seat_of
from backend.domain.diagnosis.scan import diagnose
from backend.domain.diagnosis.text import MOST
from backend.domain.errors import PdError
from backend.domain.group import Instance
from backend.domain.host import Host
from backend.observe.hosts import HostWatch
from backend.store.store import Store

HALF = MOST // 2
"""Bytes of a log's beginning, and of its end, that are read."""
ATTEMPTS = 2
"""Earlier attempts that are read beside the present one; the hosts keep that many."""
GAP = "\n[... {} bytes in between were not read ...]\n"
ENDED = ("exited", "crash_loop")


class LogDoctor:
    """Diagnoses instances by their logs. Reads at most `MOST` bytes of one, and never waits longer
    than the SSH pool's own limits."""

    def __init__(self, store: Store, runtime: InstanceRuntime, hosts: HostWatch) -> None:
        self._store, self._runtime, self._hosts = store, runtime, hosts

    async def instance(self, instance: Instance, generation: int | None = None) -> Diagnosis:
        """One attempt of one instance, the present one by default; why it is `unread` if it is."""
        diagnosis, _ = await self._read(instance, generation or instance.generation)
        return diagnosis

    async def group(self, name: str) -> GroupDiagnosis:
        """Every member's log, read together, with the attempts before the present one."""
        instances = self._store.of_group(name)
        read = await asyncio.gather(*(self._read(i, i.generation) for i in instances))
        told = {d.name: facts(text) for d, text in read}
        found = together(
            [d for d, _ in read],
            {i.id: self.scene(i) for i in instances},
            {i.id: _ended(i) for i in instances},
            told,
        )
        before = await asyncio.gather(*(self.before(i) for i in instances))
        members = tuple(
            d.model_copy(update={"previous": earlier})
            for d, earlier in zip(found, before, strict=True)
        )
        causes = tuple(instance for instance, _ in first_causes(members))
        return GroupDiagnosis(group=name, causes=causes, members=members)

    async def before(self, instance: Instance) -> tuple[Diagnosis, ...]:
        """Earlier attempts whose logs are still there, the newest first."""
        first = max(1, instance.generation - ATTEMPTS)
        numbers = range(instance.generation - 1, first - 1, -1)
        read = await asyncio.gather(*(self._read(instance, n) for n in numbers))
        return tuple(d for d, _ in read if not d.unread)

    def scene(self, instance: Instance) -> Scene:
        """Whose the ports and addresses around an instance are."""
        addresses: dict[str, str] = {}
        for host in self._store.hosts:
            seen = self._hosts.sight(host).facts
            if seen is None:
                continue
            addresses[seen.address] = host
            for interface in seen.interfaces:
                if not interface.loopback and not interface.kind:
                    addresses |= dict.fromkeys(interface.addresses, host)
        own = self._hosts.sight(instance.host).facts
        return Scene(
            me=instance.id,
            host=instance.host,
            seats=tuple(seat_of(i) for i in self._store.instances.values()),
            addresses=addresses,
            listening=own.listening if own else frozenset(),
        )

    async def _read(self, instance: Instance, generation: int) -> tuple[Diagnosis, str]:
        blank = Diagnosis(name=instance.id, role=instance.role, generation=generation)
        host = self._store.hosts.get(instance.host)
        if host is None:
            return blank.model_copy(update={"unread": f"{instance.host} is not known."}), ""
        try:
            text, whole = await read_log(self._runtime, host, instance.id, generation)
        except PdError as error:
            return blank.model_copy(update={"unread": error.problem.message}), ""
        ended = generation < instance.generation or _ended(instance)
        found = diagnose(
            text,
            name=instance.id,
            role=instance.role,
            ended=ended,
            generation=generation,
            truncated=not whole,
        )
        return located(found, self.scene(instance)), text


async def read_log(
    runtime: InstanceRuntime, host: Host, instance: str, generation: int
) -> tuple[str, bool]:
    """A log's beginning and its end, and whether that is all of it. Raises NotFound, HostError."""
    head = await runtime.log(host, instance, generation=generation, offset=0, limit=HALF)
    tail = await runtime.log(host, instance, generation=generation, tail_bytes=HALF)
    end = tail.text.encode("utf-8", "replace")
    start = tail.offset - len(end)
    if tail.offset <= head.offset:
        return head.text, not head.truncated
    if start <= head.offset:
        rest = end[head.offset - start :].decode("utf-8", "replace")
        return head.text + rest, not head.truncated
    return head.text + GAP.format(start - head.offset) + tail.text, False


def located(found: Diagnosis, scene: Scene) -> Diagnosis:
    """A diagnosis whose findings say whose their ports and addresses are."""
    return found.model_copy(
        update={
            "first": placed(found.first, scene) if found.first else None,
            "others": tuple(placed(f, scene) for f in found.others),
        }
    )


def _ended(instance: Instance) -> bool:
    return instance.state in ENDED or (
        instance.process is not None and instance.process.state in ("exited", "lost")
    )
