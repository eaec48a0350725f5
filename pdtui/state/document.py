"""Pure: reading and changing plain nested data by dotted paths, never in place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
