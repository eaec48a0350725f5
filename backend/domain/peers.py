"""What a router should know, and whether it does. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from backend.domain.group import Group, Instance, PeerRecord
from backend.domain.instance import MEMBER_ROLES
from backend.domain.mode import Membership


@dataclass(frozen=True)
class Registry:
    """A router's registry as read back: url -> role, None while it could not be read."""

    peers: Mapping[str, str] | None = None
    generation: int = 0


def peers_wanted(instances: Iterable[Instance], router: Instance) -> tuple[PeerRecord, ...]:
    """The members a router should know: ready, not leaving, of its own revision, in a fixed order.

    Members of another revision never meet it, whatever let them be there.
    """
    ready = [
        i.record()
        for i in instances
        if i.role in MEMBER_ROLES
        and i.state == "ready"
        and not i.leaving
        and i.revision == router.revision
    ]
    return tuple(sorted(ready, key=lambda r: (r.role, r.instance)))


def registry_agrees(registry: Registry, router: Instance, wanted: Sequence[PeerRecord]) -> bool:
    """Whether the router lists exactly the wanted members under their roles."""
    if registry.peers is None or registry.generation != router.generation:
        return False
    return dict(registry.peers) == {w.url: w.role for w in wanted}


def peers_intent(router: Instance) -> str:
    """The key of the intent that is open while a dynamic router is being told of its peers: what it
    is asked meanwhile may come to pass later than it is read back."""
    return f"peers:{router.id}:{router.generation}"


def may_send(
    router: Instance | None,
    member: Instance,
    membership: Membership,
    registry: Registry,
    told: bool,
) -> bool:
    """Whether the router may still send requests to the member's address: true as well while nobody
    can say, as when it is just being `told` of its peers."""
    if router is None or router.state in ("pending", "exited", "crash_loop"):
        return False
    if membership == "dynamic":
        if told or registry.peers is None or registry.generation != router.generation:
            return True
        return member.url in registry.peers
    if membership == "restart":
        return any(r.instance == member.id for r in router.snapshot or ())
    return False


def registered_by(group: Group, router: Instance | None) -> bool:
    """Whether the endpoint stands on this very start of the router, and the router serves."""
    endpoint = group.endpoint
    if endpoint is None or router is None or router.leaving or router.state != "ready":
        return False
    return (endpoint.router, endpoint.generation) == (router.id, router.generation)
