"""The recipes a group runs on: pinned when it was formed, whatever the catalogue says since."""

from __future__ import annotations

from backend.domain.group import Group
from backend.domain.mode import Catalogue, Mode

_CACHE: dict[str, Catalogue] = {}
_CACHED = 256


def pinned(group: Group) -> Catalogue | None:
    """The recipes that the running group was formed with; None while nothing is formed."""
    if group.formed is None:
        return None
    key = group.formed.revision  # covers the recipes themselves
    if key not in _CACHE:
        if len(_CACHE) >= _CACHED:
            _CACHE.clear()
        _CACHE[key] = Catalogue.model_validate(group.formed.recipe)
    return _CACHE[key]


def shown_mode(group: Group, catalogue: Catalogue) -> Mode | None:
    """The mode that the running group was formed with, as the catalogue has it now: what is only
    read of a recipe, and starts nothing, follows the catalogue at once."""
    mode = pinned_mode(group)
    return None if mode is None else catalogue.modes.get(mode.name, mode)


def pinned_mode(group: Group) -> Mode | None:
    """The mode that the running group was formed with; None for a plain deployment."""
    catalogue = pinned(group)
    if catalogue is None or group.formed is None:
        return None
    return catalogue.mode_of(group.formed.document.spec)
