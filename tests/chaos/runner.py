"""Random wishes and faults on living groups; after each quiet period, what must be true at last.

The seed decides every choice; when each of them bites is up to the machine.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx

from backend.client.http import BackendGone
from backend.domain.errors import PdError
from backend.domain.views import GroupView, MemberView
from pdtui.cli.demo import chat
from tests.live.lab import Lab, deployment
from tests.live.watch import pairs, starts_at

PATIENCE = {
    "PDTUI_START_LIMIT_S": "8", "PDTUI_HANG_LIMIT_S": "5", "PDTUI_DRAIN_CAP_S": "8",
    "PDTUI_FIRST_ROUTER_WAIT_S": "5", "PDTUI_PLACEMENT_RETRY_S": "1",
}  # fmt: skip
"""Timers of the backend under chaos: what takes minutes in earnest takes seconds here."""
QUIET_S = 150.0
MODES = {"one": "vllm-nixl", "two": "vllm-mooncake"}
PLAN = [{"name": f"node{n}", "accelerators": 3} for n in range(1, 4)]
ACCELERATORS = sum(int(host["accelerators"]) for host in PLAN)


class Chaos:
    """One run in a laboratory whose hosts are up. `story` is what was done, for a failing run."""

    def __init__(self, lab: Lab, seed: int, say: Callable[[str], None] = lambda _: None) -> None:
        self.lab, self.rng, self._say = lab, random.Random(seed), say
        self.story: list[str] = []
        self.quiet = 0
        self._strangers: list[socket.socket] = []
        self._away: set[str] = set()
        self._acts: list[tuple[int, Callable[[], Awaitable[str]]]] = [
            (8, self._save), (10, self._scale), (4, self._restart), (4, self._delete_instance),
            (1, self._pause), (1, self._delete), (10, self._kill_member), (5, self._kill_router),
            (5, self._kill_backend), (5, self._refuse), (4, self._drop), (6, self._back),
            (3, self._fence),
            (4, self._slow_stop), (4, self._hang), (3, self._wedge_port), (2, self._wedge_start),
        ]  # fmt: skip

    async def run(self, steps: int, every: int = 10) -> None:
        """`steps` acts, with a quiet period after each `every` of them and at the end.

        Raises AssertionError with the story when something does not hold.
        """
        self.lab.env |= PATIENCE
        await self.lab.add_hosts()
        try:
            for name in MODES:
                await self._ask(lambda c, n=name: c.apply(self._document(n)))
            for step in range(1, steps + 1):
                await self._step(step)
                if step % every == 0 or step == steps:
                    await self.settle()
        except (AssertionError, TimeoutError, PdError) as error:
            told = "\n".join([*self.story[-40:], self.lab.told()])
            raise AssertionError(f"{error}\n{told}") from error
        finally:
            self._leave()

    async def _step(self, step: int) -> None:
        weights = [w for w, _ in self._acts]
        ((_, act),) = self.rng.choices(self._acts, weights)
        pause = self.rng.choice([0.0, 0.1, 0.5, 1.5, 3.0])
        self._tell(f"{step}: {await act()}, then {pause} s")
        self.lab.watch.check()
        await asyncio.sleep(pause)

    def _tell(self, line: str) -> None:
        self.story.append(line)
        self._say(line)

    # wishes

    async def _ask(self, question: Callable[[Any], Any]) -> str:
        """What a person asks; a refusal is an answer too, and so is a backend that just died."""
        try:
            await self.lab.asked(question)
        except BackendGone:
            raise
        except PdError as error:
            return f"refused ({error.problem.rule})"
        return "granted"

    def _document(self, name: str) -> dict[str, Any]:
        length = self.rng.choice(["8192", "4096"])
        return deployment(
            self.lab.model, name, mode=MODES[name], prefill=self.rng.randint(1, 2),
            decode=self.rng.randint(1, 2), parameters=("--max-model-len", length),
        )  # fmt: skip

    def _name(self) -> str:
        return self.rng.choice(sorted(MODES))

    async def _save(self) -> str:
        name = self._name()
        document = self._document(name)
        return f"save {name}: {await self._ask(lambda c: c.apply(document))}"

    async def _scale(self) -> str:
        name, counts = (
            self._name(),
            {self.rng.choice(["prefill", "decode"]): self.rng.randint(1, 3)},
        )
        return f"scale {name} {counts}: {await self._ask(lambda c: c.scale(name, counts))}"

    async def _restart(self) -> str:
        name, force = self._name(), self._force()
        said = await self._ask(lambda c: c.restart(name, force=force))
        return f"restart {name} force={force}: {said}"

    async def _pause(self) -> str:
        name = self._name()
        force = self._force()
        off = await self._ask(lambda c: c.pause(name, True, force=force))
        await asyncio.sleep(self.rng.choice([0.0, 1.0]))
        on = await self._ask(lambda c: c.pause(name, False))
        return f"pause force={force} and resume {name}: {off}, {on}"

    def _force(self) -> bool:
        return self.rng.random() < 0.4

    async def _delete(self) -> str:
        name = self._name()
        force = self._force()
        said = await self._ask(lambda c: c.delete(name, force=force))
        return f"delete {name} force={force}: {said}"

    async def _delete_instance(self) -> str:
        found = await self._members()
        if not found:
            return "nothing to take out"
        m = self.rng.choice(found)
        group, force = m.id.partition("-")[0], self._force()
        said = await self._ask(lambda c: c.delete_instance(group, m.id, force=force))
        return f"take {m.id} out force={force}: {said}"

    async def _fence(self) -> str:
        host = self.rng.choice(sorted(self._away) or [self._host()])
        return f"fence {host}: {await self._ask(lambda c: c.fence_host(host))}"

    async def _groups(self) -> tuple[GroupView, ...]:
        found: tuple[GroupView, ...] = await self.lab.asked(lambda c: c.groups())
        return found

    async def _members(self) -> list[MemberView]:
        return [m for g in await self._groups() for m in g.members]

    # faults

    def _kill(self, role: str) -> str:
        alive = [
            f
            for f in self.lab.watch.see()
            if f.alive and (f.role == "router") == (role == "router")
        ]
        if not alive:
            return f"no {role} lives"
        victim = self.rng.choice(alive)
        with suppress(ProcessLookupError):
            os.kill(victim.alive[-1][1], signal.SIGKILL)
        return f"kill -9 {victim.instance}"

    async def _kill_member(self) -> str:
        return self._kill("member")

    async def _kill_router(self) -> str:
        return self._kill("router")

    async def _kill_backend(self) -> str:
        await self.lab.kill_backend()
        return "kill -9 the backend"

    def _host(self) -> str:
        return str(self.rng.choice(self.lab.inventory)["name"])

    async def _refuse(self) -> str:
        host = self._host()
        await self.lab.order(host, faults={self.rng.choice(["refuse", "mute"]): True})
        await self.lab.order(host, drop=True)
        self._away.add(host)
        return f"{host} is lost"

    async def _drop(self) -> str:
        host, at = self._host(), self.rng.choice(["start", "output", "exit"])
        await self.lab.order(host, faults={"drop_at": at, "drops": self.rng.randint(1, 3)})
        if self.rng.random() < 0.5:
            await self.lab.order(host, drop=True)
        return f"{host} loses connections at {at}"

    async def _back(self) -> str:
        for host in sorted(self._away):
            await self.lab.order(host, faults={"refuse": False, "mute": False})
        said = f"back: {sorted(self._away)}"
        self._away.clear()
        return said

    async def _sim(self, **switches: Any) -> str:
        """Switches of one living engine."""
        alive = [f for f in self.lab.watch.see() if f.alive and f.role in ("prefill", "decode")]
        if not alive:
            return "no engine lives"
        victim = self.rng.choice(alive)
        try:
            async with httpx.AsyncClient(trust_env=False, timeout=2) as http:
                await http.post(f"{victim.url}/sim", json=switches)
        except httpx.HTTPError:
            return f"{victim.instance} does not listen"
        return f"{victim.instance} {switches}"

    async def _slow_stop(self) -> str:
        return await self._sim(slow_stop=self.rng.choice([3.0, 20.0]))

    async def _hang(self) -> str:
        return await self._sim(unhealthy=True)

    async def _wedge_port(self) -> str:
        """A stranger takes a side-channel port the moment its member is dead."""
        found = [m for m in await self._members() if m.bands and m.pid and m.role != "router"]
        if not found:
            return "no band to take"
        m = self.rng.choice(found)
        with suppress(ProcessLookupError):
            os.kill(m.pid, signal.SIGKILL)
        stranger = socket.socket()
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        for _ in range(200):
            try:
                stranger.bind((m.address, m.bands[0].base))
                stranger.listen()
            except OSError:
                await asyncio.sleep(0.005)
            else:
                self._strangers.append(stranger)
                return f"a stranger listens on {m.bands[0].base}, where {m.id} was"
        stranger.close()
        return f"kill -9 {m.id}; its port was not free"

    async def _wedge_start(self) -> str:
        host = self._host()
        await self.lab.order(host, engine={"start_delay": 600.0})
        return f"engines that start on {host} never serve"

    def _leave(self) -> None:
        while self._strangers:
            self._strangers.pop().close()

    # what holds at last

    async def settle(self) -> None:
        """No more faults; what waits for a person is done; then every promise is looked at."""
        self._leave()
        for host in self.lab.inventory:
            off = {"refuse": False, "mute": False, "drop_at": "", "drops": 0}
            await self.lab.order(host["name"], faults=off)
            await self.lab.order(host["name"], engine={})
        self._away.clear()
        last = ""
        try:
            async with asyncio.timeout(QUIET_S):
                while now := await self._wrong():
                    if now != last:
                        self._tell(f"  not yet: {now[:300]}")
                    last = now
                    self.lab.watch.check()
                    await asyncio.sleep(0.25)
        except TimeoutError:
            groups = "\n".join(str(g) for g in await self._groups())
            raise AssertionError(f"never came to rest: {last}\n{groups}") from None
        self.lab.watch.check()
        for group in await self._groups():
            await chat(group)
        self.quiet += 1
        self._tell(f"quiet {self.quiet}: all is as it should be")

    async def _wrong(self) -> str:
        """The first thing that is not yet as it should be; empty when there is none."""
        groups = {g.name: g for g in await self._groups()}
        for name in MODES:
            if name not in groups:
                await self._ask(lambda c, n=name: c.apply(self._document(n)))
                return f"{name} is gone"
            g = groups[name]
            looping = any(m.state == "crash_loop" for m in g.members)
            if (g.config_changed or looping) and g.phase is None and not g.deleting:
                self._tell(f"restart {name}: {await self._ask(lambda c, n=name: c.restart(n))}")
                return f"{name} was to be restarted"
            if said := unsettled(g):
                await self._lower(groups)
                return f"{name}: {said}"
        members = [m for g in groups.values() for m in g.members]
        listed = sorted((m.id, m.generation, m.pid) for m in members)
        living = sorted((p.instance, p.generation, p.pid) for p in self.lab.living())
        if living != listed:
            return f"living {living}, listed {listed}"
        if self.lab.directories() != {m.id for m in members}:
            return f"directories {self.lab.directories() ^ {m.id for m in members}}"
        if strays := self.strays():
            return f"processes that nobody knows: {strays}"
        held = {
            a.held_by for h in await self.lab.asked(lambda c: c.hosts()) for a in h.accelerators
        }
        leaked = held - {""} - {m.id for m in members}
        return f"accelerators held by {leaked}" if leaked else ""

    async def _lower(self, groups: Mapping[str, GroupView]) -> None:
        """Want one member fewer where the wishes of all groups exceed the accelerators."""
        counts = [
            (count.wanted, name, role)
            for name, g in groups.items()
            for role, count in g.roles.items()
            if role != "router"
        ]
        if sum(wanted for wanted, _, _ in counts) > ACCELERATORS:
            wanted, name, role = max(counts)
            said = await self._ask(lambda c: c.scale(name, {role: wanted - 1}))
            self._tell(f"too many are wanted: scale {name} {role} to {wanted - 1}: {said}")

    def strays(self) -> list[str]:
        """Processes that an instance started and that are in the session of no living one."""
        known = set()
        for run in self.lab.root.glob("sandbox/hosts/*/*/instances/*/g*/run"):
            facts = pairs(run.read_text())
            if starts_at(int(facts["pid"])) == int(facts["start"]):
                known |= {int(facts["pid"]), int(facts["sup"])}
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                if "PDTUI_INSTANCE=" not in (stat.parent / "environ").read_text(errors="replace"):
                    continue
                if str(self.lab.root) not in os.readlink(stat.parent / "cwd"):
                    continue
                fields = stat.read_text().rpartition(")")[2].split()
                if fields[0] != "Z" and int(fields[3]) not in known:
                    found.append(
                        f"{stat.parent.name} ({(stat.parent / 'comm').read_text().strip()})"
                    )
        return found


def unsettled(g: GroupView) -> str:
    """Why a group is not at rest; empty when it is."""
    if g.status != "Running" or g.phase is not None or g.deleting or g.endpoint is None:
        return f"{g.status}, {g.phase}, {[m.text for m in g.marks]}"
    for role, count in g.roles.items():
        if not count.wanted == count.ready == count.present:
            return f"{role} {count}"
    revisions = {m.revision for m in g.members}
    if len(revisions) != 1:
        return f"revisions {revisions}"
    lost = [m.id for m in g.members if m.state != "ready" or m.in_router is False]
    return f"not ready or not in the router: {lost}" if lost else ""
