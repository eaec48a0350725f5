"""What a group needs next, rule by rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from backend.domain.decide import Action, Picture, Timers, decide, victims
from backend.domain.peers import Registry
from tests.unit.domain.pictures import NOW, endpoint, group, listed, one, picture

P, D, R = one("p1"), one("d1"), one("r")


def said(p: Picture) -> list[str]:
    """Each action as `kind`, `kind instance`, `kind +role xN` or `kind detail`."""
    return [_word(a) for a in decide(p).actions]


def _word(a: Action) -> str:
    about = a.instance or (f"+{a.role} x{a.count}" if a.role else a.detail)
    return f"{a.kind} {about}".strip()


def serving(*more: Any, membership: str = "dynamic", **about: Any) -> Picture:
    """A 1P1D group that serves, with other instances beside it."""
    g = about.pop("g", group(endpoint=endpoint()))
    members = [m for m in (P, D, *more) if m.state == "ready" and not m.leaving]
    about.setdefault("registry", listed(*members))
    router = about.pop("router", one("r", snapshot=tuple(m.record() for m in members)))
    return picture(g, P, D, *more, router, membership=membership, **about)


@pytest.mark.parametrize("membership", ["dynamic", "restart", "manual"])
def test_a_group_that_serves_needs_nothing(membership: str) -> None:
    decision = decide(serving(membership=membership))
    assert (decision.actions, decision.wake_at) == ([], None)


WAITS = one("r", "pending")
FORMING: dict[str, tuple[Picture, list[str], float | None]] = {
    "all at once": (picture(group(formed=None)), ["form"], None),
    "after a refusal it waits": (
        picture(group(formed=None), retry_at={"form": NOW + 5}),
        [],
        NOW + 5,
    ),
    "and tries again when due": (
        picture(group(formed=None), retry_at={"form": NOW}),
        ["form"],
        None,
    ),
    "leftovers end first": (picture(group(formed=None), P, D), ["stop p1", "stop d1"], None),
    "each at its own pace": (
        picture(group(formed=None), P, D, retry_at={"stop:p1": NOW + 2}),
        ["stop d1"],
        NOW + 2,
    ),
    "members start in parallel": (
        picture(group(), one("p1", "pending"), one("d1", "pending")),
        ["start p1", "start d1", "create_router"],
        None,
    ),
    "a failed start waits": (
        picture(group(), one("p1", "pending"), D, WAITS, retry_at={"p1": NOW + 1}),
        [],
        NOW + 1,
    ),
    "a router has its place while members start": (
        picture(group(), P, one("d1", "starting")),
        ["create_router"],
        NOW + 1700,
    ),
    "and does not start for one role": (
        picture(group(), P, one("d1", "starting"), WAITS),
        [],
        NOW + 1700,
    ),
    "it starts when both are ready": (picture(group(), P, D, WAITS), ["start r"], None),
    "a refused router waits": (
        picture(group(), P, D, retry_at={"create_router": NOW + 3}),
        [],
        NOW + 3,
    ),
    "the router starts when paired": (
        picture(group(), P, D, one("r", "pending")),
        ["start r"],
        None,
    ),
    "and not while it is not": (
        picture(group(), P, one("d1", "unhealthy"), one("r", "pending")),
        [],
        NOW + 200,
    ),
    "a plain group has no router": (picture(group(None), one("x1"), membership="none"), [], None),
}


@pytest.mark.parametrize("name", FORMING)
def test_forming(name: str) -> None:
    p, actions, wake = FORMING[name]
    assert said(p) == actions
    assert decide(p).wake_at == wake


COUNTS: dict[str, tuple[Picture, list[str]]] = {
    "up by the difference": (serving(g=group((3, 1), endpoint=endpoint())), ["add +prefill x2"]),
    "up waits after a refusal": (
        serving(g=group((3, 1), endpoint=endpoint()), retry_at={"+prefill": NOW + 9}),
        [],
    ),
    "one role's refusal does not hold the other": (
        serving(g=group((2, 2), endpoint=endpoint()), retry_at={"+prefill": NOW + 9}),
        ["add +decode x1"],
    ),
    "down at once": (serving(one("p2", since=NOW - 5)), ["drain p2"]),
    "down while changed": (
        serving(one("p2", since=NOW - 5), g=group(revision="r2", endpoint=endpoint())),
        ["drain p2"],
    ),
    "no up while changed": (serving(g=group((2, 1), revision="r2", endpoint=endpoint())), []),
    "a member deleted while changed stays away": (
        serving(one("p2", "stopping"), g=group((2, 1), revision="r2", endpoint=endpoint())),
        ["stop p2"],
    ),
    "a member deleted otherwise is made anew": (
        picture(group(endpoint=endpoint()), P, one("d1", "stopping"), R, registry=listed(P)),
        ["add +decode x1", "stop d1"],
    ),
    "one on its way out is no second victim": (serving(one("p2", "draining")), []),
    "what does not answer is left and counted": (
        serving(one("p2", "unreachable"), g=group((2, 1), endpoint=endpoint())),
        [],
    ),
    "a crash loop is neither restarted nor doubled": (
        serving(one("p2", "crash_loop"), g=group((2, 1), endpoint=endpoint())),
        [],
    ),
    "plain replicas count too": (
        picture(group(None, spec={"replicas": 3}), one("x1"), membership="none"),
        ["add +replica x2"],
    ),
    "a deleted member leaves": (serving(one("p2", "ready", removing=True)), ["drain p2"]),
    "a crash loop that is deleted leaves": (
        serving(one("p2", "crash_loop", removing=True)),
        ["drain p2"],
    ),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts(name: str) -> None:
    p, actions = COUNTS[name]
    assert said(p) == actions


def test_victims_are_what_serves_least_then_worst_paired_then_youngest() -> None:
    crowd = [
        one("p1", "ready", host="a"),
        one("p2", "ready", host="lonely"),
        one("p3", "starting", host="a"),
        one("p4", "crash_loop", host="a"),
        one("p5", "ready", host="a", since=NOW - 1),
        one("p6", "draining", host="a"),
        one("d1", host="a"),
    ]
    order = [i.id for i in victims(picture(group(), *crowd), "prefill", 9)]
    assert order == ["p4", "p3", "p2", "p5", "p1"]


def test_one_that_leaves_pairs_with_nobody() -> None:
    crowd = [one("p1", host="a"), one("p2", host="b", since=NOW - 500)]
    crowd += [one("d1", "draining", host="a"), one("d2", host="b")]
    assert [i.id for i in victims(picture(group(), *crowd), "prefill", 1)] == ["p1"]


def test_an_ended_one_comes_back_when_its_back_off_is_over() -> None:
    waiting = serving(
        one("p2", "exited", next_start=NOW + 10), g=group((2, 1), endpoint=endpoint())
    )
    assert (said(waiting), decide(waiting).wake_at) == ([], NOW + 10)
    due = serving(one("p2", "exited", next_start=NOW), g=group((2, 1), endpoint=endpoint()))
    assert said(due) == ["respawn p2"]


WEDGED: dict[str, tuple[Picture, list[str]]] = {
    "a start within its time": (serving(one("p2", "starting", since=NOW - 599)), []),
    "a start that never answers": (
        serving(one("p2", "starting", since=NOW - 600)),
        ["kill p2"],
    ),
    "one that hangs": (serving(one("p2", "unhealthy", since=NOW - 300)), ["kill p2"]),
    "one that hangs for less": (serving(one("p2", "unhealthy", since=NOW - 299)), []),
    "one nobody watched meanwhile": (
        serving(one("p2", "starting", since=NOW - 900), began=NOW - 5),
        [],
    ),
    "one whose host refused to kill it": (
        serving(one("p2", "starting", since=NOW - 600), retry_at={"p2": NOW + 1}),
        [],
    ),
    "one that nobody can see": (serving(one("p2", "unreachable", since=NOW - 900)), []),
    "a router that never answers": (
        serving(
            g=group(),
            router=one("r", "starting", since=NOW - 600),
            registry=Registry(),
        ),
        ["kill r"],
    ),
}


@pytest.mark.parametrize("name", WEDGED)
def test_what_lives_without_answering_is_killed(name: str) -> None:
    p, actions = WEDGED[name]
    g = p.group.model_copy(update={"applied": {"prefill": 2, "decode": 1}})
    if len(p.of("prefill")) == 1:
        g = p.group
    p = replace(p, group=g, timers=Timers(start_limit_s=600.0, hang_limit_s=300.0))
    assert said(p) == actions


LEAVING = one("p2", "draining")
STATIC = one("r", snapshot=(P.record(), D.record(), LEAVING.record()))
DRAINS: dict[str, tuple[dict[str, Any], bool]] = {
    "busy": ({}, False),
    "idle and out of the registry": ({"idle_since": {"p2": NOW - 1}}, True),
    "idle for too short": ({"idle_since": {"p2": NOW - 0.9}}, False),
    "idle but still listed": (
        {"idle_since": {"p2": NOW - 9}, "registry": listed(P, D, LEAVING)},
        False,
    ),
    "idle and not listed yet by a router that is just being told": (
        {"idle_since": {"p2": NOW - 9}, "telling": True},
        False,
    ),
    "idle, and nobody knows what is listed": (
        {"idle_since": {"p2": NOW - 9}, "registry": Registry(None, 1)},
        False,
    ),
    "idle, and the list is of an earlier start": (
        {"idle_since": {"p2": NOW - 9}, "registry": listed(P, D, generation=0)},
        False,
    ),
    "patience is over": ({"now": NOW + 55}, True),
    "idle, but a static router still sends": (
        {"idle_since": {"p2": NOW - 9}, "membership": "restart", "router": STATIC},
        False,
    ),
    "idle, and the static router was replaced": (
        {"idle_since": {"p2": NOW - 9}, "membership": "restart"},
        True,
    ),
}


@pytest.mark.parametrize("name", DRAINS)
def test_draining(name: str) -> None:
    about, stops = DRAINS[name]
    p = serving(LEAVING, **about)
    assert ("stop p2" in said(p)) is stops
    if not stops:
        wake = decide(p).wake_at
        assert wake is not None
        assert wake > p.now


@pytest.mark.parametrize("process", [None, {"instance": "p2", "state": "exited", "generation": 1}])
def test_a_draining_member_without_a_process_is_not_waited_for(process: Any) -> None:
    assert said(serving(one("p2", "draining", process=process))) == ["stop p2"]
