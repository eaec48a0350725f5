"""All group loops, and the janitor that lets go of claims nobody wants any more."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from functools import partial

from backend.domain import acts
from backend.domain.errors import PdError
from backend.reconcile import crash, reserving
from backend.reconcile.loop import GroupLoop
from backend.reconcile.world import World
from backend.store.store import Intent, Touched

log = logging.getLogger(__name__)

JANITOR_S = 5.0
GRACE_S = 5.0


class Reconciler:
    """Owns one `GroupLoop` per group and starts or ends them as groups come and go."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.loops: dict[str, GroupLoop] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._janitor: asyncio.Task[None] | None = None
        self._sweep = asyncio.Event()
        world.release = self._sweep.set

    async def start(self) -> None:
        """Let go of what was half placed when we last died, then begin every loop."""
        await reserving.recover(self.world)
        await self._rebase()
        self.world.store.listeners.append(self._on_touched)
        self.world.hosts.sync()
        self._janitor = asyncio.create_task(self._clean(), name="janitor")
        self._sweep.set()
        self._sync()

    async def _rebase(self) -> None:
        """Bring stored times that lie ahead of the clock back to it."""
        w = self.world
        now = w.clock()
        async with w.store.write() as tx:
            for before in w.store.instances.values():
                after = acts.rebased(before, now)
                if after is not before:
                    tx.put_instance(after)

    async def close(self) -> None:
        """End every loop, and begin none any more; the groups run on."""
        with suppress(ValueError):  # it was never started
            self.world.store.listeners.remove(self._on_touched)
        tasks = [*self._tasks.values(), *([self._janitor] if self._janitor else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def hint(self, group: str) -> None:
        """Have a group's loop look now."""
        if group in self.loops:
            self.loops[group].hint()

    def hint_host(self, host: str) -> None:
        """Have the loops of all groups with an instance on the host look now."""
        for group in {i.group for i in self.world.store.on_host(host)}:
            self.hint(group)

    def _on_touched(self, touched: Touched) -> None:
        self._sync()
        if touched.hosts:
            self.world.hosts.sync()

    def _sync(self) -> None:
        for name in self.world.store.groups:
            if name not in self._tasks:
                loop = self.loops[name] = GroupLoop(self.world, name)
                task = asyncio.create_task(loop.run(), name=f"group {name}")
                self._tasks[name] = task
                task.add_done_callback(partial(self._gone, name))

    def _gone(self, name: str, task: asyncio.Task[None]) -> None:
        if self._tasks.get(name) is task:
            del self._tasks[name]
            self.loops.pop(name, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("the loop of %s ended", name, exc_info=error)
        if not task.cancelled() and name in self.world.store.groups:
            self._sync()  # created again under the same name meanwhile

    async def _clean(self) -> None:
        while True:
            self._sweep.clear()
            waiting = [i for i in self.world.store.intents.values() if i.kind == "release"]
            ends = await asyncio.gather(*map(self._let_go, waiting), return_exceptions=True)
            for intent, end in zip(waiting, ends, strict=True):
                if isinstance(end, Exception):  # the others are let go of all the same
                    log.error("letting go of %s", intent.body["instance"], exc_info=end)
            left = any(i.kind == "release" for i in self.world.store.intents.values())
            try:
                async with asyncio.timeout(JANITOR_S if left else None):
                    await self._sweep.wait()
            except TimeoutError:
                continue

    async def _let_go(self, intent: Intent) -> None:
        """End and remove an instance that is in no store row any more."""
        w, key = self.world, intent.body["instance"]
        host = w.store.hosts.get(intent.body["host"])
        if host is None:
            return  # it is kept for when the host is known again
        if key not in w.store.instances:
            try:
                result = await w.runtime.stop(host, key, GRACE_S)
                if not result.gone:
                    return
                await w.runtime.remove(host, key)
                w.hosts.forget(host.name, key)
            except PdError as error:
                log.info("letting go of %s on %s: %s", key, host.name, error)
                return
        crash.reached(f"effect:release:{key.rpartition('-')[0]}")
        async with w.store.write() as tx:
            tx.close_intent(intent.key)
