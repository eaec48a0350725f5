"""What a group needs next: desired and seen in, actions out. Pure, and asked again after each act.

Every action is safe to repeat: it is keyed by the instance and its generation, so that a backend
killed between an act and its confirmation asks for the same act again and the host answers that
it is done already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from backend.domain.group import Group, Instance, PeerRecord
from backend.domain.instance import MEMBER_ROLES, PLAIN_ROLE
from backend.domain.peers import (
    Registry,
    may_send,
    peers_wanted,
    registered_by,
    registry_agrees,
)

LOOK_AT_DRAINING_S = 0.3
"""Seconds between two looks at a member that finishes what it holds."""

Kind = Literal[
    "form",         # place and insert all members of the group at once
    "add",          # place and insert `count` more members of `role`
    "create_router",
    "start",        # start the instance's present generation on its host
    "respawn",      # next generation of an ended instance
    "kill",         # end a wedged start for good and all; it is respawned as one that ended
    "replace",      # end a living router and start its next generation with the present peers
    "drain",        # take the instance out of service; it stops once idle
    "stop",         # end the instance, confirm it gone, forget it
    "sync_peers",   # make the router's registry what it should be
    "register",     # one real request through the router, then the endpoint stands
    "unregister",
    "restart_step",  # the restart enters step `detail`
    "reform",       # everything is gone: take the saved document as what runs next
    "forget",       # everything is gone: delete the group
]  # fmt: skip


@dataclass(frozen=True)
class Action:
    """One thing to do. `instance` is empty for actions on the whole group."""

    kind: Kind
    instance: str = ""
    role: str = ""
    count: int = 0
    detail: str = ""

    @property
    def key(self) -> str:
        """What may run only once at a time: an instance, or the group's own business."""
        return self.instance or {"add": f"+{self.role}"}.get(self.kind, self.kind)

    @property
    def retry_key(self) -> str:
        """What waits after a failure: a router's peers and its first request each by themselves,
        and a stop never for what failed before it."""
        if self.kind in ("sync_peers", "register"):
            return self.kind
        return f"stop:{self.instance}" if self.kind == "stop" else self.key


@dataclass(frozen=True)
class Timers:
    """Seconds of patience, each a setting. What lives without answering for `start_limit_s` after
    its start, or for `hang_limit_s` later, is killed and started again."""

    first_router_wait_s: float = 120.0
    batch_window_s: float = 2.0
    drain_cap_s: float = 60.0
    drain_settle_s: float = 1.0
    placement_retry_s: float = 5.0
    start_limit_s: float = 1800.0
    hang_limit_s: float = 300.0


@dataclass(frozen=True)
class Picture:
    """Everything `decide` looks at. `began` is when this backend began to watch; `mode_gone` names
    a mode that the saved document asks for and the catalogue has no more; `telling`: the router is
    being told of its peers."""

    group: Group
    instances: Sequence[Instance]
    membership: Literal["dynamic", "restart", "manual", "none"]
    registry: Registry = field(default_factory=Registry)
    idle_since: Mapping[str, float] = field(default_factory=dict)
    retry_at: Mapping[str, float] = field(default_factory=dict)
    now: float = 0.0
    timers: Timers = Timers()
    began: float = 0.0
    mode_gone: str = ""
    telling: bool = False

    def of(self, role: str) -> list[Instance]:
        """Instances of a role that are not on their way out."""
        return [i for i in self.instances if i.role == role and not i.leaving]

    def ready(self, role: str) -> list[Instance]:
        """Members that serve: ready and not leaving."""
        return [i for i in self.of(role) if i.state == "ready"]

    @property
    def members(self) -> list[Instance]:
        """Everything but the router."""
        return [i for i in self.instances if i.role != "router"]

    @property
    def router(self) -> Instance | None:
        """The group's router, leaving or not."""
        return next((i for i in self.instances if i.role == "router"), None)


@dataclass
class Decision:
    """Actions to begin now, and when to look again if nothing happens meanwhile."""

    actions: list[Action] = field(default_factory=list)
    wake_at: float | None = None

    def do(self, kind: Kind, **about: object) -> None:
        """Add an action."""
        self.actions.append(Action(kind, **about))  # type: ignore[arg-type]

    def at(self, when: float) -> None:
        """Look again no later than `when`."""
        self.wake_at = when if self.wake_at is None else min(self.wake_at, when)


