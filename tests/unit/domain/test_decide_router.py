"""When the router starts, learns of its members, is replaced, registered and ended."""

from __future__ import annotations

from typing import Any

import pytest

from backend.domain.decide import Picture, decide
from backend.domain.group import Instance, Restart
from backend.domain.peers import Registry
from tests.unit.domain.pictures import NOW, endpoint, group, listed, one, picture
from tests.unit.domain.test_decide import D, P, R, said, serving


def test_the_first_static_router_waits_for_all_wanted_members() -> None:
    g = group((2, 1))
    short = [P, one("p2", "starting"), D]
    router = one("r", "pending")
    assert said(picture(g, *short, router, membership="dynamic")) == ["start r"]
    waits = picture(g, *short, router, membership="restart")
    assert (said(waits), decide(waits).wake_at) == ([], NOW + 20)  # both ready for 100 of 120 s
    assert said(picture(g, *short, router, membership="restart", now=NOW + 20)) == ["start r"]
    assert said(picture(g, P, one("p2"), D, router, membership="restart")) == ["start r"]
    again = one("r", "pending", generation=2)
    assert said(picture(g, *short, again, membership="restart")) == ["start r"]


def test_its_patience_begins_with_the_second_role() -> None:
    late = picture(
        group((2, 1)), P, one("p2", "starting"), one("d1", since=NOW - 1), one("r", "pending"),
        membership="restart",
    )  # fmt: skip
    assert (said(late), decide(late).wake_at) == ([], NOW + 119)


NEW = one("p2", since=NOW - 0.5)
WIDE = group((3, 1), endpoint=endpoint(), applied={"prefill": 3, "decode": 1})
NARROW = group((2, 1), endpoint=endpoint())
AGAIN = one("p1", generation=2)


def static(g: Any, *members: Instance, snapshot: Any = (P, D), **about: Any) -> Picture:
    told = None if snapshot is None else tuple(m.record() for m in snapshot)
    router = one("r", snapshot=told, note=about.pop("note", ""))
    return picture(g, *members, router, membership="restart", **about)


SNAPSHOTS: dict[str, tuple[Picture, bool, float | None]] = {
    "the same": (static(group(endpoint=endpoint()), P, D), False, None),
    "none stored: once": (static(group(endpoint=endpoint()), P, D, snapshot=None), True, None),
    "none stored, but no pair": (
        static(group(endpoint=endpoint()), P, one("d1", "starting"), snapshot=None),
        False,
        None,
    ),
    "a peer was restarted in place": (static(group(endpoint=endpoint()), AGAIN, D), True, None),
    "a peer is gone": (static(group(endpoint=endpoint()), P, D, snapshot=(P, NEW, D)), True, None),
    "the last of a role is gone": (
        static(group(endpoint=endpoint()), P, one("d1", "unhealthy")),
        False,
        None,
    ),
    "an addition completes the counts": (static(NARROW, P, NEW, D), True, None),
    "an addition waits for others": (static(WIDE, P, NEW, D), False, NOW + 1.5),
    "but not for long": (static(WIDE, P, NEW, D, now=NOW + 1.5), True, None),
    "a changed document does not hold it back": (
        static(group(endpoint=endpoint(), revision="r2"), AGAIN, D),
        True,
        None,
    ),
    "a failed try waits": (
        static(group(endpoint=endpoint()), AGAIN, D, retry_at={"r": NOW + 4}),
        False,
        NOW + 4,
    ),
}


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_a_static_router_is_replaced(name: str) -> None:
    p, replaced, wake = SNAPSHOTS[name]
    assert ("replace r" in said(p)) is replaced
    if wake is not None:
        assert decide(p).wake_at == wake


def test_a_member_of_another_revision_never_meets_the_router() -> None:
    stranger = one("p2", revision="r0")
    p = picture(group((2, 1), endpoint=endpoint()), P, stranger, D, R, registry=listed(P, D))
    assert said(p) == []


SYNC: dict[str, tuple[dict[str, Any], list[str]]] = {
    "agrees": ({}, []),
    "one is missing": ({"registry": listed(P)}, ["sync_peers r"]),
    "one too many": ({"registry": listed(P, D, one("p9"))}, ["sync_peers r"]),
    "one under the other role": (
        {"registry": Registry({P.url: "prefill", D.url: "prefill"}, 1)},
        ["sync_peers r"],
    ),
    "could not be read": ({"registry": Registry(None, 1)}, ["sync_peers r"]),
    "is of an earlier start": ({"registry": listed(P, generation=0)}, []),
    "waits after a failure": ({"registry": listed(P), "retry_at": {"sync_peers": NOW + 2}}, []),
}


@pytest.mark.parametrize("name", SYNC)
def test_the_registry_of_a_dynamic_router(name: str) -> None:
    about, actions = SYNC[name]
    assert said(serving(**about)) == actions


