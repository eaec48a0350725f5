"""Pure: an inventory entry as the texts of a few boxes, and back. What cannot be read stays text,
so that the backend says what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FIELDS = (
    "name", "address", "port", "user", "jump", "identity_files", "runtime", "executables",
    "service_port_range", "kv_transfer_ifname", "labels",
)  # fmt: skip
_LISTS = ("identity_files",)
_PAIRS = ("executables", "labels")


def texts(entry: Mapping[str, Any]) -> dict[str, str]:
    """The text of each box."""
    out: dict[str, str] = {}
    for name in FIELDS:
        value = entry.get(name)
        if value in (None, [], {}, ()):
            out[name] = ""
        elif name in _LISTS:
            out[name] = " ".join(value)
        elif name in _PAIRS:
            out[name] = " ".join(f"{k}={v}" for k, v in value.items())
        elif name == "service_port_range":
            out[name] = "-".join(str(v) for v in value)
        else:
            out[name] = str(value)
    return out


def document(written: Mapping[str, str], entry: Mapping[str, Any]) -> dict[str, Any]:
    """The entry that the boxes tell, with what `entry` has beyond them."""
    out = {k: v for k, v in entry.items() if k not in FIELDS}
    for name in FIELDS:
        text = written[name].strip()
        if text:
            out[name] = _read(name, text)
    return out


def _read(name: str, text: str) -> Any:
    words = text.replace(",", " ").split()
    if name in _LISTS:
        return words
    if name in _PAIRS:
        pairs = [w.partition("=") for w in words]
        return {k: v for k, _, v in pairs} if all(e for _, e, _ in pairs) else text
    if name == "service_port_range":
        parts = text.split("-")
        return [int(p) if p.strip().isdecimal() else p for p in parts]
    return int(text) if name == "port" and text.isdecimal() else text
