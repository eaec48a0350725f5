"""What each act leaves in the stored rows; the loops and the model that tests them share it."""

from __future__ import annotations

from collections.abc import Iterable

from backend.domain.decide import tearing_down, wanted_counts
from backend.domain.group import Endpoint, Formed, Group, Instance, PeerRecord
from backend.domain.instance import ProcessStatus
from backend.domain.layout import Chosen
from backend.domain.transitions import BACKOFF_S


def started(fresh: Instance, generation: int, status: ProcessStatus, now: float) -> Instance | None:
    """A pending instance whose generation now has a process; None when it is no more pending."""
    if fresh.state != "pending" or fresh.generation != generation:
        return None
    return fresh.model_copy(
        update={"state": "starting", "process": status, "since": now, "note": ""}
    )


def router_started(fresh: Instance, asked: bool, peers: tuple[PeerRecord, ...]) -> Instance:
    """A pending router that is about to be started with `peers`; `asked` says that its host was
    asked for this generation before.

    That start may have happened without its answer having come back, and then with the peers of
    then: with others now it is the next generation, before which whatever started is ended.
    """
    update: dict[str, object] = {"snapshot": peers}
    if asked and fresh.snapshot is not None and set(fresh.snapshot) != set(peers):
        update["generation"] = fresh.generation + 1
    return fresh.model_copy(update=update)


def respawned(fresh: Instance, now: float) -> Instance | None:
    """The next generation of an ended instance; None when it is no more waiting for one."""
    return next_generation(fresh, now) if fresh.state == "exited" and not fresh.removing else None


def replaced(fresh: Instance, generation: int, now: float) -> Instance | None:
    """The next generation of a router that was ended on purpose; None when another act was first.

    A backend that died between the end and this row sees the router exited, and respawns it.
    """
    if fresh.leaving or fresh.generation != generation:
        return None
    return next_generation(fresh, now)


def next_generation(instance: Instance, now: float) -> Instance:
    """The instance under its identity, about to be started once more."""
    update = {
        "generation": instance.generation + 1,
        "state": "pending",
        "process": None,
        "next_start": None,
        "haunted": (),
        "since": now,
    }
    return instance.model_copy(update=update)


def draining(fresh: Instance, now: float) -> Instance | None:
    """A member that takes no new request; None when it is on its way out already."""
    if fresh.state in ("draining", "stopping"):
        return None
    update = {"state": "draining", "draining_since": now, "since": now, "removing": False}
    return fresh.model_copy(update=update)


def stopping(fresh: Instance, now: float) -> Instance:
    """An instance that is asked to end."""
    if fresh.state == "stopping":
        return fresh
    return fresh.model_copy(update={"state": "stopping", "since": now, "note": ""})


def bereaved(router: Instance, gone: Instance, may_send: bool) -> Instance | None:
    """A router that a member leaves which it may still send to, or which nobody can reach to tell;
    None where it knows."""
    if gone.role == "router" or not (may_send or router.state == "unreachable"):
        return None
    return router.model_copy(update={"haunted": (*router.haunted, *haunts([gone]))})


def haunts(members: Iterable[Instance]) -> tuple[tuple[str, int], ...]:
    """Where a router that is left to itself may go on sending requests."""
    return tuple((m.host, p) for m in members if m.role != "router" for p in m.ports)


def registered(group: Group, router: Instance, generation: int) -> Group | None:
    """The group with its endpoint; None when that start of the router is no more the one there."""
    if router.generation != generation or router.leaving or tearing_down(group):
        return None
    endpoint = Endpoint(url=router.url, router=router.id, generation=generation)
    return group.model_copy(update={"endpoint": endpoint})


def formed(fresh: Group | None, what: Formed, connector: Chosen | None = None) -> Group | None:
    """The group formed from `what`; None when it was forgotten, changed or switched off meanwhile.

    Counts that were changed while its members were being placed hold from here on. `connector` is
    the variant its members were launched with, in a mode that has several.
    """
    if fresh is None or fresh.formed is not None or tearing_down(fresh):
        return None
    if fresh.revision != what.revision:
        return None
    update = {
        "formed": what,
        "applied": wanted_counts(fresh),
        "placement_note": "",
        "connector": connector,
    }
    return fresh.model_copy(update=update)


def joined(fresh: Group | None, revision: str) -> Group | None:
    """The group that a member or router launched from `revision` may still join, else None.

    While it was being placed the whole group may have been restarted from another document.
    """
    if fresh is None or fresh.formed is None or tearing_down(fresh):
        return None
    if fresh.formed.revision != revision:
        return None
    return fresh.model_copy(update={"placement_note": ""})


def reformed(group: Group) -> Group:
    """The group once everything of it is gone: the saved document is what runs next."""
    update: dict[str, object] = {
        "formed": None,
        "applied": wanted_counts(group),
        "endpoint": None,
        "placement_note": "",
    }
    if group.document.spec.paused:
        update["restart"] = None
    elif group.restart is not None:
        update["restart"] = group.restart.model_copy(update={"step": "start"})
    return group.model_copy(update=update)


def rebased(instance: Instance, now: float) -> Instance:
    """The instance with no time ahead of `now`: the clock was set back while nobody watched.

    A restart that waits, waits no longer than the longest back-off.
    """
    update: dict[str, float] = {}
    if instance.since > now:
        update["since"] = now
    if instance.draining_since is not None and instance.draining_since > now:
        update["draining_since"] = now
    if instance.next_start is not None and instance.next_start > now + BACKOFF_S[-1]:
        update["next_start"] = now + BACKOFF_S[-1]
    return instance.model_copy(update=update) if update else instance
