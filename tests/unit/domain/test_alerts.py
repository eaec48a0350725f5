"""What is an alert, and what ends because somebody said so."""

from __future__ import annotations

from typing import Any

import pytest

from backend.domain.alerts import alerts, brief
from backend.domain.views import EventView, GroupView, Mark, MemberView, PhaseView
from backend.domain.watch_views import CanaryView, EffectView


def member(state: str = "ready", **more: Any) -> MemberView:
    return MemberView(
        id="chat-p1", role="prefill", host="h1", state=state, generation=1, revision="r", **more
    )  # type: ignore[arg-type]


def group(*members: MemberView, **more: Any) -> GroupView:
    return GroupView(
        name="chat", mode="vllm-nixl", engine="vllm", model="m", version=1, revision="r",
        status="Running", members=members, **more,
    )  # fmt: skip


def effect(verdict: str, reason: str) -> EffectView:
    return EffectView(verdict=verdict, reason=reason, text="why")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("view", "kind", "words"),
    [
        (group(member("exited", note="exit 1")), "member_dead", "has ended by itself: exit 1"),
        (group(member("unhealthy")), "member_dead", "does not answer"),
        (
            group(member("unreachable", note="its host does not answer")),
            "member_dead",
            "chat-p1 cannot be seen: its host does not answer",
        ),
        (group(member("crash_loop", failures=3)), "crash_loop", "ended 3 times"),
        (group(member(effect=effect("none", "recomputes"))), "effect", "chat-p1: why"),
        (group(member(effect=effect("failing", "lease_expired"))), "lease_expired", "why"),
        (group(member(), canary=CanaryView(at=1, ok=False, note="p: x")), "canary", "p: x"),
        (
            group(marks=(Mark(id="placement", text="h1: No space left on device"),)),
            "disk_full",
            "No space left",
        ),
    ],
)
def test_alerts(view: GroupView, kind: str, words: str) -> None:
    (found,) = alerts(view)
    assert found.kind == kind
    assert words in found.text
    assert found.group == "chat"


@pytest.mark.parametrize(
    ("note", "kind"),
    [
        ("OSError: [Errno 28] No space left on device", "disk_full"),
        ("RuntimeError: CUDA error: an illegal memory access", "accelerator"),
        ("NVRM: Xid (PCI:0000:41:00): 79, GPU has fallen off the bus", "accelerator"),
    ],
)
def test_what_a_dead_member_said_is_an_alert_of_its_own(note: str, kind: str) -> None:
    assert {a.kind for a in alerts(group(member("exited", note=note)))} == {"member_dead", kind}


def test_a_wedged_member_is_one_until_it_serves() -> None:
    wedged = frozenset({"chat-p1"})
    assert [a.kind for a in alerts(group(member("starting")), wedged)] == ["wedged"]
    assert alerts(group(member("ready")), wedged) == []


@pytest.mark.parametrize(
    "more", [{"deleting": True}, {"paused": True}, {"phase": PhaseView(name="stop members")}]
)
def test_what_somebody_ended_is_no_alert(more: dict[str, Any]) -> None:
    assert alerts(group(member("exited"), **more)) == []


def test_a_healthy_group_has_none() -> None:
    views = (member(effect=effect("good", "moves")), member("draining"), member("starting"))
    assert alerts(group(*views, canary=CanaryView(at=1))) == []


@pytest.mark.parametrize(
    ("kind", "more", "raised"),
    [
        ("exited", {}, True),
        ("unreachable", {}, True),
        ("ready", {}, False),
        ("exited", {"paused": True}, False),
    ],
)
def test_a_fault_that_was_over_before_anybody_looked_is_one_too(
    kind: str, more: dict[str, Any], raised: bool
) -> None:
    event = EventView(
        seq=1, at=1, kind=kind, group="chat", instance="chat-p1", host="h1", message="it ended"
    )
    alert = brief(group(member("ready"), **more), event)
    assert (alert is not None) == raised
    if alert is not None:
        assert (alert.id, alert.text) == ("member_dead:chat-p1", "it ended")
