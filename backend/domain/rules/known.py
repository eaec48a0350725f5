"""What the rules may look at beside the document: recipes, hosts as seen, models as read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from backend.domain.cache import CacheService
from backend.domain.host import DEFAULT_PORTS, Host, HostFacts
from backend.domain.inherit import EffectiveRole
from backend.domain.mode import Catalogue
from backend.domain.seats import selects


@dataclass(frozen=True)
class ModelSeen:
    """A model as one host has it.

    `found`: its `config.json` was read. `missing`: the host has no such path. `unknown`: the host
    could not be asked, or a hub id has no copy there; `note` says why. The digests are of the
    configuration's text and of the weights' listing (names and sizes), empty where not read.
    """

    state: Literal["found", "missing", "unknown"]
    config: Mapping[str, Any] | None = None
    config_digest: str = ""
    weights_digest: str = ""
    note: str = ""


def number_in(config: Mapping[str, Any], *names: str) -> int | None:
    """The first of these fields of a model's configuration that is a positive whole number."""
    for name in names:
        found = config.get(name)
        if isinstance(found, int) and not isinstance(found, bool) and found > 0:
            return found
    return None


@dataclass(frozen=True)
class Known:
    """Everything beside the document. What is not in a mapping is not known.

    `hosts` are all names of the inventory, `widths` accelerators by host that was looked at.
    `entries` and `facts` are hosts by name, facts only of those that answered; `port_ranges` are
    inclusive and `taken` the ports in them that others hold, this group's own left out.
    `models` are by host and model, `versions` engine versions found installed, by host and program.
    `services` is None where cache services are not known at all. `inventory` is false where there
    is none to look into: no rule then says anything of hosts.
    """

    catalogue: Catalogue
    hosts: frozenset[str] = frozenset()
    widths: Mapping[str, int] = field(default_factory=dict)
    entries: Mapping[str, Host] = field(default_factory=dict)
    facts: Mapping[str, HostFacts] = field(default_factory=dict)
    port_ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    taken: Mapping[str, frozenset[int]] = field(default_factory=dict)
    kv_transfer_ifname: str | None = None
    models: Mapping[tuple[str, str], ModelSeen] = field(default_factory=dict)
    versions: Mapping[tuple[str, str], str] = field(default_factory=dict)
    services: Mapping[str, CacheService] | None = None
    inventory: bool = True

    def port_range(self, host: str) -> tuple[int, int]:
        """The host's service port range, inclusive."""
        return self.port_ranges.get(host, DEFAULT_PORTS)

    def eligible(self, role: EffectiveRole) -> tuple[str, ...]:
        """Hosts that members of `role` may be placed on, by name: the pinned ones where every
        replica has a place, else those that the selector takes."""
        pins = role.placement or ()
        if pins and len(pins) >= role.replicas:
            return tuple(sorted({p.host for p in pins} & set(self.entries)))
        return tuple(n for n, h in sorted(self.entries.items()) if selects(role.hosts, n, h.labels))

    def models_of(self, role: EffectiveRole, model: str) -> Iterator[tuple[str, ModelSeen]]:
        """`model` as each eligible host of `role` has it, where it was looked for."""
        for host in self.eligible(role):
            seen = self.models.get((host, model))
            if seen is not None:
                yield host, seen
