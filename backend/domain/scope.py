"""The values that placeholders stand for, in one instance's scope.

A peer's values (`peer.*`) are another scope, see `worker_calls.Peer.scope`: a bare `port` is never
a peer's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from backend.domain.bands import HTTP
from backend.domain.cache import CacheService, cache_scope
from backend.domain.deployment import Deployment
from backend.domain.engine_args import Parallel, flatten, parallel
from backend.domain.host import Runtime, Vendor
from backend.domain.inherit import EffectiveRole, roles_of
from backend.domain.instance import Band
from backend.domain.mode import Catalogue, Layout, Mode
from backend.domain.worker_calls import Peer, served_name

HINTS: Mapping[str, str] = {
    "net_device": "Name the interface that carries KV traffic: kv_transfer_ifname of the host, "
    "--kv-transfer-ifname or PDTUI_KV_TRANSFER_IFNAME.",
    "service.host": "The cache service has no endpoint yet.",
    "service.port": "The cache service has no endpoint yet.",
    "service.args": "Write the engine's arguments as settings.args of the cache service.",
}


@dataclass(frozen=True)
class Place:
    """Where one instance goes. `address` is where the others reach it; `bands` begin with `http`.

    `executable` is the host's entry for the program (`render.program_of`); `accelerator_uuids` run
    beside `accelerators`; `instance_dir` is where its files will lie on the host.
    """

    host: str
    address: str
    bands: tuple[Band, ...]
    accelerators: tuple[int, ...] = ()
    accelerator_uuids: tuple[str, ...] = ()
    accelerator_type: str = ""
    accelerator_memory_mib: int = 0
    vendor: Vendor | None = None
    net_device: str | None = None
    instance: str = ""
    executable: str | None = None
    runtime: Runtime = "process"
    instance_dir: str = ""

    @property
    def port(self) -> int:
        """The HTTP port."""
        return next(b.base for b in self.bands if b.name == HTTP)


@dataclass(frozen=True)
class Siblings:
    """What both roles of a group are told alike: the connector variant stored for the group, and
    each role's accelerators per member where they are known better than the document says."""

    variant: Layout | None = None
    accelerators: Mapping[str, int] = field(default_factory=dict)


def degrees(catalogue: Catalogue, role: EffectiveRole, accelerators: int) -> Parallel:
    """The parallel degrees in effect for a member of `role` with so many accelerators."""
    flags = catalogue.engine(role.engine).flags
    return parallel(flatten(role.parameters), flags).resolve(accelerators)


def member_scope(
    mode: Mode | None,
    catalogue: Catalogue,
    deployment: Deployment,
    role: EffectiveRole,
    place: Place,
    siblings: Siblings | None = None,
    service: CacheService | None = None,
) -> dict[str, Any]:
    """Everything an engine's templates and its user's rows may name."""
    own = degrees(catalogue, role, len(place.accelerators))
    scope = _common(mode, deployment, role, place)
    scope |= _degrees("", own)
    seats = dict(siblings.accelerators) if siblings else {}
    for other in roles_of(deployment.spec):
        width = seats.get(other.name, other.width)
        if other.name == role.name:
            width = len(place.accelerators) or width
        scope |= _degrees(f"roles.{other.name}.", degrees(catalogue, other, width))
        scope[f"roles.{other.name}.replicas"] = other.replicas
        scope[f"roles.{other.name}.accelerators"] = width
        scope[f"roles.{other.name}.engine"] = other.engine
    if mode is not None and not mode.injects:
        # one command serves every role; only the router is told of peers
        scope |= _peers(())
    if mode is not None and mode.variants:
        told = siblings.variant if siblings else None
        scope["connector"] = mode.variants[told or mode.default_variant or "hybrid"]
    return scope | cache_scope(role, len(place.accelerators), place.accelerator_memory_mib, service)


def router_scope(
    mode: Mode | None,
    deployment: Deployment,
    role: EffectiveRole,
    place: Place,
    peers: tuple[Peer, ...],
) -> dict[str, Any]:
    """Everything a router's templates and its user's rows may name.

    The peers are lists: alone in an argument `{{prefill.urls}}` gives one argument a peer, inside
    text they are joined by commas.
    """
    scope = _common(mode, deployment, role, place)
    return scope | _peers(peers)


def _common(
    mode: Mode | None, deployment: Deployment, role: EffectiveRole, place: Place
) -> dict[str, Any]:
    wanted = deployment.spec.disaggregation
    lease = mode.lease if mode else None
    scope: dict[str, Any] = {
        "deployment": deployment.name,
        "role": role.name,
        "instance": place.instance or None,
        "host": place.host,
        "host_ip": place.address,
        "port": place.port,
        "model_path": deployment.spec.model,
        "model_name": served_name(deployment),
        "accelerator_count": len(place.accelerators),
        "accelerator_ids": ",".join(map(str, place.accelerators)),
        "net_device": place.net_device,
        "instance_dir": place.instance_dir or None,
        "kv_load_failure_policy": wanted.kv_load_failure_policy if wanted else None,
        "kv_lease_s": (lease.value_s or lease.engine_default_s) if lease else None,
    }
    for band in place.bands:
        scope[f"ports.{band.name}"] = band.base
        scope[f"ports.{band.name}.count"] = band.count
    return scope


def _degrees(prefix: str, found: Parallel) -> dict[str, Any]:
    return {
        f"{prefix}tensor_parallel_size": found.tensor,
        f"{prefix}data_parallel_size": found.data,
        f"{prefix}pipeline_parallel_size": found.pipeline,
    }


def _peers(peers: tuple[Peer, ...]) -> dict[str, Any]:
    scope: dict[str, Any] = {}
    for name in ("prefill", "decode"):
        members = [p for p in peers if p.role == name]
        scope[f"{name}.urls"] = [p.url for p in members]
        scope[f"{name}.count"] = len(members)
    return scope
