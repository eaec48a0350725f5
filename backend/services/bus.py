"""The stream of changes: numbered, kept for a while, handed to every subscriber."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable

from backend.domain.views import Change

KEPT = 4096
QUEUE = 2048


class Bus:
    """Numbers start at the clock's milliseconds, so that they grow across restarts too: a
    subscriber of an earlier life is told to start over rather than shown a gap."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.seq = int(clock() * 1000)
        self._first = self.seq
        self._ring: deque[Change] = deque(maxlen=KEPT)
        self._queues: set[asyncio.Queue[Change | None]] = set()

    def publish(self, kind: str, body: dict[str, object]) -> None:
        """Number a change and hand it on. A subscriber that cannot keep up is dropped: it
        resumes from its last number."""
        self.seq += 1
        change = Change(seq=self.seq, kind=kind, body=body)
        self._ring.append(change)
        for queue in list(self._queues):
            try:
                queue.put_nowait(change)
            except asyncio.QueueFull:
                self._queues.discard(queue)
                while not queue.empty():
                    queue.get_nowait()
                queue.put_nowait(None)

    def resumable(self, since: int) -> bool:
        """Whether every change after `since` is still kept."""
        oldest = self._ring[0].seq - 1 if self._ring else self.seq
        return max(self._first, oldest) <= since <= self.seq

    async def subscribe(self, since: int) -> AsyncIterator[Change]:
        """Changes after `since`, then new ones as they come; ends when the reader fell behind."""
        queue: asyncio.Queue[Change | None] = asyncio.Queue(QUEUE)
        backlog = [c for c in self._ring if c.seq > since]
        self._queues.add(queue)
        try:
            for change in backlog:
                yield change
            while (new := await queue.get()) is not None:
                yield new
        finally:
            self._queues.discard(queue)

    def close(self) -> None:
        """End every subscription."""
        for queue in self._queues:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(None)
        self._queues.clear()
