"""What every reconcile loop works with: the store, the watches, and the hands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field, replace

from backend.adapters.http import HostHttp
from backend.adapters.models import ModelReader
from backend.adapters.runtime import InstanceRuntime
from backend.domain.bands import demand, resolve
from backend.domain.caches import CacheDocument, service_of
from backend.domain.decide import Timers
from backend.domain.deployment import Deployment
from backend.domain.group import Group
from backend.domain.host import DEFAULT_PORTS, Host, HostFacts
from backend.domain.mode import Catalogue, Mode
from backend.domain.picture import strangers
from backend.domain.placement import Need, Room, Seat, selects
from backend.domain.revision import revision
from backend.observe.diagnosis import LogDoctor
from backend.observe.doctor import Doctor
from backend.observe.health import HealthWatch
from backend.observe.hosts import HostWatch
from backend.observe.metrics import MetricsWatch
from backend.observe.registry import RegistryWatch
from backend.store.clock import steady
from backend.store.store import Store


@dataclass(frozen=True)
class Defaults:
    """The backend's own settings, used where a host entry says nothing."""

    port_range: tuple[int, int] = DEFAULT_PORTS
    kv_transfer_ifname: str | None = None


@dataclass
class World:
    """The parts a loop needs; built once by the bootstrap. `reserved` are the places of instances
    that are in no row yet, by their names."""

    store: Store
    runtime: InstanceRuntime
    http: HostHttp
    hosts: HostWatch
    health: HealthWatch
    registry: RegistryWatch
    metrics: MetricsWatch
    catalogue: Callable[[], Catalogue]
    models: ModelReader
    defaults: Defaults = field(default_factory=Defaults)
    timers: Timers = field(default_factory=Timers)
    clock: Callable[[], float] = field(default_factory=steady)
    reserved: dict[str, Seat] = field(default_factory=dict)
    release: Callable[[], None] = lambda: None
    doctor: Doctor | None = None
    began: float = field(init=False)
    logs: LogDoctor = field(init=False)

    def __post_init__(self) -> None:
        self.began = self.clock()
        self.logs = LogDoctor(self.store, self.runtime, self.hosts)

    def revision(self, document: Deployment) -> str:
        """The digest of what a document would be launched from now. Raises NotFound."""
        return revision(document, self.catalogue(), self.store.caches)

    def room(self, name: str, router_of: str = "", without: Set[str] = frozenset()) -> Room:
        """What a host offers now: everything claimed, reserved or listening there is taken, and the
        ports that a router keeps while its group forms anew, save for the router of `router_of`
        and the reservations of `without`."""
        host, sight = self.store.hosts[name], self.hosts.sight(name)
        port_range = host.service_port_range or self.defaults.port_range
        if sight.facts is None or sight.state != "up":
            why = sight.problem.message if sight.problem else "not looked at yet"
            return Room(host=name, address=host.address, port_range=port_range, why_not=why)
        facts = sight.facts
        coming = {k: s for k, s in self.reserved.items() if s.host == name and k not in without}
        busy = self.holders(name)
        for key, seat in coming.items():
            busy |= dict.fromkeys(seat.accelerators, key)
        reserved = {p for s in coming.values() for b in s.bands for p in b.ports}
        return Room(
            host=name,
            address=host.service_address or facts.address,
            accelerators=facts.accelerators,
            busy=busy,
            foreign={i: w for i, w in strangers(facts).items() if busy.get(i) == w},
            port_range=port_range,
            taken_ports=self._taken(name, facts, router_of) | reserved,
            labels=host.labels,
            members=len({*coming, *(i.id for i in self.store.on_host(name))}),
        )

    def holders(self, name: str) -> dict[int, str]:
        """Who holds each accelerator of a host: our instances, claims of other owners, strangers'
        processes; a card that MIG has cut up is held by its slices."""
        facts = self.hosts.sight(name).facts
        held = strangers(facts) if facts else {}
        for claim in facts.claims if facts else ():
            if claim.instance not in self.store.instances:
                held |= dict.fromkeys(claim.accelerators, claim.instance)
        for instance in self.store.on_host(name):
            held |= dict.fromkeys(instance.accelerators, instance.id)
        return held

    def _taken(self, name: str, facts: HostFacts, router_of: str) -> frozenset[int]:
        ours = {p for i in self.store.on_host(name) for p in i.ports}
        others = (c for c in facts.claims if c.instance not in self.store.instances)
        claimed = {p for c in others for p in c.ports}
        homes = (
            g.router_home[1]
            for g in self.store.groups.values()
            if g.router_home is not None and g.router_home[0] == name and g.name != router_of
        )
        kept = {p for bands in homes for b in bands for p in b.ports}
        return frozenset(facts.listening | ours | claimed | kept | self._haunted(name))

    def _haunted(self, name: str) -> set[int]:
        """Ports to which a router that cannot be reached may still send requests."""
        found = [at for i in self.store.instances.values() for at in i.haunted]
        for intent in self.store.intents.values():
            found += [(host, port) for host, port in intent.body.get("haunted", ())]
        return {port for host, port in found if host == name}

    def within_reach(
        self, need: Need, document: Deployment, services: Mapping[str, CacheDocument]
    ) -> Need:
        """The need kept to the hosts that reach the cache service its role attaches to."""
        service = service_of(document, need.role, services)
        if service is None or service.spec.hosts is None:
            return need
        reach = (n for n, h in self.store.hosts.items() if selects(service.spec.hosts, n, h.labels))
        return replace(need, within=frozenset(reach))

    def rooms(self, router_of: str = "", without: Set[str] = frozenset()) -> list[Room]:
        """Every host's room, by name."""
        return [self.room(n, router_of, without) for n in sorted(self.store.hosts)]


def need_of(
    mode: Mode | None, catalogue: Catalogue, document: Deployment, role: str, count: int
) -> Need:
    """What `count` members of a role ask of the hosts."""
    resolved = resolve(document.spec, role)
    return Need(
        role=role,
        count=count,
        width=0 if role == "router" else resolved.width,
        demands=demand(mode, catalogue, document.spec, role),
        hosts=resolved.hosts,
        pins=tuple(resolved.placement or ()),
    )


def instance_dir(host: Host, facts: HostFacts, instance: str) -> str:
    """Absolute path of an instance's directory on its host."""
    work = host.work_dir if host.work_dir.startswith("/") else f"{facts.home}/{host.work_dir}"
    return f"{work}/instances/{instance}"


def group_type(world: World, group: Group) -> str | None:
    """The accelerator type the group already runs on."""
    kinds = [i.accelerator_type for i in world.store.of_group(group.name) if i.accelerator_type]
    return kinds[0] if kinds else None
