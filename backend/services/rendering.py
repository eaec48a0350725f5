"""What a document would start, role by role, for a person to read and to copy."""

from __future__ import annotations

from collections.abc import Mapping

from backend.domain.deployment import Deployment
from backend.domain.errors import Refused
from backend.domain.example import Spot, launches
from backend.domain.instance import LaunchSpec
from backend.domain.network import kv_interface
from backend.domain.secrets import masked
from backend.domain.shell import join, quote
from backend.domain.views import RenderedView
from backend.reconcile.world import World


class Rendering:
    """Answers with the commands of a draft; nothing is placed and nothing is stored."""

    def __init__(self, world: World) -> None:
        self._world = world

    def of(self, document: Deployment) -> tuple[RenderedView, ...]:
        """One view a role. Raises Refused for what cannot be rendered."""
        world = self._world
        catalogue = world.catalogue()
        mode = catalogue.mode_of(document.spec)
        spots = [self._spot(name, mode.network if mode else "none") for name in world.store.hosts]
        spots.sort(key=lambda s: (s.facts is None, s.host.name))
        return views(launches(catalogue, document, spots, world.store.caches))

    def _spot(self, name: str, network: str) -> Spot:
        world = self._world
        host, sight = world.store.hosts[name], world.hosts.sight(name)
        facts = sight.facts
        ports = host.service_port_range or world.defaults.port_range
        device = ""
        if facts is not None:
            try:
                ifname = world.defaults.kv_transfer_ifname
                device = kv_interface(host, facts, network, ifname) or ""  # type: ignore[arg-type]
            except Refused:
                device = ""  # the rules say it at the host; here it is only left out
        address = host.service_address or (facts.address if facts else "") or host.address
        return Spot(host, facts, address, ports, device)


def views(found: Mapping[str, tuple[str, LaunchSpec]]) -> tuple[RenderedView, ...]:
    """Host and launch of each role as they are shown, secrets hidden."""
    out: list[RenderedView] = []
    for role, (host, launch) in found.items():
        argv, env = tuple(masked(list(launch.argv))), masked(launch.env)
        pairs = " ".join(f"{k}={quote(v)}" for k, v in env.items())
        out.append(
            RenderedView(
                role=role,
                host=host,
                image=launch.image or "",
                argv=argv,
                env=env,
                command=f"env {pairs} {join(argv)}" if env else join(argv),
                bands=launch.bands,
                files=tuple(f.name for f in launch.files),
            )
        )
    return tuple(out)
