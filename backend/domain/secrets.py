"""Which names tell a secret, and what is shown in its place: the one pattern for all of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_WORDS = (
    r"token(?!s|iz)|secret|passw|passphrase|credential|bearer|api[_-]?key|access[_-]?key"
    r"|private[_-]?key"
)
SECRET = re.compile(rf"{_WORDS}|_private$|_key$|^key$", re.IGNORECASE)
"""Names whose values are never repeated: in an error, an event, a log, an export or on screen.
`tokens` and `tokenizer` are words of every engine, and no secrets."""

ASSIGNED = re.compile(
    rf"(?i)\b([\w-]*(?:{_WORDS})[\w-]*|[\w-]+_key)\b(\"?'?\s*[=:]\s*|\s+)"
    r"(\"[^\"]*\"|'[^']*'|[^\s,;}\"']+)"
)
"""`NAME=value`, `NAME: value` and `--name value` in running text."""

HIDDEN = "*" * 8


def is_secret(name: str) -> bool:
    """Whether a name tells that its value is a secret."""
    return bool(SECRET.search(name))


def masked(data: Any, name: str = "") -> Any:
    """A copy for the eyes: values whose names tell a secret are hidden.

    A reference to where a secret is (`from_env`, `from_file`, `from_command`) is none itself.
    """
    if isinstance(data, Mapping):
        return {k: masked(v, str(k)) for k, v in data.items()}
    if isinstance(data, list):
        return [_token(data, i) for i in range(len(data))]
    return HIDDEN if isinstance(data, str) and data and is_secret(name) else data


def _token(items: list[Any], at: int) -> Any:
    """One argument: hidden after a flag that tells a secret, or behind its equals sign."""
    item = items[at]
    if not isinstance(item, str):
        return masked(item)
    flag, equals, _ = item.partition("=")
    if item.startswith("-"):
        return f"{flag}={HIDDEN}" if equals and is_secret(flag) else item
    before = items[at - 1] if at else ""
    told = isinstance(before, str) and before.startswith("-") and "=" not in before
    return HIDDEN if told and is_secret(before) else item
