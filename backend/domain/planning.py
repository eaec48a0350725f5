"""What saving a document would do: nothing, or what changes and what that moves. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from backend.domain.decide import wanted_counts
from backend.domain.deployment import Deployment
from backend.domain.desired import saved
from backend.domain.errors import Problem
from backend.domain.group import Group
from backend.domain.kinds import Kind
from backend.domain.revision import differences
from backend.domain.value import Value

Action = Literal["create", "update", "unchanged", "refused"]
EffectId = Literal[
    "forms", "stays_off", "restart_applies", "scales_up", "scales_down", "scale_waits",
    "stops", "resumes", "groups_change", "host_looked_at", "nothing_moves",
]  # fmt: skip


class Effect(Value):
    """One thing that saving sets in motion, or leaves for the restart; told by id and values."""

    id: EffectId
    values: dict[str, Any] = Field(default_factory=dict)


class Plan(Value):
    """What saving one document would do.

    `changes` is a line per difference from what is saved, secrets left out. `verdicts` are the
    findings of the rules; `action` is `refused` when one of them refuses. `document` is what would
    be stored, `saved` what is (null: nothing).
    """

    kind: Kind
    name: str
    action: Action
    changes: tuple[str, ...] = ()
    effects: tuple[Effect, ...] = ()
    verdicts: tuple[Problem, ...] = ()
    document: dict[str, Any] = Field(default_factory=dict)
    saved: dict[str, Any] | None = None
    etag: str = ""
    """What the plan is based on, empty where nothing is saved: a save may demand that it holds."""


def plan(
    kind: Kind,
    name: str,
    document: Mapping[str, Any],
    before: Mapping[str, Any] | None,
    effects: tuple[Effect, ...] = (),
    verdicts: tuple[Problem, ...] = (),
    etag: str = "",
) -> Plan:
    """The plan for a document (as it would be stored) beside what is stored."""
    action: Action = "create" if before is None else "update"
    if before == document:
        action, effects = "unchanged", ()
    if any(v.verdict == "refused" for v in verdicts):
        action, effects = "refused", ()
    return Plan(
        kind=kind,
        name=name,
        action=action,
        changes=() if before is None else differences(before, document),
        effects=effects,
        verdicts=verdicts,
        document=dict(document),
        saved=None if before is None else dict(before),
        etag=etag,
    )


def effects_on(old: Group | None, new: Deployment, revision: str) -> tuple[Effect, ...]:
    """What saving `new`, whose digest is `revision`, does to its group."""
    after = saved(old, new, revision, 0.0)
    if old is None:
        return (Effect(id="stays_off" if new.spec.paused else "forms", values=dict(after.applied)),)
    found: list[Effect] = []
    if after.stale and (old.revision != revision or not old.stale):
        found.append(Effect(id="restart_applies"))
    if new.spec.paused != old.document.spec.paused:
        found.append(Effect(id="stops" if new.spec.paused else "resumes"))
    elif not new.spec.paused:
        found += _scales(old, after)
    return tuple(found) or (Effect(id="nothing_moves"),)


def _scales(old: Group, after: Group) -> list[Effect]:
    wanted, found = wanted_counts(after), []
    for role, count in wanted.items():
        now, then = old.applied.get(role, 0), after.applied.get(role, 0)
        values = {"role": role, "before": now, "after": then}
        if then != now:
            found.append(Effect(id="scales_up" if then > now else "scales_down", values=values))
        if count > then:
            found.append(Effect(id="scale_waits", values={"role": role, "count": count}))
    return found
