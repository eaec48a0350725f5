"""Rules on the hosts that members may run on: ports, interfaces, images, shared cards.

Source: the user's document, "network requirements" and "ports"; measured port windows of the
transports. Skipped where there is no inventory; a host that was not looked at proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from backend.domain.bands import demand, total
from backend.domain.errors import Problem, Refused
from backend.domain.network import kv_interface
from backend.domain.ports import free_in, merged
from backend.domain.rules.sides import Side
from backend.domain.rules.subject import Subject
from backend.domain.rules.words import finding

ENGINE_WINDOWS = ((15000, 17000), (20000, 20800))
"""Ports that transports choose for themselves at run time and nobody can reserve."""
DEFAULT_FRACTION = 0.9


def _hosts(s: Subject) -> list[str]:
    """Every host that a member may run on."""
    return sorted({h for side in s.sides for h in s.known.eligible(side.role)})


def _member_hosts(s: Subject) -> list[str]:
    """Those of them that were looked at and have accelerators the mode can use."""
    vendor = s.mode.vendor if s.mode else None
    return [
        h
        for h in _hosts(s)
        if h in s.known.facts
        and any(vendor in (None, a.vendor) for a in s.known.facts[h].accelerators)
    ]


def _overlap(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] <= b[1] and b[0] <= a[1]


def _text(ports: tuple[int, int]) -> str:
    return f"{ports[0]}-{ports[1]}"


def engine_ports(s: Subject) -> Iterator[Problem]:
    """The service port range keeps clear of ports that transports choose for themselves."""
    if not s.paired:
        return
    for host in _hosts(s):
        ports = s.known.port_range(host)
        for window in ENGINE_WINDOWS:
            if _overlap(ports, window):
                yield finding("host.engine_ports", "", f"hosts.{host}.service_port_range",
                              "warning", host=host, range=_text(ports),
                              window=_text(window))  # fmt: skip


def ephemeral_ports(s: Subject) -> Iterator[Problem]:
    """The service port range keeps clear of those the host gives to outgoing connections. It does
    not on a host as Linux is installed, so that one finding names all of them."""
    found = [
        (host, facts)
        for host in _hosts(s)
        if (facts := s.known.facts.get(host)) and facts.outgoing(s.known.port_range(host))
    ]
    if not found:
        return
    hosts = [host for host, _ in found]
    ranges = merged(s.known.port_range(host) for host in hosts)
    kept = merged([*ranges, *(r for _, facts in found for r in facts.reserved)])
    yield finding(
        "host.ephemeral_ports", "", f"hosts.{hosts[0]}.service_port_range", "warning",
        hosts=hosts, range=[_text(r) for r in ranges],
        window=[_text(w) for w in merged(facts.ephemeral for _, facts in found)],
        reserve=",".join(_text(r) for r in kept),
    )  # fmt: skip


def npu_ports(s: Subject) -> Iterator[Problem]:
    """The service port range keeps clear of the transport's own window, as wide as the host has
    accelerators."""
    window = s.mode.random_ports if s.mode else None
    if window is None or s.mode is None:
        return
    for host in _member_hosts(s):
        count = sum(1 for a in s.known.facts[host].accelerators if s.mode.vendor == a.vendor)
        taken = (window.first, window.first + window.per_accelerator * count - 1)
        ports = s.known.port_range(host)
        if _overlap(ports, taken) and not any(_overlap(ports, w) for w in ENGINE_WINDOWS):
            yield finding(
                "host.npu_ports", "", f"hosts.{host}.service_port_range", "warning", host=host,
                range=_text(ports), window=_text(taken), count=count,
                each=window.per_accelerator,
            )  # fmt: skip


def port_budget(s: Subject) -> Iterator[Problem]:
    """The wanted members' ports fit into the hosts' ranges, and into what is free of them."""
    for side in s.sides:
        if side.role.engine not in s.known.catalogue.engines:
            continue
        each = total(demand(s.mode, s.known.catalogue, s.spec, side.name))
        hosts = _budget_hosts(s, side)
        if not hosts or any(h not in s.known.facts for h in s.known.eligible(side.role)):
            continue  # a host that was not looked at may hold them
        sizes = {h: s.known.port_range(h)[1] - s.known.port_range(h)[0] + 1 for h in hosts}
        free = {h: free_in(s.known.port_range(h), s.known.taken.get(h, frozenset())) for h in hosts}
        for case, room, verdict in (("range", sizes, "refused"), ("free", free, "warning")):
            fit = sum(n // each for n in room.values())
            if fit < side.role.replicas:
                missing = _missing(room, each, side.role.replicas)
                yield finding(
                    "host.port_budget", case, f"spec.roles.{side.name}.replicas"
                    if s.paired else "spec.replicas", verdict,  # type: ignore[arg-type]
                    role=side.name, replicas=side.role.replicas, each=each, hosts=hosts,
                    ports=sum(room.values()), fit=fit, missing=missing,
                )  # fmt: skip
                break


def _budget_hosts(s: Subject, side: Side) -> list[str]:
    eligible = s.known.eligible(side.role)
    return [h for h in _member_hosts(s) if h in eligible] if side.role.width else list(eligible)


def _missing(room: dict[str, int], each: int, wanted: int) -> int:
    """Ports that have to be added, on the fewest, for every wanted member to have its own."""
    short = wanted - sum(n // each for n in room.values())
    spare = sorted((n % each for n in room.values()), reverse=True)
    return sum(each - spare[i] if i < len(spare) else each for i in range(short))


def memory_utilization(s: Subject) -> Iterator[Problem]:
    """Members pinned to one card do not claim more than all of its memory together."""
    claims: dict[tuple[str, int], list[tuple[str, float, str]]] = {}
    for side in s.sides:
        written = side.written("memory_fraction")
        try:
            fraction = float(written.value) if written and written.value else DEFAULT_FRACTION
        except ValueError:
            continue
        path = side.where("memory_fraction")
        for pin in side.role.placement or ():
            for index in pin.accelerators or ():
                claims.setdefault((pin.host, index), []).append((side.name, fraction, path))
    told: set[str] = set()
    for (host, index), members in sorted(claims.items()):
        whole = round(sum(f for _, f, _ in members), 4)
        if len(members) > 1 and whole > 1 and host not in told:
            told.add(host)
            yield finding(
                "host.memory_utilization", "", members[-1][2], host=host, accelerator=index,
                members=[f"{name} {f:g}" for name, f, _ in members], sum=f"{whole:g}",
            )  # fmt: skip


def interfaces(s: Subject) -> Iterator[Problem]:
    """Each host has one interface for KV traffic, or was told which."""
    plane = s.mode.network if s.mode else "none"
    for host in _member_hosts(s) if s.paired else ():
        try:
            kv_interface(
                s.known.entries[host], s.known.facts[host], plane, s.known.kv_transfer_ifname
            )
        except Refused as error:
            yield finding("host.kv_interface", "", error.problem.path, host=host,
                          candidates=error.problem.values["candidates"])  # fmt: skip


def images(s: Subject) -> Iterator[Problem]:
    """On hosts that run containers, every role has an image or an engine with a public one."""
    for side in s.sides:
        engine = s.known.catalogue.engines.get(side.role.engine)
        if side.role.image or engine is None or engine.default_image:
            continue
        hosts = [h for h in s.known.eligible(side.role) if s.known.entries[h].runtime != "process"]
        if hosts:
            yield finding("host.image", "", side.path("image"), role=side.name, hosts=hosts,
                          engine=engine.title,
                          runtime=s.known.entries[hosts[0]].runtime)  # fmt: skip
