"""What must not be written down: the values of secrets that this process has handled.

Names tell most secrets (`backend.domain.secrets`); a host's or an engine's own words may repeat a
value without its name, so whatever leaves for a log, an event or an error passes here too.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

from backend.domain.references import is_reference
from backend.domain.secrets import ASSIGNED, HIDDEN, is_secret

SHORTEST = 6
"""Characters: what is shorter would hide words that are no secrets."""
MOST = 20_000


class Redaction:
    """Values that are hidden, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[str, None] = {}
        self._ordered: tuple[str, ...] = ()

    def remember(self, values: Iterable[str]) -> None:
        """Hide these from now on; each line of a longer one too. The oldest are forgotten first
        when they become too many."""
        fresh = {p for v in values for p in (v, *v.splitlines()) if len(p.strip()) >= SHORTEST}
        with self._lock:
            if fresh <= self._values.keys():
                return
            self._values.update(dict.fromkeys(sorted(fresh)))
            while len(self._values) > MOST:
                del self._values[next(iter(self._values))]
            self._ordered = tuple(sorted(self._values, key=len, reverse=True))

    def hide(self, text: str) -> str:
        """The text without secrets: those that are known, and those whose names stand with them."""
        for value in self._ordered:
            if value in text:
                text = text.replace(value, HIDDEN)
        return ASSIGNED.sub(rf"\1\2{HIDDEN}", text)

    def hide_values(self, text: str) -> str:
        """The text without the secrets that are known."""
        for value in self._ordered:
            if value in text:
                text = text.replace(value, HIDDEN)
        return text


PROCESS = Redaction()
"""The one of this process: its log, its store's events and its API's errors ask it."""


def secret_values(env: Mapping[str, str]) -> list[str]:
    """Values of an environment that are secrets by name."""
    return [v for k, v in env.items() if is_secret(k) and not is_reference(v)]
