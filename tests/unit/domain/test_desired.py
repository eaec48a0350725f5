"""What a save, a scale and a late confirmation make of the stored group."""

from __future__ import annotations

from typing import Any

import pytest

from backend.domain import acts, desired
from backend.domain.acts import router_started
from backend.domain.deployment import Deployment
from backend.domain.desired import switched
from backend.domain.group import Formed, Group, Instance, Restart
from backend.domain.rules.structure import scale_refusal
from backend.domain.status import phase
from tests.unit.domain.pictures import NOW, document, endpoint, group, one


def save(old: Group | None, doc: Deployment, revision: str = "r1") -> Group:
    return desired.saved(old, doc, revision, NOW)


def test_a_first_save() -> None:
    new = save(None, document((2, 1)))
    assert (new.version, new.since, new.stale) == (1, NOW, False)
    assert new.applied == {"prefill": 2, "decode": 1}


@pytest.mark.parametrize(
    ("old", "counts", "revision", "applied"),
    [
        ((2, 1), (3, 1), "r1", {"prefill": 3, "decode": 1}),
        ((2, 1), (3, 1), "r2", {"prefill": 2, "decode": 1}),
        ((2, 2), (1, 3), "r2", {"prefill": 1, "decode": 2}),
        ((2, 1), None, "r2", {"prefill": 2, "decode": 1}),
    ],
)
def test_counts_in_force(old: Any, counts: Any, revision: str, applied: dict[str, int]) -> None:
    assert save(group(old), document(counts), revision).applied == applied


def test_a_count_once_lowered_while_changed_does_not_come_back_before_the_restart() -> None:
    g = save(group((3, 1)), document((1, 1)), "r2")
    g = save(g, document((3, 1)), "r2")
    assert g.applied["prefill"] == 1
    assert desired.waiting(g, {"prefill": 3, "decode": 1}) == {"prefill": 3}
    assert save(g, document((3, 1)), "r1").applied["prefill"] == 3  # the edit is taken back
    assert desired.with_revision(g, "r1").applied["prefill"] == 3  # the recipe is
    assert acts.reformed(g).applied["prefill"] == 3


def test_a_role_that_only_the_saved_document_has_waits() -> None:
    g = save(group((2, 1)), document(None, replicas=2), "r2")
    assert desired.waiting(g, {"replica": 2}) == {"replica": 2}
    assert desired.waiting(group((2, 1)), {"prefill": 1}) == {}


@pytest.mark.parametrize(
    ("doc", "counts", "after"),
    [
        (document((2, 1)), {"prefill": 5}, (5, 1)),
        (document((2, 1)), {"prefill": 5, "decode": 4}, (5, 4)),
        (document((2, 1)), {"replica": 5}, (2, 1)),
        (document(None), {"replica": 5}, 5),
        (document(None), {"prefill": 5}, None),
    ],
)
def test_with_counts(doc: Deployment, counts: dict[str, int], after: Any) -> None:
    new = desired.with_counts(doc, counts)
    roles = new.spec.roles
    found: Any = new.spec.replicas
    if roles is not None:
        found = roles.prefill.replicas, roles.decode.replicas
    assert found == after
    assert Deployment.model_validate(new.document()) == new


def test_counts_reach_a_document_that_never_named_its_roles() -> None:
    doc = document(None, disaggregation={"mode": "vllm-nixl"})
    new = desired.with_counts(doc, {"decode": 3})
    assert new.spec.roles is not None
    assert (new.spec.roles.prefill.replicas, new.spec.roles.decode.replicas) == (1, 3)


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        (document((2, 1)), document((2, 1)), []),
        (document((2, 1)), document((3, 1)), ["prefill: 2 -> 3"]),
        (document((1, 1)), document((1, 1), paused=True), ["paused"]),
        (document((1, 1), paused=True), document((1, 2)), ["decode: 1 -> 2", "resumed"]),
        (document(None, replicas=2), document((1, 1)),
         ["replica: 2 -> none", "prefill: none -> 1", "decode: none -> 1"]),
    ],
)  # fmt: skip
def test_count_changes(old: Deployment, new: Deployment, lines: list[str]) -> None:
    assert desired.count_changes(old, new) == lines


@pytest.mark.parametrize(
    ("counts", "rule"),
    [
        ({"prefill": 3, "decode": 1}, None),
        ({"prefill": 512}, None),
        ({"router": 2}, "structure.scale_role"),
        ({"replica": 2}, "structure.scale_role"),
        ({"decode": 0}, "structure.scale_count"),
        ({"decode": 513}, "structure.scale_count"),
    ],
)
def test_what_cannot_be_scaled(counts: dict[str, int], rule: str | None) -> None:
    problem = scale_refusal(group((2, 1)), counts)
    assert (problem and problem.rule) == rule


def test_the_saved_documents_roles_are_those_that_scale() -> None:
    g = save(group((2, 1)), document(None), "r2")
    assert scale_refusal(g, {"replica": 2}) is None
    problem = scale_refusal(g, {"prefill": 2})
    assert problem is not None
    assert "the roles that scale are replica" in problem.message


