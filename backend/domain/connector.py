"""The KV connector an engine is given: the mode's or the user's own, and a cache beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backend.domain.engine_args import json_value, present, without
from backend.domain.errors import Refused
from backend.domain.mode import ConnectorFlag, MemberName
from backend.domain.template import compact


@dataclass(frozen=True)
class Composed:
    """The tokens to add, the user's own tokens that are left, and whether the cache takes part.

    `why_not` says why a cache stands down.
    """

    args: tuple[str, ...]
    user_args: tuple[str, ...]
    cached: bool
    why_not: str = ""


def merged(
    flag: ConnectorFlag, ours: Mapping[str, Any], extra: Mapping[str, Any]
) -> dict[str, Any]:
    """The mode's connector with the deployment's `connector_extra` in its extra config."""
    result = dict(ours)
    if extra:
        result[flag.extra_key] = {**result.get(flag.extra_key, {}), **extra}
    return result


def compose(
    flag: ConnectorFlag,
    role: MemberName,
    ours: Mapping[str, Any] | None,
    child: Mapping[str, Any] | None,
    user_args: Sequence[str],
    *,
    shared: bool,
) -> Composed:
    """Decide the connector argument of one engine.

    The user's own connector, in any spelling, stands in for the mode's. A cache's `child` is folded
    beside whichever it is; a shared cache (`shared`) stands down beside a user's own. Raises
    Refused when the user's own is no JSON object and a cache would have to join it.
    """
    users = present(user_args, flag.flag)
    if child is None or (users and shared):
        own = () if users or ours is None else (flag.flag, compact(ours))
        why = "" if child is None else f"{flag.flag} is written by hand: a shared cache stays out"
        return Composed(own, tuple(user_args), child is None, why)
    first: Mapping[str, Any] | None = ours
    rest = tuple(user_args)
    if users:
        first, rest = _users_own(flag, user_args), without(user_args, flag.flag)
    if first is None:
        return Composed((flag.flag, compact(child)), rest, True)
    return Composed((flag.flag, compact(fold(flag, role, first, child))), rest, True)


def fold(
    flag: ConnectorFlag, role: MemberName, first: Mapping[str, Any], child: Mapping[str, Any]
) -> dict[str, Any]:
    """One configuration holding both: the transfer first, so that it owns the load.

    Keys the engine reads from the outermost object only are lifted; the first child that has one
    decides. A `first` that already holds several connectors gets `child` appended.
    """
    if first.get(flag.name_key) == flag.fold_name:
        extra = dict(first.get(flag.extra_key) or {})
        children = list(extra.get(flag.connectors_key) or ())
        if all(c.get(flag.name_key) != child.get(flag.name_key) for c in children):
            children.append(child)
        return {**first, flag.extra_key: {**extra, flag.connectors_key: children}}
    outer: dict[str, Any] = dict(flag.fold[role])
    outer[flag.extra_key] = {flag.connectors_key: [dict(first), dict(child)]}
    for key in flag.lifted:
        found = [c[key] for c in (first, child) if key in c]
        if found:
            outer[key] = found[0]
    return outer


def _users_own(flag: ConnectorFlag, user_args: Sequence[str]) -> dict[str, Any] | None:
    try:
        return json_value(user_args, flag.flag)
    except ValueError as error:
        raise Refused.of(
            "pairing.connector",
            f"{flag.flag} is no JSON object, so the cache cannot join it: {error}.",
            remedy="Write it as one JSON object, or leave it to the mode.",
        ) from error
