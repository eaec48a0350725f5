"""Pure: a cache service's document as the texts of a few boxes, and back. What cannot be read
stays text, so that the backend says what is wrong with it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from pdtui.state import words
from pdtui.state.document import get, put, without

FIELDS = ("name", "provider", "endpoint", "settings", "hosts", "labels")
_PATHS = {
    "name": "metadata.name",
    "labels": "metadata.labels",
    "provider": "spec.provider",
    "endpoint": "spec.endpoint",
    "settings": "spec.settings",
    "hosts": "spec.hosts",
}


def texts(document: Mapping[str, Any]) -> dict[str, str]:
    """The text of each box."""
    out: dict[str, str] = {}
    for name in FIELDS:
        value = get(document, _PATHS[name])
        if name == "settings":
            out[name] = _written(value) if isinstance(value, Mapping) else str(value or "")
        elif name == "hosts":
            out[name] = words.written("hosts", value)
        elif name == "labels":
            out[name] = words.written("labels", value)
        else:
            out[name] = "" if value is None else str(value)
    return out


def document(written: Mapping[str, str], before: Mapping[str, Any]) -> dict[str, Any]:
    """The document that the boxes tell, with what `before` has beyond them."""
    out: dict[str, Any] = {"apiVersion": "pdtui/v1", "kind": "CacheService", **before}
    out = put(out, "metadata.name", written["name"].strip())
    out = put(out, "spec.provider", written["provider"].strip().lower())
    for name in ("endpoint", "settings", "hosts", "labels"):
        text = written[name].strip()
        found = _read(name, text) if text else None
        path = _PATHS[name]
        out = without(out, path) if found in (None, {}) else put(out, path, found)
    return out


def _read(name: str, text: str) -> Any:
    match name:
        case "settings":
            return _settings(text)
        case "hosts":
            return words.read("hosts", text)
        case "labels":
            return words.read("labels", text)
        case _:
            return text


def _settings(text: str) -> Any:
    """`NAME=VALUE` pairs; a value is JSON where it can be read as such, else text."""
    try:
        pairs = [w.partition("=") for w in shlex.split(text)]
    except ValueError:
        return text
    if not all(equals and name for name, equals, _ in pairs):
        return text
    return {name: _value(value) for name, _, value in pairs}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _written(settings: Mapping[str, Any]) -> str:
    """Each as `NAME=VALUE`; a text that JSON would read as something else is kept in quotes."""
    out: list[str] = []
    for name, value in settings.items():
        plain = isinstance(value, str) and _value(value) == value
        text = value if plain else json.dumps(value, ensure_ascii=False)
        out.append(shlex.quote(f"{name}={text}") if _odd(text) else f"{name}={text}")
    return " ".join(out)


def _odd(text: str) -> bool:
    return not text or any(c in text for c in " \t'\"\\")