FORMED = Formed(revision="r1", document=document((2, 1)))


@pytest.mark.parametrize(
    ("fresh", "taken"),
    [
        (group((2, 1), formed=None), True),
        (None, False),
        (group((2, 1)), False),
        (group((2, 1), formed=None, revision="r2"), False),
        (group((2, 1), formed=None, deleting=True), False),
        (group((2, 1), formed=None, spec={"paused": True}), False),
        (group((2, 1), formed=None, restart=Restart(since=0)), False),
        (group((2, 1), formed=None, restart=Restart(since=0, step="start")), True),
    ],
)
def test_a_group_forms_only_while_it_is_still_wanted_so(fresh: Group | None, taken: bool) -> None:
    assert (acts.formed(fresh, FORMED) is not None) is taken


def test_counts_changed_while_forming_hold() -> None:
    fresh = group((5, 1), formed=None, applied={"prefill": 2, "decode": 1}, placement_note="none")
    formed = acts.formed(fresh, FORMED)
    assert formed is not None
    assert (formed.applied["prefill"], formed.placement_note) == (5, "")


@pytest.mark.parametrize(
    ("fresh", "taken"),
    [
        (group(), True),
        (group(revision="r2"), True),  # edited meanwhile: it still runs on r1
        (None, False),
        (group(formed=None), False),
        (group(formed="r2"), False),
        (group(deleting=True), False),
        (group(restart=Restart(since=0)), False),
    ],
)
def test_a_member_joins_only_the_group_it_was_placed_for(fresh: Group | None, taken: bool) -> None:
    assert (acts.joined(fresh, "r1") is not None) is taken


@pytest.mark.parametrize(
    ("g", "router", "generation", "taken"),
    [
        (group(), one("r"), 1, True),
        (group(), one("r", generation=2), 1, False),
        (group(), one("r", "stopping"), 1, False),
        (group(deleting=True), one("r"), 1, False),
        (group(restart=Restart(since=0)), one("r"), 1, False),
    ],
)
def test_a_late_answer_registers_nothing(
    g: Group, router: Any, generation: int, taken: bool
) -> None:
    row = acts.registered(g, router, generation)
    assert (row.endpoint if row else None) == (endpoint() if taken else None)


def test_rows_of_an_instance() -> None:
    assert acts.respawned(one("p1", "ready"), NOW) is None
    assert acts.respawned(one("p1", "exited", removing=True), NOW) is None
    again = acts.respawned(one("p1", "exited", failures=2, next_start=1.0), NOW)
    assert again is not None
    assert (again.generation, again.state, again.failures) == (2, "pending", 2)
    assert (again.process, again.next_start, again.since) == (None, None, NOW)
    assert acts.replaced(one("r", generation=2), 1, NOW) is None
    assert acts.replaced(one("r", "stopping"), 1, NOW) is None
    assert acts.draining(one("p1", "stopping"), NOW) is None
    out = acts.draining(one("p1", removing=True), NOW)
    assert out is not None
    assert (out.state, out.draining_since, out.removing) == ("draining", NOW, False)
    held = one("p1", "stopping", note="silent")
    assert acts.stopping(held, NOW) is held


def test_a_pause_ends_a_restart() -> None:
    paused = group(spec={"paused": True}, restart=Restart(since=0), endpoint=endpoint())
    after = acts.reformed(paused)
    assert (after.formed, after.restart, after.endpoint) == (None, None, None)
    assert phase(after, []) is None
    going = acts.reformed(group(restart=Restart(since=0, step="stop members")))
    assert going.restart is not None
    assert going.restart.step == "start"


@pytest.mark.parametrize(
    ("left", "revision", "restarts"),
    [
        ([], "r1", False),
        ([one("p1"), one("d1")], "r1", False),
        ([one("p1", "stopping"), one("d1")], "r1", True),
        ([one("p1"), one("d1")], "r2", True),
        ([], "r2", False),
    ],
)
def test_a_group_that_is_resumed_while_its_pause_ends_it_forms_anew(
    left: list[Instance], revision: str, restarts: bool
) -> None:
    """What is left would go on beside what has ended, or could not be replaced."""
    off = group(spec={"paused": True}, revision=revision)
    on = switched(off, False, left, NOW)
    assert (on.document.spec.paused, on.revision, on.version) == (False, revision, 2)
    assert (on.restart is not None) == restarts
    assert switched(on, True, left, NOW).document.spec.paused


def test_a_routers_start_that_may_have_happened_with_other_peers_is_another_generation() -> None:
    before, now = (one("p1").record(),), (one("p2").record(),)
    new = one("r", "pending", snapshot=None)
    assert router_started(new, False, now).generation == 1
    asked = one("r", "pending", snapshot=before)
    assert router_started(asked, True, before).generation == 1
    assert router_started(asked, False, now).generation == 1
    again = router_started(asked, True, now)
    assert (again.generation, again.snapshot) == (2, now)
