"""What a document would start, on an example of a place: for reading, before anything is placed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from backend.domain.bands import demand, resolve
from backend.domain.caches import CacheDocument, service_of
from backend.domain.deployment import Deployment
from backend.domain.host import DEFAULT_PORTS, Host, HostFacts
from backend.domain.inherit import roles_of
from backend.domain.instance import Band, LaunchSpec
from backend.domain.mode import Catalogue, Mode
from backend.domain.placement import selects
from backend.domain.render import Place, Siblings, program_of, render_member, render_router
from backend.domain.worker_calls import Peer

NOWHERE = "HOST"
"""Stands for a host where none of the inventory can take the role."""
INTERFACE = "INTERFACE"
"""Stands for the interface for KV traffic where a host's is not known."""


@dataclass(frozen=True)
class Spot:
    """A host that an example may stand on; `net_device` is its interface for KV traffic."""

    host: Host
    facts: HostFacts | None = None
    address: str = ""
    ports: tuple[int, int] = DEFAULT_PORTS
    net_device: str = ""


def roles(document: Deployment) -> list[str]:
    """The roles of a document in the order they start."""
    members = [r.name for r in roles_of(document.spec)]
    return [*members, "router"] if document.spec.disaggregation else members


def launches(
    catalogue: Catalogue,
    document: Deployment,
    spots: Sequence[Spot],
    caches: Mapping[str, CacheDocument],
) -> dict[str, tuple[str, LaunchSpec]]:
    """Host and launch of one instance of each role, as if each were the first on its host.

    Raises Refused for what cannot be rendered, NotFound for an unknown engine.
    """
    mode = catalogue.mode_of(document.spec)
    variant = mode.default_variant if mode else None
    siblings = Siblings(
        variant=variant, accelerators={r.name: r.width for r in roles_of(document.spec)}
    )
    out: dict[str, tuple[str, LaunchSpec]] = {}
    peers: list[Peer] = []
    taken: dict[str, int] = {}
    for role in roles(document):
        where = _place(mode, catalogue, document, role, spots, taken)
        if role == "router":
            launch = render_router(mode, catalogue, document, where, peers)
        else:
            cache = service_of(document, role, caches)
            service = cache.service(where.address) if cache is not None else None
            launch = render_member(
                mode, catalogue, document, role, where, siblings, service=service
            )
            peers.append(Peer(where.instance, role, where.address, where.port, where.bands))
        out[role] = (where.host, launch)
    return out


def _place(
    mode: Mode | None,
    catalogue: Catalogue,
    document: Deployment,
    role: str,
    spots: Sequence[Spot],
    taken: dict[str, int],
) -> Place:
    resolved = resolve(document.spec, role)
    fits = [s for s in spots if selects(resolved.hosts, s.host.name, s.host.labels)]
    wide = [s for s in fits if s.facts and len(s.facts.accelerators) >= resolved.width]
    spot = next(iter(wide or fits), None)
    name = spot.host.name if spot else NOWHERE
    base = (spot.ports if spot else DEFAULT_PORTS)[0] + taken.get(name, 0)
    bands: list[Band] = []
    for wanted in demand(mode, catalogue, document.spec, role):
        bands.append(Band(name=wanted.name, base=base, count=wanted.count))
        base += wanted.count
    taken[name] = taken.get(name, 0) + sum(b.count for b in bands)
    bare = Place(
        host=name,
        address=(spot.address or spot.host.address) if spot else NOWHERE,
        bands=tuple(bands),
        vendor=(mode.vendor if mode else None) or "nvidia",
        instance=f"{document.name}-{role}-1",
        instance_dir=f"instances/{document.name}-{role}-1",
        net_device=(spot.net_device if spot else "") or INTERFACE,
        accelerators=tuple(range(resolved.width)) if role != "router" else (),
    )
    if spot is None:
        return bare
    host = spot.host
    entry = host.executables.get(program_of(mode, catalogue, document, role))
    chips = spot.facts.accelerators[: resolved.width] if spot.facts and role != "router" else ()
    return replace(
        bare,
        executable=entry,
        runtime=host.runtime,
        accelerators=tuple(a.index for a in chips) or bare.accelerators,
        accelerator_uuids=tuple(a.uuid for a in chips),
        accelerator_type=chips[0].type if chips else "",
        accelerator_memory_mib=min((a.memory_mib for a in chips), default=0),
        vendor=chips[0].vendor if chips else bare.vendor,
    )
