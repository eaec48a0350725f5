"""One loop per group: see, decide, act; the only writer of observed state."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine

from backend.domain import acts, status
from backend.domain.decide import Action, Picture, decide
from backend.domain.diagnosis.model import why_ended
from backend.domain.errors import HostError, PdError, TimedOut
from backend.domain.group import Group, Instance
from backend.domain.mode import Mode, membership
from backend.domain.peers import peers_intent
from backend.domain.recipes import pinned_mode
from backend.domain.telling import problem, said
from backend.domain.transitions import Seen, observe
from backend.reconcile import crash, living, placing
from backend.reconcile.living import because
from backend.reconcile.membership import register, sync_peers
from backend.reconcile.world import World
from backend.redaction import PROCESS

log = logging.getLogger(__name__)

LOOK_AGAIN_S = 5.0
"""The longest a loop sleeps; everything that matters wakes it before."""
RETRY_S = (1.0, 2.0, 4.0, 8.0, 15.0)
STEPS = {"stop router": "restart.router", "stop members": "restart.members"}
PLACING = ("form", "add", "create_router")
TOLD = {
    "ready": "info", "unhealthy": "warning", "exited": "error", "crash_loop": "error",
    "unreachable": "warning",
}  # fmt: skip
"""States whose beginning is told, and how loudly."""


class GroupLoop:
    """Keeps one group as its document wants it."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        self._wake = asyncio.Event()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._retry_at: dict[str, float] = {}
        self._failures: dict[str, int] = {}

    def hint(self) -> None:
        """Look now: something changed."""
        self._wake.set()

    async def run(self) -> None:
        """See, decide and act until the group is forgotten; then end what is still under way."""
        try:
            while self.name in self.world.store.groups:
                self._wake.clear()
                pause = await self._turn()
                try:
                    async with asyncio.timeout(pause):
                        await self._wake.wait()
                except TimeoutError:
                    continue
        finally:
            tasks = list(self._running.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._watch()

    def picture(self) -> Picture | None:
        """The group as `decide` and the views see it; None once it is forgotten."""
        group = self.world.store.groups.get(self.name)
        if group is None:
            return None
        instances = self.world.store.of_group(self.name)
        spec = (group.formed.document if group.formed else group.document).spec
        asked, gone = self._asked(group)
        mode = pinned_mode(group) if group.formed else asked
        idle = {
            i.id: since
            for i in instances
            if (since := self.world.health.probes(i.id).idle_since) is not None
        }
        return Picture(
            group=group,
            instances=instances,
            membership=membership(mode, spec),
            registry=self.world.registry.registry(self.name),
            idle_since=idle,
            retry_at=self._retry_at,
            now=self.world.clock(),
            timers=self.world.timers,
            began=self.world.began,
            mode_gone=gone,
            telling=any(
                peers_intent(i) in self.world.store.intents for i in instances if i.role == "router"
            ),
        )

    def _asked(self, group: Group) -> tuple[Mode | None, str]:
        """The mode that the saved document asks for, or the name of one the catalogue lost."""
        spec = group.document.spec
        try:
            return self.world.catalogue().mode_of(spec), ""
        except PdError:
            return None, spec.disaggregation.mode if spec.disaggregation else spec.engine

    async def _turn(self) -> float:
        try:
            await self._see()
            picture = self.picture()
            if picture is None:
                return LOOK_AGAIN_S
            await self._finish_restart(picture)
            decision = decide(picture)
            for action in decision.actions:
                if action.key not in self._running:
                    self._begin(action)
        except Exception:
            log.exception("the loop of %s failed; it goes on", self.name)
            return RETRY_S[0]
        if decision.wake_at is None:
            return LOOK_AGAIN_S
        return min(max(decision.wake_at - self.world.clock(), 0.02), LOOK_AGAIN_S)

    async def _see(self) -> None:
        """Write down the state of every instance as the watches saw it."""
        w, ended = self.world, []
        async with w.store.lock(self.name), w.store.write() as tx:
            for before in w.store.of_group(self.name):
                after = observe(before, self._seen(before), w.clock())
                if after is before:
                    continue
                tx.put_instance(after)
                if after.state != before.state and after.state in TOLD:
                    self._tell(tx, after)
                if after.state != before.state and after.state in ("exited", "crash_loop"):
                    ended.append(after)
        for instance in ended:
            self._spawn(f"explain {instance.id}", self._explain(instance))
        self._watch()

    def _watch(self) -> None:
        """Have what there is of the group watched, and nothing that is gone."""
        for watch in (self.world.health, self.world.registry, self.world.metrics):
            watch.sync(self.name)

    def _tell(self, tx, after: Instance) -> None:  # type: ignore[no-untyped-def]
        line = said(after.state, instance=after.id, host=after.host, why=because(after.note))
        tx.tell(after.state, after, line, level=TOLD[after.state])

    def _seen(self, instance: Instance) -> Seen:
        sight = self.world.hosts.sight(instance.host)
        probes = self.world.health.probes(instance.id)
        return Seen(
            host_up=sight.up,
            process=sight.statuses.get(instance.id),
            generation=probes.generation,
            healthy_streak=probes.healthy,
            failed_streak=probes.failed,
            problem=probes.problem,
        )

    async def _finish_restart(self, p: Picture) -> None:
        restart = p.group.restart
        if restart is None or not status.restart_done(p):
            return
        w = self.world
        async with w.store.lock(self.name), w.store.write() as tx:
            group = w.store.groups[self.name]
            tx.put_group(group.model_copy(update={"restart": None}))
            took = w.clock() - restart.since
            line = said("restarted", name=self.name, seconds=f"{took:.1f}")
            tx.event("restarted", line, group=self.name)

    def _begin(self, action: Action) -> None:
        self._spawn(action.key, self._do(action))

    def _spawn(self, key: str, work: Coroutine[None, None, None]) -> None:
        """Run `work` beside the others, under a key that nothing else runs by meanwhile."""
        task = asyncio.create_task(work, name=f"{self.name}: {key}")
        self._running[key] = task
        task.add_done_callback(lambda _: self._ended(key))

    def _ended(self, key: str) -> None:
        self._running.pop(key, None)
        self._wake.set()

    async def _explain(self, ended: Instance) -> None:
        """Add what an ended program's own log says to its note, and to the history."""
        w = self.world
        found = await w.logs.instance(ended)
        if found.unread:
            log.info("the log of %s could not be read: %s", ended.id, found.unread)
        words = why_ended(found, await w.logs.before(ended) if ended.failures > 1 else ())
        if not words:
            return
        about = {"group": self.name, "instance": ended.id, "host": ended.host, "level": "error"}
        async with w.store.lock(self.name), w.store.write() as tx:
            tx.event("diagnosis", said("diagnosis", instance=ended.id, words=words), **about)
            fresh = w.store.instances.get(ended.id)
            if fresh is not None and (fresh.state, fresh.note) == (ended.state, ended.note):
                note = f"{ended.note}: {words}" if ended.note else words
                tx.put_instance(fresh.model_copy(update={"note": note}))

    async def _do(self, action: Action) -> None:
        try:
            await self._act(action)
        except PdError as error:
            await self._failed(action, error)
        except Exception as error:
            log.exception("%s of %s failed", action.kind, action.key)
            await self._failed(action, PdError.of("internal", f"{type(error).__name__}: {error}"))
        else:
            await self._worked(action)

    async def _act(self, a: Action) -> None:
        w, name = self.world, self.name
        by_instance: dict[str, Callable[[World, str], Awaitable[None]]] = {
            "start": living.start,
            "respawn": living.respawn,
            "kill": living.kill,
            "replace": living.replace_router,
            "drain": living.drain,
            "stop": living.stop,
            "sync_peers": sync_peers,
            "register": register,
        }
        if a.kind in by_instance:
            if a.instance in w.store.instances:
                await by_instance[a.kind](w, a.instance)
            if a.kind in ("start", "stop", "replace"):
                self.world.hosts.sync()
        elif a.kind == "form":
            await placing.form(w, name)
        elif a.kind == "add":
            await placing.add(w, name, a.role, a.count)
        elif a.kind == "create_router":
            await placing.create_router(w, name)
        else:
            await self._write(a)

    async def _write(self, a: Action) -> None:
        """Actions that only change what is stored."""
        w, name = self.world, self.name
        async with w.store.lock(name), w.store.write() as tx:
            group = w.store.groups.get(name)
            if group is None:
                return
            if a.kind == "unregister":
                tx.put_group(group.model_copy(update={"endpoint": None}))
                line = said("unregistered", name=name)
                tx.event("unregistered", line, group=name, level="warning")
            elif a.kind == "restart_step" and group.restart is not None:
                restart = group.restart.model_copy(update={"step": a.detail})
                tx.put_group(group.model_copy(update={"restart": restart}))
                tx.event("restart", said(STEPS[a.detail], name=name), group=name)
            elif w.store.of_group(name):
                return  # something came meanwhile: it ends first
            elif a.kind == "reform":
                self._reform(tx, group)
            elif a.kind == "forget":
                tx.drop_group(name)
                tx.event("deleted", said("deleted", name=name), group=name)
        crash.reached(f"written:{a.kind}:{a.detail}:{name}")

    def _reform(self, tx, group: Group) -> None:  # type: ignore[no-untyped-def]
        tx.put_group(acts.reformed(group))
        if group.restart is not None:
            tx.event("restart", said("restart.start", name=group.name), group=group.name)
        else:
            tx.event("stopped", said("stopped", name=group.name), group=group.name)

    async def _failed(self, a: Action, error: PdError) -> None:
        """Remember when to try again, and show why on the panel."""
        key = a.retry_key
        times = self._failures[key] = self._failures.get(key, 0) + 1
        pause = RETRY_S[min(times, len(RETRY_S)) - 1]
        if a.kind in PLACING:
            pause = self.world.timers.placement_retry_s
        self._retry_at[key] = self.world.clock() + pause
        if isinstance(error, HostError | TimedOut) and (host := error.problem.values.get("host")):
            self.world.hosts.hint(str(host))
        log.info("%s of %s: %s", a.kind, a.key, error)
        note = PROCESS.hide_values(error.problem.sentence())
        w = self.world
        async with w.store.lock(self.name), w.store.write() as tx:
            group, instance = w.store.groups.get(self.name), w.store.instances.get(a.instance)
            if group is None:
                return
            old = instance.note if instance else group.placement_note
            if a.kind in ("sync_peers", "register") and instance and instance.state != "ready":
                return  # the router itself has ended: that is what its note says
            if instance is not None:
                tx.put_instance(instance.model_copy(update={"note": note}))
            elif a.kind in PLACING:
                tx.put_group(group.model_copy(update={"placement_note": note}))
            if old != note:
                about = {"instance": instance.id, "host": instance.host} if instance else {}
                line = problem(error.problem)
                tx.event(f"{a.kind}_failed", line, group=self.name, level="warning", **about)

    async def _worked(self, a: Action) -> None:
        key = a.retry_key
        self._failures.pop(key, None)
        self._retry_at.pop(key, None)
        if a.kind == "sync_peers":
            await self._clear_note(a.instance)

    async def _clear_note(self, key: str) -> None:
        w = self.world
        async with w.store.lock(self.name), w.store.write() as tx:
            instance = w.store.instances.get(key)
            if instance is not None and instance.note:
                tx.put_instance(instance.model_copy(update={"note": ""}))
