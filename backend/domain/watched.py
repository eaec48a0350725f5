"""A group's view with what watching found out. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from backend.domain.effect import BAD
from backend.domain.status import mark
from backend.domain.telling import said
from backend.domain.views import GroupView, Level, MemberView
from backend.domain.watch_views import CanaryView, EffectView


class Traffic(Protocol):
    """What is known of a group's traffic, by instance and as a whole."""

    @property
    def effects(self) -> Mapping[str, EffectView]: ...

    @property
    def figures(self) -> Mapping[str, dict[str, float]]: ...

    @property
    def group(self) -> EffectView | None: ...


def dressed(view: GroupView, traffic: Traffic, canary: CanaryView | None = None) -> GroupView:
    """The view, its members and its marks with what is known of its traffic."""
    members = tuple(m.model_copy(update=of_member(m, traffic)) for m in view.members)
    marks = view.marks
    found = traffic.group if view.mode is not None else None
    if found is not None and found.verdict in (*BAD, "partial"):
        level: Level = "error" if found.verdict in BAD else "warning"
        marks = (*marks, mark("effect", said("mark.effect", what=found.words), level=level))
    if canary is not None and not canary.ok and not canary.running:
        words = said("mark.canary", what=canary.words)
        marks = (*marks, mark("canary", words, level="error"))
    return view.model_copy(
        update={"members": members, "marks": marks, "effect": found, "canary": canary}
    )


def of_member(view: MemberView, traffic: Traffic) -> dict[str, Any]:
    """The fields of a member's view that are known of its traffic."""
    found = traffic.effects.get(view.id)
    if found is not None and view.state not in ("ready", "unhealthy", "draining"):
        found = None  # what it did before it ended says nothing of what it is now
    return {"effect": found, "figures": dict(traffic.figures.get(view.id, {}))}