def roles_of(group: Group) -> tuple[str, ...]:
    """Roles whose members are counted: prefill and decode, or the plain replica."""
    running = group.formed.document if group.formed else group.document
    return MEMBER_ROLES if running.spec.disaggregation else (PLAIN_ROLE,)


def wanted_counts(group: Group) -> dict[str, int]:
    """Member counts of the saved document."""
    spec = group.document.spec
    if spec.disaggregation is None:
        return {PLAIN_ROLE: spec.replicas or 1}
    if spec.roles is None:
        return dict.fromkeys(MEMBER_ROLES, 1)
    return {"prefill": spec.roles.prefill.replicas, "decode": spec.roles.decode.replicas}


def tearing_down(group: Group) -> bool:
    """Whether everything of the group has to end first."""
    restarting = group.restart is not None and group.restart.step != "start"
    return group.deleting or group.document.spec.paused or restarting


def decide(p: Picture) -> Decision:
    """The actions the group needs now."""
    out = Decision()
    if tearing_down(p.group):
        _tear_down(p, out)
        return out
    if p.group.formed is None:
        _form(p, out)
        return out
    _counts(p, out)
    for instance in p.members:
        _member(p, instance, out)
    if p.membership != "none":
        _router(p, out)
    return out


def _form(p: Picture, out: Decision) -> None:
    for instance in p.instances:  # left from an earlier forming: end them, then form anew
        _stop(p, instance, out)
    if not p.instances:
        _due(p, Action("form"), out)


def _counts(p: Picture, out: Decision) -> None:
    for role in roles_of(p.group):
        present = p.of(role)
        wanted = p.group.applied.get(role, 0)
        if len(present) > wanted:
            for victim in victims(p, role, len(present) - wanted):
                out.do("drain", instance=victim.id)
        elif len(present) < wanted and not p.group.stale:
            _due(p, Action("add", role=role, count=wanted - len(present)), out)


def victims(p: Picture, role: str, count: int) -> list[Instance]:
    """Which members leave at a scale-down: what serves least first, then the worst paired.

    State first (not started, ended, not yet ready, ready), then how many members of the other
    role share its host (fewer first), then the youngest.
    """
    order = {"pending": 0, "crash_loop": 0, "exited": 0, "unreachable": 0, "starting": 1,
             "unhealthy": 1, "ready": 2}  # fmt: skip
    others: dict[str, int] = {}
    for instance in p.members:
        if instance.role != role and not instance.leaving:
            others[instance.host] = others.get(instance.host, 0) + 1
    ranked = sorted(
        p.of(role),
        key=lambda i: (order.get(i.state, 1), others.get(i.host, 0), -i.since, i.id),
    )
    return ranked[:count]


def _member(p: Picture, instance: Instance, out: Decision) -> None:
    if instance.state == "stopping":
        _stop(p, instance, out)
    elif instance.state == "draining":
        _draining(p, instance, out)
    elif instance.removing:
        out.do("drain", instance=instance.id)
    elif instance.state == "pending":
        _due(p, Action("start", instance.id), out)
    elif instance.state == "exited":
        _respawn(p, instance, out)
    else:
        _wedged(p, instance, out)


def _wedged(p: Picture, instance: Instance, out: Decision) -> None:
    """Kill what lives without answering for longer than it may."""
    limits = {"starting": p.timers.start_limit_s, "unhealthy": p.timers.hang_limit_s}
    if instance.state in limits:
        watched = max(instance.since, p.began)  # it may have answered while nobody asked
        _due(p, Action("kill", instance.id), out, watched + limits[instance.state])


def _due(p: Picture, action: Action, out: Decision, earliest: float = 0.0) -> None:
    """Do it, or look again once it is time: no earlier than `earliest`, nor than its next try."""
    due = max(p.retry_at.get(action.retry_key, 0.0), earliest)
    if p.now >= due:
        out.actions.append(action)
    else:
        out.at(due)


def _respawn(p: Picture, instance: Instance, out: Decision) -> None:
    _due(p, Action("respawn", instance.id), out, instance.next_start or 0.0)


def _stop(p: Picture, instance: Instance, out: Decision) -> None:
    _due(p, Action("stop", instance.id), out)


def _draining(p: Picture, instance: Instance, out: Decision) -> None:
    """Stop it once the router forgot it and it stayed idle, or when patience ends."""
    since = instance.since if instance.draining_since is None else instance.draining_since
    patience = since + p.timers.drain_cap_s
    idle = p.idle_since.get(instance.id)
    serves = instance.process is not None and instance.process.state == "running"
    settled = idle is not None and p.now - idle >= p.timers.drain_settle_s
    if not serves or (settled and not _may_get_requests(p, instance)) or p.now >= patience:
        _stop(p, instance, out)
    else:
        out.at(min(p.now + LOOK_AT_DRAINING_S, patience))


