"""Hosts, processes, routers and a clock in memory: what `decide`'s actions act on, with every delay
and loss a real backend meets.

Each action is a generator that yields wherever the real one waits, so that a walk may interleave
them, fail them, or drop them there as a killed backend does. Rows change only through
`backend.domain.acts` and `desired`, which the real loops use too.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterable
from dataclasses import replace
from typing import Literal

from backend.domain import acts, desired, status
from backend.domain.decide import (
    Action,
    Picture,
    Timers,
    decide,
    roles_of,
    wanted_counts,
)
from backend.domain.deployment import Deployment
from backend.domain.errors import Refused
from backend.domain.group import Formed, Group, Instance
from backend.domain.instance import ProcessStatus
from backend.domain.peers import Registry, peers_wanted, registered_by, registry_agrees
from backend.domain.placement import Seat, place, place_most
from backend.domain.transitions import Seen, observe
from tests.unit.domain.machines import Failed, Ground, need, seen_status

Membership = Literal["dynamic", "restart", "manual", "none"]
Act = Generator[None, None, None]
RETRY_S = (1.0, 2.0, 4.0, 8.0, 15.0)
PLACING = ("form", "add", "create_router")


class World(Ground):
    """Everything there is, stored and real, and the acts between the two."""

    def __init__(self, rng: random.Random, hosts: int = 3, chips: int = 4) -> None:
        super().__init__(rng, hosts, chips)
        self.groups: dict[str, Group] = {}
        self.modes: dict[str, Membership] = {}
        self.placing_intents: dict[int, list[tuple[str, str]]] = {}
        self.start_intents: dict[str, tuple[str, int]] = {}
        self.read: dict[str, Registry] = {}
        self.running: dict[tuple[str, str], tuple[Action, Act]] = {}
        self.retry_at: dict[str, dict[str, float]] = {}
        self.failures: dict[tuple[str, str], int] = {}
        self.streak: dict[tuple[str, int], tuple[int, int]] = {}
        self.number = 0

    # what is there

    def of_group(self, name: str) -> list[Instance]:
        return sorted((i for i in self.instances.values() if i.group == name), key=lambda i: i.id)

    def picture(self, name: str) -> Picture:
        mine = self.of_group(name)
        idle = {i.id: i.since + 0.5 for i in mine if i.state == "draining" and self.now > i.since}
        return Picture(
            self.groups[name],
            mine,
            self.modes[name],
            registry=self.read.get(name, Registry()),
            idle_since=idle,
            retry_at=self.retry_at.get(name, {}),
            now=self.now,
            timers=Timers(start_limit_s=40.0, hang_limit_s=20.0),
        )

    # the loop

    def turn(self, name: str) -> float | None:
        """See, decide and begin; when to look again."""
        for before in self.of_group(name):
            after = observe(before, self._seen(before), self.now)
            self.instances[before.id] = after
        p = self.picture(name)
        if status.restart_done(p):
            self.groups[name] = p.group.model_copy(update={"restart": None})
            p = self.picture(name)
        decision = decide(p)
        for action in decision.actions:
            assert not action.instance or action.instance in self.instances, action
            assert not (action.kind == "add" and p.group.stale), "a member is added while stale"
            at = (name, action.key)
            if at not in self.running:
                self.running[at] = (action, self._act(name, action))
        if p.group.endpoint is not None and p.membership != "none":
            stands = registered_by(p.group, p.router) or (name, "unregister") in self.running
            assert stands, f"{name} answers through a router that does not serve"
        return decision.wake_at

    def _seen(self, i: Instance) -> Seen:
        m, process = self.machines[i.host], self.process(i)
        if not m.up:
            return Seen(host_up=False)
        if process is None:
            absent = ProcessStatus(instance=i.id, state="absent", generation=i.generation)
            return Seen(host_up=True, process=absent if i.process is not None else None)
        good, bad = self.streak.get((i.id, process.generation), (0, 0))
        if process.alive and i.state in ("starting", "ready", "unhealthy"):
            healthy = self.now >= process.ready_at
            good, bad = (good + 1, 0) if healthy else (0, bad + 1)
            self.streak[(i.id, process.generation)] = good, bad
        said = seen_status(i.id, process)
        return Seen(True, said, process.generation, good, bad, "refused" if bad else "")

    def advance(self, at: tuple[str, str]) -> None:
        """Let one act under way go on to its next wait."""
        action, act = self.running[at]
        name = at[0]
        try:
            next(act)
        except StopIteration:
            del self.running[at]
            self.retry_at.setdefault(name, {}).pop(action.retry_key, None)
            self.failures.pop((name, action.retry_key), None)
        except (Failed, Refused) as error:
            del self.running[at]
            self._failed(name, action, str(error))
        if name not in self.groups:
            for other in [k for k in self.running if k[0] == name]:
                self.running.pop(other)[1].close()

    def _failed(self, name: str, action: Action, note: str) -> None:
        times = self.failures[(name, action.retry_key)] = (
            self.failures.get((name, action.retry_key), 0) + 1
        )
        pause = 5.0 if action.kind in PLACING else RETRY_S[min(times, len(RETRY_S)) - 1]
        self.retry_at.setdefault(name, {})[action.retry_key] = self.now + pause
        if action.instance in self.instances:
            self.instances[action.instance] = self.instances[action.instance].model_copy(
                update={"note": note}
            )
        elif action.kind in PLACING and name in self.groups:
            self.groups[name] = self.groups[name].model_copy(update={"placement_note": note})

    def die(self) -> None:
        """The backend is killed and started again: what was under way is lost where it stood."""
        self.running.clear()
        self.retry_at.clear()
        self.failures.clear()
        self.streak.clear()
        self.read.clear()
        self.reserved.clear()
        for places in self.placing_intents.values():
            self._release(p for p in places if p[1] not in self.instances)
        self.placing_intents.clear()
        for key, (host, _) in list(self.start_intents.items()):
            known = self.instances.get(key)
            if known is None or known.state != "pending":
                del self.start_intents[key]
            if known is None:
                self._release([(host, key)])

    def _release(self, places: Iterable[tuple[str, str]]) -> None:
        self.releases |= {key: host for host, key in places}

    def janitor(self) -> None:
        """Let go of what is in no row any more, on the hosts that answer."""
        for key, host in list(self.releases.items()):
            m = self.machines[host]
            if key in self.instances:
                del self.releases[key]
            elif m.up:
                self._kill(m, key)
                m.processes.pop(key, None)
                m.claims.pop(key, None)
                del self.releases[key]

    def read_registry(self, name: str) -> None:
        """What the registry watch does on its interval."""
        router = next((i for i in self.of_group(name) if i.role == "router"), None)
        if router is None or router.state != "ready":
            self.read.pop(name, None)
            return
        process = self.process(router)
        reach = process is not None and process.alive and self.machines[router.host].up
        if process is None or not reach or self.now < process.ready_at:
            self.read[name] = Registry(generation=router.generation)
            return
        peers = {url: r.role for url, r in process.peers.items()}
        self.read[name] = Registry(peers, router.generation)

    # the acts

    def _act(self, name: str, a: Action) -> Act:
        by_instance: dict[str, Callable[[str, str], Act]] = {
            "start": self._start, "stop": self._stop, "replace": self._replace,
            "sync_peers": self._sync, "register": self._register,
            "respawn": self._respawn, "drain": self._drain, "kill": self._end_wedged,
        }  # fmt: skip
        yield
        if a.kind in by_instance:
            if a.instance in self.instances:
                yield from by_instance[a.kind](name, a.instance)
        elif a.kind in PLACING:
            yield from self._place(name, a)
        else:
            self._write(name, a)

    def _write(self, name: str, a: Action) -> None:
        group = self.groups.get(name)
        if group is None:
            return
        if a.kind == "unregister":
            self.groups[name] = group.model_copy(update={"endpoint": None})
        elif a.kind == "restart_step" and group.restart is not None:
            step = group.restart.model_copy(update={"step": a.detail})
            self.groups[name] = group.model_copy(update={"restart": step})
        elif self.of_group(name):
            return
        elif a.kind == "reform":
            self.groups[name] = acts.reformed(group)
        elif a.kind == "forget":
            del self.groups[name]

    def _place(self, name: str, a: Action) -> Act:
        group = self.groups.get(name)
        if group is None or (a.kind != "form" and group.formed is None):
            return
        self.number += 1
        key = self.number
        what = group.formed or Formed(revision=group.revision, document=group.document)
        members = [self._row(group, seat, what.revision) for seat in self._seats(group, a)]
        self.reserved |= {m.id: m for m in members}
        try:
            yield
            self.placing_intents[key] = [(m.host, m.id) for m in members]
            yield
            for m in members:
                self._claim(m)
                yield
            self._confirm(name, a, key, what, members)
        except BaseException:
            if key in self.placing_intents:
                self._release(self.placing_intents.pop(key))
            raise
        finally:
            for m in members:
                self.reserved.pop(m.id, None)

    def _seats(self, group: Group, a: Action) -> tuple[Seat, ...]:
        rooms = self.rooms()
        if a.kind == "form":
            counts = wanted_counts(group)
            return place(rooms, [need(group.document, r, counts[r]) for r in roles_of(group)])
        assert group.formed is not None
        if a.kind == "add":
            return place_most(rooms, need(group.formed.document, a.role, a.count))
        wanted = need(group.formed.document, "router", 1)
        host, bands = group.router_home or ("", ())
        return place(rooms, [replace(wanted, wished=bands, wished_host=host)])

    def _row(self, group: Group, seat: Seat, revision: str) -> Instance:
        self.number += 1
        return Instance(
            id=f"{group.name}-{seat.role}-{self.number}",
            group=group.name,
            role=seat.role,
            host=seat.host,
            revision=revision,
            accelerators=seat.accelerators,
            accelerator_type=seat.accelerator_type,
            address=seat.address,
            bands=seat.bands,
            since=self.now,
        )

    def _confirm(
        self, name: str, a: Action, key: int, what: Formed, members: list[Instance]
    ) -> None:
        fresh = self.groups.get(name)
        row = acts.formed(fresh, what) if a.kind == "form" else acts.joined(fresh, what.revision)
        places = self.placing_intents.pop(key)
        if row is None:
            self._release(places)
            return
        if a.kind == "create_router":
            row = row.model_copy(update={"router_home": (members[0].host, members[0].bands)})
        self.groups[name] = row
        self.instances |= {m.id: m for m in members}

    def _start(self, name: str, key: str) -> Act:
        i = self.instances[key]
        if i.role == "router":
            wanted = peers_wanted(self.of_group(name), i)
            if {r.role for r in wanted} != {"prefill", "decode"}:
                raise Failed("no member of a role is ready any more")
            i = acts.router_started(
                i, self.start_intents.get(key) == (i.host, i.generation), wanted
            )
            self.instances[key] = i
        self.start_intents[key] = (i.host, i.generation)
        yield
        m = self._reach(i.host)
        process = m.processes.get(key)
        if i.generation > 1 and process is not None and process.generation < i.generation:
            self._kill(m, key)
        yield
        m = self._reach(i.host)
        process = m.processes.get(key)
        if process is None or process.generation != i.generation:
            process = self._spawn(m, i)
        yield
        self.start_intents.pop(key, None)
        fresh = self.instances.get(key)
        if fresh is None:
            self._release([(i.host, key)])
            return
        row = acts.started(fresh, i.generation, seen_status(key, process), self.now)
        self.instances[key] = row or fresh

    def _end_wedged(self, name: str, key: str) -> Act:
        i = self.instances[key]
        yield
        self._kill(self._reach(i.host), key)

    def _stop(self, name: str, key: str) -> Act:
        i = self.instances[key]
        self.instances[key] = acts.stopping(i, self.now)
        yield
        self._kill(self._reach(i.host), key)
        yield
        m = self._reach(i.host)
        m.processes.pop(key, None)
        m.claims.pop(key, None)
        yield
        self.instances.pop(key, None)

    def _replace(self, name: str, key: str) -> Act:
        i = self.instances[key]
        yield
        self._kill(self._reach(i.host), key)
        yield
        fresh = self.instances.get(key)
        row = fresh and acts.replaced(fresh, i.generation, self.now)
        if row is not None:
            self.groups[name] = self.groups[name].model_copy(update={"endpoint": None})
            self.instances[key] = row

    def _respawn(self, name: str, key: str) -> Act:
        row = acts.respawned(self.instances[key], self.now)
        self.instances[key] = row or self.instances[key]
        yield

    def _drain(self, name: str, key: str) -> Act:
        row = acts.draining(self.instances[key], self.now)
        self.instances[key] = row or self.instances[key]
        yield

    def _sync(self, name: str, key: str) -> Act:
        router = self.instances[key]
        wanted = {r.url: r for r in peers_wanted(self.of_group(name), router)}
        listed = dict(self.read.get(name, Registry()).peers or {})
        for url, record in wanted.items():
            if listed.get(url) != record.role:
                yield
                self._router_process(router).peers[url] = record
        for url in listed:
            if url not in wanted:
                yield
                self._router_process(router).peers.pop(url, None)
        yield
        self.read_registry(name)
        wanted_now = peers_wanted(self.of_group(name), router)
        if not registry_agrees(self.read.get(name, Registry()), router, wanted_now):
            raise Failed("the registry is not what it should be")

    def _register(self, name: str, key: str) -> Act:
        router = self.instances[key]
        yield
        peers = self._router_process(router).peers
        alive = {f"http://{i.address}:{i.port}" for i in self.instances.values() if self._serves(i)}
        roles = {r.role for url, r in peers.items() if url in alive}
        if roles != {"prefill", "decode"}:
            raise Failed("a first request was not answered")
        yield
        group, fresh = self.groups.get(name), self.instances.get(key)
        if group is not None and fresh is not None:
            row = acts.registered(group, fresh, router.generation)
            self.groups[name] = row or group

    # what a person asks

    def save(self, document: Deployment) -> None:
        revision = " ".join([document.spec.model, *document.spec.parameters])
        revision += f" x{document.spec.accelerators}"
        old = self.groups.get(document.name)
        if old is None or not old.deleting:
            self.groups[document.name] = desired.saved(old, document, revision, self.now)
