"""Pure: reading and changing plain nested data by dotted paths, never in place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

SECRET = re.compile(
    r"token(?!s|iz)|secret|passw|credential|api[_-]?key|private[_-]?key|_key$", re.I
)
"""Names whose values are not shown."""
HIDDEN = "*" * 8
KEPT = frozenset({"metadata", "spec"})
"""Parts that stay even when nothing is left in them."""


def get(data: Mapping[str, Any], path: str) -> Any:
    """What stands at `path`; None where nothing does."""
    found: Any = data
    for part in path.split("."):
        if not isinstance(found, Mapping) or part not in found:
            return None
        found = found[part]
    return found


def put(data: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy with `value` at `path`; mappings on the way are made."""
    head, _, rest = path.partition(".")
    if not rest:
        return {**data, head: value}
    below = data.get(head)
    return {**data, head: put(below if isinstance(below, Mapping) else {}, rest, value)}


def without(data: Mapping[str, Any], path: str) -> dict[str, Any]:
    """A copy without `path`; what is left empty on the way goes too."""
    head, _, rest = path.partition(".")
    out = dict(data)
    if head not in out:
        return out
    below = out[head]
    if not rest:
        del out[head]
    elif isinstance(below, Mapping):
        left = without(below, rest)
        if left or head in KEPT:
            out[head] = left
        else:
            del out[head]
    return out


def masked(data: Any, name: str = "") -> Any:
    """A copy for the screen: values whose names tell a secret are hidden."""
    if isinstance(data, Mapping):
        return {k: masked(v, str(k)) for k, v in data.items()}
    if isinstance(data, list):
        return [_token(data, i) for i in range(len(data))]
    return HIDDEN if isinstance(data, str) and data and SECRET.search(name) else data


def _token(items: list[Any], at: int) -> Any:
    """One argument: hidden after a flag that tells a secret, or behind its equals sign."""
    item = items[at]
    if not isinstance(item, str):
        return masked(item)
    flag, equals, _ = item.partition("=")
    if item.startswith("-"):
        return f"{flag}={HIDDEN}" if equals and SECRET.search(flag) else item
    before = items[at - 1] if at else ""
    told = isinstance(before, str) and before.startswith("-") and "=" not in before
    return HIDDEN if told and SECRET.search(before) else item
