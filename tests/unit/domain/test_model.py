"""The whole life of groups against a model of hosts, routers and a backend that is killed.

`Walk(seed).run(steps)` repeats one walk exactly; a seed that ever broke a promise is kept in FOUND.
"""

from __future__ import annotations

import random

import pytest

from tests.unit.domain.walk import Walk, document

FOUND: tuple[int, ...] = ()
"""Seeds beyond the usual ones whose walk once broke a promise, each with a word on what it was."""


@pytest.mark.parametrize("seed", sorted({*range(32), *FOUND}))
def test_a_walk_keeps_every_promise(seed: int) -> None:
    Walk(seed).run(400)


class Scene(Walk):
    """A walk of one dynamic 1P1D group that goes where it is told."""

    def __init__(self) -> None:
        super().__init__(0)
        self.rng = self.world.rng = random.Random(1)
        self.modes = {"a": "dynamic"}
        self.world.modes.update(self.modes)
        self.world.save(document("a", "dynamic", (1, 1), 1))

    def until(self, kind: str) -> tuple[str, str]:
        """Turn and act until an act of that kind is under way; its key."""
        w = self.world
        for _ in range(50):
            w.turn("a")
            for at, (action, _) in sorted(w.running.items()):
                if action.kind == kind:
                    return at
            for at in sorted(w.running):
                w.advance(at)
            w.pass_time(0.5)
        raise AssertionError(f"no {kind}")


@pytest.mark.parametrize("killed", [False, True])
def test_a_start_that_is_fenced_while_its_host_is_silent_leaves_nothing(killed: bool) -> None:
    scene = Scene()
    w = scene.world
    at = scene.until("start")
    w.advance(at)  # the intent is written; the host is about to be asked
    w.advance(at)
    machine = w.machines[w.instances[at[1]].host]
    machine.up = False
    scene.wish_for_force("a")
    assert at[1] not in w.instances
    machine.up = True
    w.janitor()  # ends what is there: nothing yet
    w.advance(at)  # the host is asked after all,
    w.advance(at)  # and now it comes to life
    assert machine.processes[at[1]].alive
    if killed:
        w.die()
    scene.settle()
    assert at[1] not in machine.processes


def test_a_static_group_whose_last_decode_goes_as_its_router_starts_serves_again() -> None:
    scene = Scene()
    w = scene.world
    w.modes["a"] = scene.modes["a"] = "restart"
    at = scene.until("start")
    while w.instances[at[1]].role != "router":
        w.advance(at)
        at = scene.until("start")
    (decode,) = [i for i in w.of_group("a") if i.role == "decode"]
    w.instances[decode.id] = decode.model_copy(update={"state": "unhealthy"})
    while at in w.running:
        w.advance(at)
    assert w.instances[at[1]].state == "pending"
    scene.settle()
