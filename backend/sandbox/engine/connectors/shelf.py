"""KV that a prefill keeps for its decode, each piece under a lease."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class _Kept:
    data: bytes
    until: float


class Shelf:
    """Pieces by key. `expired` is told each key whose lease of `lease_s` seconds ran out."""

    def __init__(self, lease_s: float, expired: Callable[[str], None]) -> None:
        self._lease_s, self._expired = lease_s, expired
        self._kept: dict[str, _Kept] = {}
        self._changed = threading.Condition()

    def start(self) -> None:
        """Watch the leases in a thread."""
        threading.Thread(target=self._watch, daemon=True).start()

    def put(self, key: str, data: bytes) -> None:
        """Keep a piece; its lease begins."""
        with self._changed:
            self._kept[key] = _Kept(data, time.monotonic() + self._lease_s)
            self._changed.notify_all()

    def get(self, key: str, wait_s: float = 0.0) -> bytes | None:
        """The piece, waited for at most `wait_s` seconds; None when there is none."""
        with self._changed:
            self._changed.wait_for(lambda: key in self._kept, wait_s)
            kept = self._kept.get(key)
        return None if kept is None else kept.data

    def drop(self, key: str) -> None:
        """Its decode has it."""
        with self._changed:
            self._kept.pop(key, None)
            self._changed.notify_all()

    def _watch(self) -> None:
        while True:
            with self._changed:
                soonest = min((k.until for k in self._kept.values()), default=None)
                self._changed.wait(
                    None if soonest is None else max(0.0, soonest - time.monotonic())
                )
                now = time.monotonic()
                over = [r for r, k in self._kept.items() if k.until <= now]
                for key in over:
                    del self._kept[key]
            for key in over:
                self._expired(key)
