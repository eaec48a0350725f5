"""One watching task for each of the things that are watched, and no other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Set


class Watchers:
    """Owns the tasks, by what each watches. `watch(key)` is what a task runs; `what` names it."""

    def __init__(self, what: str, watch: Callable[[str], Coroutine[None, None, None]]) -> None:
        self._what, self._watch = what, watch
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._tasks

    def sync(self, wanted: Set[str]) -> set[str]:
        """Begin the tasks that are wanted and lack; end the others and return their keys."""
        ended = self._tasks.keys() - wanted
        for key in ended:
            self._tasks.pop(key).cancel()
        for key in wanted - self._tasks.keys():
            name = f"{self._what} {key}"
            self._tasks[key] = asyncio.create_task(self._watch(key), name=name)
        return ended

    async def close(self) -> None:
        """End every task."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._tasks.clear()
