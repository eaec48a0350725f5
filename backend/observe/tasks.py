"""One watching task for each of the things that are watched, and no other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Set


class Watchers:
    """Owns the tasks, by what each watches. `watch(key)` is what a task runs; `what` names it.

    Those of one group are kept apart from the others': its change costs no look at all of them.
    """

    def __init__(self, what: str, watch: Callable[[str], Coroutine[None, None, None]]) -> None:
        self._what, self._watch = what, watch
        self._tasks: dict[str, dict[str, asyncio.Task[None]]] = {}

    def __contains__(self, key: str) -> bool:
        return any(key in tasks for tasks in self._tasks.values())

    def sync(self, wanted: Set[str], group: str = "") -> set[str]:
        """Begin the tasks, of a group, that are wanted and lack; end its others and return their
        keys."""
        tasks = self._tasks.setdefault(group, {})
        ended = tasks.keys() - wanted
        for key in ended:
            tasks.pop(key).cancel()
        for key in wanted - tasks.keys():
            name = f"{self._what} {key}"
            tasks[key] = asyncio.create_task(self._watch(key), name=name)
        if not tasks:
            del self._tasks[group]
        return ended

    async def close(self) -> None:
        """End every task."""
        tasks = [task for of_group in self._tasks.values() for task in of_group.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tasks.clear()
