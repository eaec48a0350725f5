"""The doctor's rounds: a fresh look and a deeper one at several hosts at once, then the checks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from backend.adapters.checkup import check_up, reach
from backend.adapters.inside import look_inside
from backend.adapters.ssh.pool import SshPool
from backend.domain.checkup import Checkup, Reach
from backend.domain.doctor import Finding, Needs, Patient
from backend.domain.doctor_checks import examine
from backend.domain.errors import PdError, Problem
from backend.domain.host import Host, HostFacts
from backend.domain.network import kv_address
from backend.domain.portmap import bindable
from backend.observe.hosts import HostWatch
from backend.store.store import Store

log = logging.getLogger(__name__)

NOTHING = Needs()


@dataclass(frozen=True)
class _Seen:
    """What one host let us see."""

    facts: HostFacts | None = None
    checkup: Checkup | None = None
    problem: Problem | None = None


class Doctor:
    """Examines hosts of the inventory. `port_range` and `ifname` are the backend's defaults."""

    def __init__(
        self,
        store: Store,
        hosts: HostWatch,
        pool: SshPool,
        *,
        port_range: tuple[int, int],
        ifname: str | None = None,
    ) -> None:
        self._store, self._hosts, self._pool = store, hosts, pool
        self._port_range, self._ifname = port_range, ifname

    async def examine(
        self,
        names: Iterable[str],
        needs: Mapping[str, Needs] | None = None,
        *,
        max_age_s: float = 0.0,
    ) -> tuple[Finding, ...]:
        """Every finding about the hosts, host by host in the given order, the worst first in each.

        Never raises for what a host does: a finding says it. Looks younger than `max_age_s` are not
        repeated. Where needs ask for KV traffic, the hosts with such needs must reach each other.
        """
        hosts = [self._store.hosts[n] for n in dict.fromkeys(names) if n in self._store.hosts]
        wanted = needs or {}
        await self._hosts.look_at([h.name for h in hosts], max_age_s=max_age_s)
        seen, reaches = await asyncio.gather(
            asyncio.gather(*(self._see(h, wanted.get(h.name, NOTHING)) for h in hosts)),
            self._reaches(hosts, wanted),
        )
        by_name = dict(zip((h.name for h in hosts), seen, strict=True))
        peers = {n: s.checkup for n, s in by_name.items() if s.checkup is not None}
        known = frozenset(self._store.instances)
        found: list[Finding] = []
        for host in hosts:
            s = by_name[host.name]
            found += examine(
                Patient(
                    host=host,
                    port_range=host.service_port_range or self._port_range,
                    facts=s.facts,
                    checkup=s.checkup,
                    problem=s.problem,
                    owner=self._store.id,
                    instances=known,
                    needs=wanted.get(host.name, NOTHING),
                    ifname=self._ifname,
                    peers=peers,
                    reaches=reaches.get(host.name, ()),
                )
            )
        return tuple(found)

    async def _see(self, host: Host, needs: Needs) -> _Seen:
        sight = self._hosts.sight(host.name)
        if sight.state != "up" or sight.facts is None:
            return _Seen(problem=sight.problem)
        span = host.service_port_range or self._port_range
        ports = bindable(span, sight.facts, self._store.on_host(host.name))
        try:
            checkup = await check_up(
                self._pool, host, sight.facts.address, programs=needs.programs,
                runtimes=needs.runtimes, models=needs.models, ports=ports,
            )  # fmt: skip
            if not checkup.runtimes.get(host.runtime, "!").startswith("!"):
                inside = await look_inside(
                    self._pool, host, sight.facts, images=needs.images, only=needs.accelerators
                )
                checkup = checkup.model_copy(update={"inside": inside})
        except PdError as error:
            return _Seen(problem=error.problem)
        return _Seen(sight.facts, checkup)

    async def _reaches(
        self, hosts: list[Host], needs: Mapping[str, Needs]
    ) -> dict[str, tuple[Reach, ...]]:
        """From each host that carries KV traffic to each other one's address for it."""
        at: dict[str, tuple[str, str]] = {}
        for host in hosts:
            sight = self._hosts.sight(host.name)
            facts = sight.facts if sight.state == "up" else None
            plane = needs.get(host.name, NOTHING).plane
            found = kv_address(host, facts, plane, self._ifname) if facts is not None else None
            if found is not None:
                at[host.name] = found
        sources = [h for h in hosts if h.name in at]
        port = {h.name: (h.service_port_range or self._port_range)[1] for h in sources}
        results = await asyncio.gather(
            *(
                reach(
                    self._pool, h, at[h.name][0],
                    {n: (a, port[n]) for n, (_, a) in at.items() if n != h.name},
                )
                for h in sources
            )
        )  # fmt: skip
        return dict(zip((h.name for h in sources), results, strict=True))
