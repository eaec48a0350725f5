"""Masked values in a document that comes back: each is put back from what is saved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from backend.domain.secrets import HIDDEN


def restored(document: Any, saved: Any) -> tuple[Any, list[str]]:
    """The document with every masked value replaced by the saved one at the same place, and the
    paths of those that have none there."""
    left: list[str] = []
    return _restored(document, saved, "", left), left


def _restored(value: Any, saved: Any, path: str, left: list[str]) -> Any:
    if isinstance(value, Mapping):
        old = saved if isinstance(saved, Mapping) else {}
        return {
            k: _restored(v, old.get(k), f"{path}.{k}" if path else str(k), left)
            for k, v in value.items()
        }
    if isinstance(value, list):
        items = saved if isinstance(saved, list) else []
        return [_token(value, i, items, f"{path}[{i}]", left) for i in range(len(value))]
    if value == HIDDEN:
        if isinstance(saved, str) and saved != HIDDEN:
            return saved
        left.append(path)
    return value


def _token(items: list[Any], at: int, old: list[Any], path: str, left: list[str]) -> Any:
    """One argument: what is masked is found again by its flag, wherever that stands now."""
    item = items[at]
    if not isinstance(item, str) or HIDDEN not in item:
        return _restored(item, old[at] if at < len(old) else None, path, left)
    flag = item.partition("=")[0] if item != HIDDEN else items[at - 1] if at else ""
    found = next(_values(old, flag), None)
    if found is None:
        left.append(path)
        return item
    return found if item == HIDDEN else f"{flag}={found}"


def _values(items: list[Any], flag: Any) -> Iterator[str]:
    """What a flag was given, in either spelling."""
    for at, item in enumerate(items):
        if item == flag and at + 1 < len(items) and isinstance(items[at + 1], str):
            yield items[at + 1]
        elif isinstance(item, str) and item.startswith(f"{flag}="):
            yield item.partition("=")[2]
