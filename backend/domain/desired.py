"""What a save or a scale makes of a group: the document, its counts, and which of them hold now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from backend.domain.decide import wanted_counts
from backend.domain.deployment import Deployment, Roles
from backend.domain.group import Group, Instance, Restart
from backend.domain.instance import MEMBER_ROLES, PLAIN_ROLE


def saved(old: Group | None, document: Deployment, revision: str, now: float) -> Group:
    """The group with `document` saved; `revision` is the document's own digest."""
    if old is None:
        group = Group(
            name=document.name, version=1, document=document, revision=revision, since=now
        )
        return group.model_copy(update={"applied": wanted_counts(group)})
    update = {"version": old.version + 1, "document": document, "revision": revision}
    return with_counts_in_force(old.model_copy(update=update))


def with_revision(group: Group, revision: str) -> Group:
    """The group after its recipe changed, or changed back."""
    return with_counts_in_force(group.model_copy(update={"revision": revision}))


def with_counts_in_force(group: Group) -> Group:
    """The saved counts hold; while the configuration is changed none is larger than before."""
    wanted = wanted_counts(group)
    if group.stale:
        wanted = {r: min(n, wanted.get(r, n)) for r, n in group.applied.items()}
    return group.model_copy(update={"applied": wanted})


def switched(group: Group, paused: bool, instances: Sequence[Instance], now: float) -> Group:
    """The group with its switch set; its revision stands, for the switch is no part of it.

    A group that is switched on while a pause still ends its instances ends all of them and forms
    anew, as in a restart: what is left would otherwise go on beside what the pause has ended. So
    does one whose configuration changed meanwhile, for it could not replace a single one of them.
    """
    spec = group.document.spec.model_copy(update={"paused": paused})
    document = group.document.model_copy(update={"spec": spec})
    after = saved(group, document, group.revision, now)
    ending = any(i.state == "stopping" for i in instances)
    if not paused and (ending or (instances and group.stale)):
        restart = Restart(since=now, total=len(instances))
        return after.model_copy(update={"restart": restart})
    return after


def waiting(group: Group, counts: Mapping[str, int]) -> dict[str, int]:
    """Those of `counts` that wait for the restart: larger than what holds while it is changed."""
    if not group.stale:
        return {}
    return {r: n for r, n in counts.items() if group.applied.get(r, 0) < n}


def with_counts(document: Deployment, counts: Mapping[str, int]) -> Deployment:
    """The document with other replica counts; roles that it does not have are left out."""
    spec = document.spec
    if spec.disaggregation is None:
        if PLAIN_ROLE not in counts:
            return document
        plain = spec.model_copy(update={"replicas": counts[PLAIN_ROLE]})
        return document.model_copy(update={"spec": plain})
    roles = spec.roles or Roles()
    update: dict[str, object] = {
        role: getattr(roles, role).model_copy(update={"replicas": counts[role]})
        for role in MEMBER_ROLES
        if role in counts
    }
    if not update:
        return document
    spec = spec.model_copy(update={"roles": roles.model_copy(update=update)})
    return document.model_copy(update={"spec": spec})


def count_changes(old: Deployment, new: Deployment) -> list[str]:
    """Lines for what a revision does not count: replicas and the switch."""
    before = Group(name=old.name, version=0, document=old, revision="")
    after = Group(name=new.name, version=0, document=new, revision="")
    a, b = wanted_counts(before), wanted_counts(after)
    lines = [
        f"{r}: {a.get(r, 'none')} -> {b.get(r, 'none')}"
        for r in dict.fromkeys([*a, *b])
        if a.get(r) != b.get(r)
    ]
    if old.spec.paused != new.spec.paused:
        lines.append("paused" if new.spec.paused else "resumed")
    return lines