def _may_get_requests(p: Picture, instance: Instance) -> bool:
    return may_send(p.router, instance, p.membership, p.registry, p.telling)


def _tear_down(p: Picture, out: Decision) -> None:
    if p.group.endpoint is not None:
        out.do("unregister")
    if not p.instances:
        if _unfinished(p.group):
            out.do("forget" if p.group.deleting else "reform")
        return
    router = p.router
    if router is not None:
        _step(p, "stop router", out)
        _stop(p, router, out)
        return
    _step(p, "stop members", out)
    for instance in p.instances:
        _stop(p, instance, out)


def _unfinished(group: Group) -> bool:
    """Whether the end of everything still has to be written down."""
    return group.deleting or group.restart is not None or group.formed is not None


def _step(p: Picture, step: str, out: Decision) -> None:
    if p.group.restart is not None and p.group.restart.step != step:
        out.do("restart_step", detail=step)


def _router(p: Picture, out: Decision) -> None:
    router = p.router
    if p.group.endpoint is not None and not registered_by(p.group, router):
        out.do("unregister")
    paired = all(p.ready(role) for role in MEMBER_ROLES)
    if router is None:
        _due(p, Action("create_router"), out)
    elif router.leaving:
        _stop(p, router, out)
    elif router.state == "pending" and paired:
        _start_router(p, router, out)
    elif router.state == "exited" and paired:
        _respawn(p, router, out)
    elif router.state == "ready":
        _serving_router(p, router, out, paired)
    elif paired and _started_in_vain(p, router):
        _due(p, Action("replace", router.id), out)
    else:
        _wedged(p, router, out)


def _started_in_vain(p: Picture, router: Instance) -> bool:
    """Whether a static router that does not serve waits for members that are gone or restarted.

    It would wait as long as it may for their ports; one that gave up is tried with the others.
    """
    if p.membership != "restart" or router.state not in ("starting", "unhealthy", "crash_loop"):
        return False
    return bool(set(router.snapshot or ()) - set(peers_wanted(p.instances, router)))


def _start_router(p: Picture, router: Instance, out: Decision) -> None:
    """Start a router whose place was taken while its members started.

    A static one is not built twice: its first start waits, bounded, for all wanted members.
    """
    if p.membership == "restart" and router.generation == 1:
        complete = all(len(p.ready(r)) >= p.group.applied.get(r, 0) for r in MEMBER_ROLES)
        both = max(min(i.since for i in p.ready(r)) for r in MEMBER_ROLES)
        due = both + p.timers.first_router_wait_s
        if not complete and p.now < due:
            out.at(due)
            return
    _due(p, Action("start", router.id), out)


def _serving_router(p: Picture, router: Instance, out: Decision, paired: bool) -> None:
    wanted = peers_wanted(p.instances, router)
    agreed = True
    if p.membership == "dynamic":
        agreed = registry_agrees(p.registry, router, wanted)
        unsure = not agreed or router.haunted  # it may have been told while nobody could ask
        if unsure and p.registry.generation == router.generation:
            _due(p, Action("sync_peers", router.id), out)
    elif p.membership == "restart":
        due = replacement_due(p, router, wanted)
        if due is not None:
            _due(p, Action("replace", router.id), out, due)
            agreed = p.now < due
    if p.group.endpoint is None and agreed and paired:
        _due(p, Action("register", router.id), out)


def replacement_due(p: Picture, router: Instance, wanted: Sequence[PeerRecord]) -> float | None:
    """When a static router has to be replaced for its peers; None while it knows the right ones.

    A lost or restarted peer: at once. Only additions: once all wanted members are ready, or after
    the batch window. No snapshot: once. Never without a usable peer on both sides. Changes that
    wait for a restart do not hold it back: it is started from what the group was formed with.
    """
    if not all(any(w.role == r for w in wanted) for r in MEMBER_ROLES):
        return None
    if router.snapshot is None:
        return p.now
    old, new = set(router.snapshot), set(wanted)
    if old == new:
        return None
    if old - new or all(len(p.ready(r)) >= p.group.applied.get(r, 0) for r in MEMBER_ROLES):
        return p.now
    youngest = max(i.since for i in p.members if i.record() in new - old)
    return youngest + p.timers.batch_window_s
