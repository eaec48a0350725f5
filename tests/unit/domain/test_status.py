"""The group's status, its ratio and what stands beside it, as the user's document has them."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from backend.domain import status
from backend.domain.decide import Picture
from backend.domain.group import Restart
from backend.domain.host import Accelerator, HostFacts
from backend.domain.peers import Registry
from backend.domain.picture import accelerator_views, group_view
from tests.unit.domain.pictures import NOW, endpoint, group, listed, one, picture
from tests.unit.domain.test_decide import D, P, R

OPEN = group(endpoint=endpoint())
PAUSED = {"paused": True}

STATUS: dict[str, tuple[Picture, str]] = {
    "nothing there yet": (picture(group(formed=None)), "Pending"),
    "placed, not started": (
        picture(group(), one("p1", "pending"), one("d1", "pending")),
        "Pending",
    ),
    "one process lives": (
        picture(group(), one("p1", "starting"), one("d1", "pending")),
        "Partially ready",
    ),
    "a role has no ready member": (picture(OPEN, P, one("d1", "unhealthy"), R), "Partially ready"),
    "the endpoint is not registered": (picture(group(), P, D, R), "Partially ready"),
    "each role and the endpoint": (picture(OPEN, P, D, R), "Running"),
    "short of the ratio it still serves": (
        picture(group((3, 1), endpoint=endpoint()), P, D, R),
        "Running",
    ),
    "changed and serving": (picture(group(revision="r2", endpoint=endpoint()), P, D, R), "Running"),
    "only a draining one is left of a role": (
        picture(OPEN, P, one("d1", "draining"), R),
        "Partially ready",
    ),
    "all ended": (picture(OPEN, one("p1", "exited"), one("d1", "crash_loop")), "Pending"),
    "nothing can be seen": (
        picture(group(), one("p1", "unreachable"), one("d1", "unreachable")),
        "Pending",
    ),
    "a lone router is no running member": (picture(group(), R), "Pending"),
    "stopping before it ever started": (
        picture(group(), one("p1", "stopping", process=None)),
        "Pending",
    ),
    "stopping, but alive": (picture(group(spec=PAUSED), one("p1", "stopping")), "Partially ready"),
    "switched off": (picture(group(formed=None, spec=PAUSED)), "Stopped"),
    "a plain replica needs no endpoint": (
        picture(group(None), one("x1"), membership="none"),
        "Running",
    ),
    "a plain replica that starts": (
        picture(group(None), one("x1", "starting"), membership="none"),
        "Partially ready",
    ),
}


@pytest.mark.parametrize("name", STATUS)
def test_status(name: str) -> None:
    p, expected = STATUS[name]
    assert status.status(p) == expected


RATIO: dict[str, tuple[Picture, tuple[str, str]]] = {
    "met": (picture(group((2, 1)), P, one("p2"), D), ("2:1", "")),
    "short": (picture(group((2, 1)), P, D), ("2:1", "1:1")),
    "one role is not there yet": (picture(group((2, 1)), P, one("d1", "starting")), ("2:1", "1:0")),
    "nobody is ready": (picture(group((2, 1)), one("p1", "starting")), ("2:1", "")),
    "draining does not count": (
        picture(group((2, 1)), P, one("p2", "draining"), D),
        ("2:1", "1:1"),
    ),
    "deleted does not count": (
        picture(group((2, 1)), P, one("p2", removing=True), D),
        ("2:1", "1:1"),
    ),
    "a plain group has none": (picture(group(None), one("x1"), membership="none"), ("", "")),
}


@pytest.mark.parametrize("name", RATIO)
def test_ratio(name: str) -> None:
    p, expected = RATIO[name]
    assert status.ratio(p) == expected


def test_a_stored_count_that_waits_is_told_apart() -> None:
    g = group((4, 1), revision="r2", applied={"prefill": 2, "decode": 1})
    count = status.counts(picture(g, P, D))["prefill"]
    assert (count.wanted, count.ready, count.present, count.pending) == (2, 1, 1, 4)
    assert status.counts(picture(g, P, D))["decode"].pending is None


STUCK = one("p1", "stopping", note="h-p1 does not answer", host="h7")
MARKS: dict[str, tuple[Picture, list[str], str]] = {
    "none": (picture(OPEN, P, D, R), [], ""),
    "changed": (
        picture(group(revision="r2", endpoint=endpoint()), P, D, R),
        ["config_changed"],
        "Restart applies it",
    ),
    "no room to form": (
        picture(group(formed=None, placement_note="no H100 is free")),
        ["placement"],
        "no H100 is free",
    ),
    "no room to grow": (
        picture(group((2, 1), endpoint=endpoint(), placement_note="none free"), P, D, R),
        ["placement"],
        "none free",
    ),
    "no more wanted": (
        picture(group(endpoint=endpoint(), placement_note="none free"), P, D, R),
        [],
        "",
    ),
    "a silent host": (
        picture(OPEN, P, one("d1", "unreachable", host="h9"), R),
        ["unreachable_host"],
        "h9 does not answer",
    ),
    "a crash loop": (
        picture(OPEN, P, one("d1", "crash_loop", failures=3, note="ended with exit code 2")),
        ["crash_loop"],
        "d1 ended 3 times without serving: ended with exit code 2",
    ),
    "draining": (picture(OPEN, P, D, one("p2", "draining"), R), ["draining"], "p2"),
    "not registered": (picture(group(), P, D, R), ["registration"], "one answered request"),
    "not registered, and why": (
        picture(group(), P, D, one("r", note="HTTP 503")),
        ["registration"],
        "HTTP 503",
    ),
    "the registry differs": (
        picture(OPEN, P, D, one("r", note="missing p1")),
        ["membership"],
        "missing p1",
    ),
    "by hand": (
        picture(
            OPEN, P, D, one("r", snapshot=(P.record(), one("d2").record())), membership="manual"
        ),
        ["membership"],
        "add decode http://10.0.0.1:40100; remove decode http://10.0.0.2:40100.",
    ),
    "by hand, and right": (
        picture(OPEN, P, D, one("r", snapshot=(P.record(), D.record())), membership="manual"),
        [],
        "",
    ),
    "a restart that waits": (
        picture(group(restart=Restart(since=NOW, step="stop members")), STUCK),
        ["restart_blocked"],
        "The restart waits for h7",
    ),
    "a deletion that waits": (
        picture(group(deleting=True), STUCK),
        ["restart_blocked"],
        "deletion",
    ),
    "a pause that waits": (picture(group(spec=PAUSED), STUCK), ["restart_blocked"], "pause"),
}


@pytest.mark.parametrize("name", MARKS)
def test_marks(name: str) -> None:
    p, ids, text = MARKS[name]
    found = status.marks(p)
    assert [m.id for m in found] == ids
    assert text in " ".join(m.text for m in found)


@pytest.mark.parametrize(
    ("restart", "members", "expected"),
    [
        (None, [P], None),
        ({"step": "stop router", "total": 3}, [P, D, R], ("stop router", 0, 1, "")),
        (
            {"step": "stop router", "total": 3},
            [P, one("r", "stopping", host="h7", note="silent")],
            ("stop router", 0, 1, "h7"),
        ),
        ({"step": "stop members", "total": 3}, [P, D], ("stop members", 1, 3, "")),
        ({"step": "stop members", "total": 3}, [STUCK], ("stop members", 2, 3, "h7")),
        ({"step": "start", "total": 3}, [P, one("d1", "starting"), R], ("start", 1, 2, "")),
    ],
)
def test_phase(restart: dict[str, Any] | None, members: list[Any], expected: Any) -> None:
    g = group(restart=restart and Restart(since=NOW, **restart))
    found = status.phase(g, members)
    assert (found and (found.name, found.done, found.total, found.blocked_by)) == expected


@pytest.mark.parametrize(
    ("step", "members", "done"),
    [
        ("start", [P, D, R], True),
        ("start", [P, one("d1", "starting"), R], False),
        ("stop members", [P, D, R], False),
    ],
)
def test_a_restart_is_done_when_all_is_back(step: Any, members: list[Any], done: bool) -> None:
    g = group(endpoint=endpoint(), restart=Restart(since=NOW, step=step))
    assert status.restart_done(picture(g, *members)) is done


def test_a_restart_is_not_done_short_of_the_ratio() -> None:
    g = group((2, 1), endpoint=endpoint(), restart=Restart(since=NOW, step="start"))
    assert not status.restart_done(picture(g, P, D, R))


def test_the_view_says_who_the_router_knows() -> None:
    other = one("p2")
    known = {
        m.id: m.in_router
        for m in group_view(picture(OPEN, P, D, other, R, registry=listed(P, D))).members
    }
    assert known == {"p1": True, "d1": True, "p2": False, "r": None}
    old = picture(OPEN, P, D, R, registry=listed(P, generation=0))
    assert {m.in_router for m in group_view(old).members} == {None}
    unread = picture(OPEN, P, D, R, registry=Registry(None, 1))
    assert {m.in_router for m in group_view(unread).members} == {None}
    router = one("r", snapshot=(P.record(), one("d1", generation=9).record()))
    known = {
        m.id: m.in_router
        for m in group_view(picture(OPEN, P, D, router, membership="restart")).members
    }
    assert known == {"p1": True, "d1": False, "r": None}


def test_the_pasted_request_is_one_shell_command() -> None:
    g = group(endpoint=endpoint(), spec={"served_model_name": "it's $HOME"})
    view = group_view(picture(g, P, D, R))
    assert view.endpoint is not None
    words = shlex.split(view.endpoint.curl)
    assert words[:2] == ["curl", "http://10.0.0.9:40000/v1/chat/completions"]
    assert '"model": "it\'s $HOME"' in words[-1]
    assert group_view(picture(group(), P, D, R)).endpoint is None


def test_a_member_of_an_earlier_document_is_marked() -> None:
    view = group_view(picture(group(revision="r2"), P, D, R))
    assert view.config_changed
    assert {m.stale for m in view.members} == {True}


def test_accelerators_and_their_holders() -> None:
    cards = tuple(
        Accelerator(index=n, uuid=f"G{n}", vendor="nvidia", type="H100") for n in range(2)
    )
    facts = HostFacts(boot_id="b", address="10.0.0.1", accelerators=cards)
    assert [v.held_by for v in accelerator_views(facts, {1: "g-p1"})] == ["", "g-p1"]
    assert accelerator_views(None, {}) == ()