REGISTER: dict[str, tuple[Picture, list[str]]] = {
    "the registry agrees": (serving(g=group()), ["register r"]),
    "it does not": (serving(g=group(), registry=listed(P)), ["sync_peers r"]),
    "a static router has no registry": (
        serving(g=group(), membership="restart", registry=Registry()),
        ["register r"],
    ),
    "kept by hand": (serving(g=group(), membership="manual", registry=Registry()), ["register r"]),
    "no pair": (picture(group(), P, one("d1", "starting"), R, registry=listed(P)), []),
    "it failed just now": (serving(g=group(), retry_at={"register": NOW + 2}), []),
    "the endpoint is of an earlier start": (
        serving(g=group(endpoint=endpoint(generation=0))),
        ["unregister"],
    ),
    "the endpoint is another router's": (serving(g=group(endpoint=endpoint("q"))), ["unregister"]),
    "the router is not healthy": (serving(router=one("r", "unhealthy")), ["unregister"]),
    "the router ended": (
        serving(router=one("r", "exited", next_start=NOW)),
        ["unregister", "respawn r"],
    ),
    "the router cannot be seen": (serving(router=one("r", "unreachable")), ["unregister"]),
    "the router is deleted": (serving(router=one("r", "stopping")), ["unregister", "stop r"]),
    "the router is gone": (
        picture(group(endpoint=endpoint()), P, D),
        ["unregister", "create_router"],
    ),
    "a crash loop is left": (serving(g=group(), router=one("r", "crash_loop")), []),
}


@pytest.mark.parametrize("name", REGISTER)
def test_registration(name: str) -> None:
    p, actions = REGISTER[name]
    assert said(p) == actions


STOPPING = Restart(since=NOW)
MEMBERS = Restart(since=NOW, step="stop members")
END: dict[str, tuple[Picture, list[str]]] = {
    "restart: the router first": (
        picture(group(restart=STOPPING, endpoint=endpoint()), P, D, R),
        ["unregister", "stop r"],
    ),
    "then every member": (
        picture(group(restart=STOPPING), P, D),
        ["restart_step stop members", "stop p1", "stop d1"],
    ),
    "it goes on stopping": (
        picture(group(restart=MEMBERS), one("p1", "stopping"), retry_at={"stop:p1": NOW + 4}),
        [],
    ),
    "nothing starts before all is gone": (
        picture(group(restart=MEMBERS), one("p1", "pending"), one("d1", "exited")),
        ["stop p1", "stop d1"],
    ),
    "then it forms anew": (picture(group(restart=MEMBERS)), ["reform"]),
    "in the last step it forms": (
        picture(group(formed=None, restart=Restart(since=NOW, step="start"))),
        ["form"],
    ),
    "pause: the router first": (picture(group(spec={"paused": True}), P, D, R), ["stop r"]),
    "paused and gone": (picture(group(spec={"paused": True})), ["reform"]),
    "paused for good": (picture(group(formed=None, spec={"paused": True})), []),
    "resumed": (picture(group(formed=None)), ["form"]),
    "delete: the router first": (picture(group(deleting=True), P, D, R), ["stop r"]),
    "then members": (picture(group(deleting=True), P, D), ["stop p1", "stop d1"]),
    "then it is forgotten": (picture(group(deleting=True)), ["forget"]),
    "never formed and deleted": (picture(group(formed=None, deleting=True)), ["forget"]),
    "deleting wins over paused": (picture(group(deleting=True, spec={"paused": True})), ["forget"]),
}


@pytest.mark.parametrize("name", END)
def test_the_end(name: str) -> None:
    p, actions = END[name]
    assert said(p) == actions


def test_keys_keep_acts_on_one_thing_apart() -> None:
    p = serving(g=group((2, 2)), registry=listed(P))
    assert {a.kind: a.key for a in decide(p).actions} == {
        "add": "+decode",
        "sync_peers": "r",
    }
    assert [a.retry_key for a in decide(p).actions] == ["+prefill", "+decode", "sync_peers"]


@pytest.mark.parametrize("state", ["starting", "unhealthy", "crash_loop"])
def test_a_static_router_never_waits_for_members_that_are_gone(state: str) -> None:
    """It knows p1, which is another start of its member now; one that only lacks p2 goes on."""
    p1, p2, d1 = one("p1"), one("p2"), one("d1")
    knows = tuple(i.record() for i in (p1, d1))
    router = one("r", state, snapshot=knows)
    again = p1.model_copy(update={"generation": 2})
    new = decide(picture(group(counts=(2, 1)), again, p2, d1, router, membership="restart"))
    assert [a.kind for a in new.actions] == ["replace"]
    same = decide(picture(group(counts=(2, 1)), p1, p2, d1, router, membership="restart"))
    assert same.actions == []
    other = decide(picture(group(counts=(2, 1)), again, p2, d1, router, membership="dynamic"))
    assert other.actions == []
