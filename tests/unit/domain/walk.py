"""A seeded walk over the model: random wishes, faults and delays, and what must hold throughout."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

from backend.domain import acts, desired, status
from backend.domain.decide import roles_of, wanted_counts
from backend.domain.deployment import Deployment
from backend.domain.errors import Refused
from backend.domain.group import Group, Instance, Restart
from backend.domain.instance import PLAIN_ROLE
from backend.domain.peers import peers_wanted, registered_by
from backend.domain.placement import place
from tests.unit.domain.machines import need
from tests.unit.domain.model import Membership, World

MODES: tuple[Membership, ...] = ("dynamic", "restart", "manual", "none")


def document(name: str, mode: Membership, counts: tuple[int, int], wide: int, edit: int = 0):  # type: ignore[no-untyped-def]
    """A deployment of that membership; `edit` is what a person changed."""
    spec: dict[str, object] = {
        "model": "/m", "engine": "vllm", "accelerators": wide, "parameters": [f"--edit={edit}"],
    }  # fmt: skip
    if mode == "none":
        spec["replicas"] = counts[0]
    else:
        spec["disaggregation"] = {"mode": "vllm-nixl"}
        spec["roles"] = {"prefill": {"replicas": counts[0]}, "decode": {"replicas": counts[1]}}
    return Deployment.model_validate({"metadata": {"name": name}, "spec": spec})


class Walk:
    """One walk. `seed` decides everything."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.world = World(self.rng)
        self.eager, self.rough = self.rng.choice([0.005, 0.02, 0.05]), self.rng.choice([0.0, 0.01])
        self.modes = {n: self.rng.choice(MODES) for n in ("a", "b")}
        self.world.modes.update(self.modes)
        self.wishes: list[Callable[[str], None]] = [
            self._save, self._scale, self._restart, self._pause, self._delete,
            self._delete_instance,
        ]  # fmt: skip
        self.faults: list[Callable[[], None]] = [
            self._kill, self._kill, self._lose, self._back, self._back, self._reboot,
            self.world.die, self._wedge,
        ]  # fmt: skip

    def run(self, steps: int) -> None:
        """Walk, checking after each step; then be quiet, and check what has to be true at last."""
        for name in self.modes:
            self._save(name)
        for _ in range(steps):
            self._step()
            self.check()
        self.settle()

    def _step(self) -> None:
        w, rng = self.world, self.rng
        name = rng.choice(["a", "b"])
        chance = rng.random()
        if chance < self.eager:
            weights = [6, 6, 4, 2, 1, 4]
            (wish,) = rng.choices(self.wishes, weights)
            wish = wish if name in w.groups else self._save
            wish(name)
            if rng.random() < 0.5:
                self._resume_all()
        elif chance < self.eager + self.rough:
            rng.choice(self.faults)()
            w.doomed = rng.choice([0.0, 0.0, 0.3])
        elif chance < 0.65 and w.running:
            for _ in range(rng.choice([1, 1, 4])):
                if w.running:
                    w.advance(rng.choice(sorted(w.running)))
        elif chance < 0.82:
            for one in sorted(w.groups):
                w.turn(one)
        elif chance < 0.88:
            w.read_registry(name)
        elif chance < 0.91:
            w.janitor()
        else:
            w.pass_time(rng.choice([0.1, 0.5, 2.0, 12.0]))

    # wishes, as `services.groups` grants them

    def _save(self, name: str) -> None:
        counts = self.rng.randint(1, 3), self.rng.randint(1, 2)
        edit, wide = self.rng.randint(0, 2), self.rng.choice([1, 1, 2])
        self.world.save(document(name, self.modes[name], counts, wide, edit))

    def _scale(self, name: str) -> None:
        group = self.world.groups.get(name)
        if group is not None and not group.deleting:
            role = self.rng.choice(sorted(wanted_counts(group)))
            self.world.save(desired.with_counts(group.document, {role: self.rng.randint(1, 3)}))

    def wish_for_force(self, name: str) -> None:
        """Ask for a restart that does not wait for hosts that do not answer."""
        self._restart(name, force=True)

    def _restart(self, name: str, force: bool | None = None) -> None:
        group = self.world.groups.get(name)
        force = self.rng.random() < 0.5 if force is None else force
        if group is None or group.deleting or group.document.spec.paused:
            return
        if group.restart is not None and group.restart.step != "start" and not force:
            return
        mine = self.world.of_group(name)
        restart = Restart(since=self.world.now, force=force, total=len(mine))
        self.world.groups[name] = group.model_copy(update={"restart": restart})
        self.world.old[name] = {i.id for i in mine}
        if force:
            self._fence(mine)

    def _fence(self, instances: Iterable[Instance]) -> None:
        for i in instances:
            if not self.world.machines[i.host].up:
                self.world.releases[i.id] = i.host
                del self.world.instances[i.id]

    def _pause(self, name: str) -> None:
        w, group = self.world, self.world.groups.get(name)
        if group is None or group.deleting:
            return
        paused, mine = not group.document.spec.paused, w.of_group(name)
        w.groups[name] = desired.switched(group, paused, mine, w.now)
        if w.groups[name].restart is not group.restart:
            w.old[name] = {i.id for i in mine}
        if paused and self.rng.random() < 0.3:
            self._fence(mine)

    def _resume_all(self) -> None:
        for name, group in list(self.world.groups.items()):
            if group.document.spec.paused:
                self._pause(name)

    def _delete(self, name: str) -> None:
        if name in self.world.groups:
            group = self.world.groups[name]
            self.world.groups[name] = group.model_copy(update={"deleting": True})
            if self.rng.random() < 0.3:
                self._fence(self.world.of_group(name))

    def _delete_instance(self, name: str) -> None:
        mine = self.world.of_group(name)
        if mine:
            found = self.rng.choice(mine)
            row = (
                acts.stopping(found, self.world.now)
                if found.role == "router"
                else found.model_copy(update={"removing": True})
            )
            self.world.instances[found.id] = row
            if self.rng.random() < 0.3:
                self._fence([found])

    # faults

    def _kill(self) -> None:
        living = [p for _, _, p in self.world.living()]
        if living:
            self.rng.choice(living).alive = False

    def _wedge(self) -> None:
        """A process that lives and does not answer any more, or never will."""
        living = [p for _, _, p in self.world.living()]
        if living:
            self.rng.choice(living).ready_at = float("inf")

    def _lose(self) -> None:
        machine = self.rng.choice(list(self.world.machines.values()))
        machine.up = False

    def _back(self) -> None:
        for machine in self.world.machines.values():
            machine.up = True

    def _reboot(self) -> None:
        machine = self.rng.choice(list(self.world.machines.values()))
        for process in machine.processes.values():
            process.alive = False

    # what holds at every step

    def check(self) -> None:
        """No router knows two revisions; nothing living is unknown; no place is held twice."""
        w = self.world
        for host, machine in w.machines.items():
            rows = [i for i in w.instances.values() if i.host == host]
            chips = [a for i in rows for a in i.accelerators]
            ports = [p for i in rows for p in i.ports]
            assert len(chips) == len(set(chips)), f"{host}: accelerators {sorted(chips)}"
            assert len(ports) == len(set(ports)), f"{host}: ports {sorted(ports)}"
            held = {i.id for i in rows if i.state != "stopping"}
            assert held <= set(machine.claims), "a row without its claim"
        for group in w.groups.values():
            if group.restart is None or group.restart.step == "start":
                left = w.old.get(group.name, set()) & set(w.instances)
                assert not left, f"restarted, but {left} were left"
        for _, key, process in w.living():
            assert key in w.instances or self._accounted(key), f"{key} lives and nobody knows"
            if process.role == "router":
                told = {w.instances[r.instance].revision for r in process.peers.values()
                        if r.instance in w.instances}  # fmt: skip
                assert told <= {process.revision}, f"{key} knows {told}"

    def _accounted(self, key: str) -> bool:
        w = self.world
        placed = {i for places in w.placing_intents.values() for _, i in places}
        return key in w.releases or key in placed or key in w.start_intents

    # what holds at last

    def settle(self) -> None:
        """Every host answers, nobody wishes anything, and what crashed for good is deleted."""
        w = self.world
        w.doomed = 0.0
        for machine in w.machines.values():
            machine.up = True
        for _ in range(200):
            before = self._stamp()
            for name in sorted(w.groups):
                for i in w.of_group(name):
                    if i.state == "crash_loop" or self._unknown_by_hand(i):
                        self._take_out(i.id)
                w.turn(name)
                w.read_registry(name)
            for at in sorted(w.running):
                while at in w.running:
                    w.advance(at)
            w.janitor()
            self.check()
            w.pass_time(4.0)
            if before == self._stamp() and not w.running and self._calm():
                break
        self.check_settled()

    def _unknown_by_hand(self, i: Instance) -> bool:
        """Whether a router kept up by hand no more knows its members: its operator ends it."""
        if i.role != "router" or i.state != "ready" or self.modes[i.group] != "manual":
            return False
        return set(i.snapshot or ()) != set(peers_wanted(self.world.of_group(i.group), i))

    def _take_out(self, key: str) -> None:
        found = self.world.instances[key]
        row = (
            acts.stopping(found, self.world.now)
            if found.role == "router"
            else found.model_copy(update={"removing": True})
        )
        self.world.instances[key] = row

    def _stamp(self) -> object:
        rows = sorted((i.id, i.state, i.generation) for i in self.world.instances.values())
        return rows, sorted((g.name, g.endpoint) for g in self.world.groups.values())

    def _calm(self) -> bool:
        try:
            self.check_settled()
        except AssertionError:
            return False
        return True

    def check_settled(self) -> None:
        """Wanted is ready, or there is no room; the router knows its members; nothing is left."""
        w = self.world
        for group in w.groups.values():
            self._check_group(group)
        alive = {key for _, key, _ in w.living()}
        assert alive <= set(w.instances), f"left running: {alive - set(w.instances)}"
        claims = {key for m in w.machines.values() for key in m.claims}
        assert claims == set(w.instances), f"claims {claims ^ set(w.instances)}"
        leaving = [i.id for i in w.instances.values() if i.leaving]
        assert not leaving, f"still leaving: {leaving}"
        assert not w.releases
        assert not w.placing_intents

    def _check_group(self, group: Group) -> None:
        w = self.world
        assert not group.deleting, f"{group.name} was to be deleted"
        p = w.picture(group.name)
        if group.document.spec.paused:
            assert not p.instances
            assert status.status(p) == "Stopped"
            return
        if group.formed is None:
            counts = wanted_counts(group)
            self._no_room([need(group.document, r, n) for r, n in counts.items()])
            return
        states = {i.id: i.state for i in p.instances}
        for role in roles_of(group):
            ready, wanted = len(p.ready(role)), group.applied[role]
            assert ready <= wanted, (role, states)
            if ready < wanted and not group.stale:
                assert len(p.of(role)) == ready, (role, states)
                self._no_room([need(group.formed.document, role, 1)])
        if all(p.ready(role) for role in roles_of(group)):
            assert status.status(p) == "Running", (states, group)
            if roles_of(group) != (PLAIN_ROLE,):
                self._check_router(group)

    def _check_router(self, group: Group) -> None:
        w = self.world
        p = w.picture(group.name)
        assert p.router is not None
        assert registered_by(group, p.router)
        if p.membership == "manual":
            return
        wanted = set(peers_wanted(p.instances, p.router))
        process = w.process(p.router)
        assert process is not None
        if p.membership == "dynamic":
            assert set(process.peers) == {r.url for r in wanted}
        else:
            assert set(process.peers.values()) == wanted

    def _no_room(self, needs: list) -> None:  # type: ignore[type-arg]
        try:
            place(self.world.rooms(), needs)
        except Refused:
            return
        raise AssertionError(f"there is room for {needs}, but nothing is placed")
