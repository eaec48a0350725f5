"""What is seen of an instance, and the state that follows."""

from __future__ import annotations

from typing import Any

import pytest

from backend.domain.group import Instance
from backend.domain.instance import ProcessStatus
from backend.domain.transitions import BACKOFF_S, CRASH_LOOP, Seen, backoff, observe
from tests.unit.domain.pictures import NOW, one

LIVES = {"process": ProcessStatus(instance="p1", state="running", generation=1, pid=7)}
ENDED = {"process": ProcessStatus(instance="p1", state="exited", generation=1, exit_code=1)}
WELL: dict[str, Any] = {"host_up": True, "generation": 1, "healthy_streak": 1, **LIVES}
SICK: dict[str, Any] = {"host_up": True, "generation": 1, "failed_streak": 3, **LIVES}
AWAY: dict[str, Any] = {"host_up": False}
GONE: dict[str, Any] = {"host_up": True, **ENDED}

TABLE: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("starting", {}, WELL, "ready"),
    ("pending", {}, WELL, "ready"),  # started by a backend that died before it wrote that down
    ("pending", {}, {"host_up": True, **LIVES}, "starting"),
    ("starting", {}, SICK, "starting"),
    ("ready", {"served": 1}, SICK, "unhealthy"),
    ("ready", {"served": 1}, SICK | {"failed_streak": 2}, "ready"),
    ("ready", {"served": 1}, SICK | {"generation": 0}, "ready"),
    ("unhealthy", {"served": 1}, WELL, "ready"),
    ("starting", {}, AWAY, "unreachable"),
    ("ready", {"served": 1}, AWAY, "unreachable"),
    ("unhealthy", {"served": 1}, AWAY, "unreachable"),
    ("pending", {}, AWAY, "pending"),
    ("exited", {}, AWAY, "exited"),
    ("crash_loop", {}, AWAY, "crash_loop"),
    ("draining", {}, AWAY, "draining"),
    ("stopping", {}, AWAY, "stopping"),
    ("unreachable", {"served": 1}, WELL, "ready"),
    ("unreachable", {"served": 1}, {"host_up": True, **LIVES}, "starting"),
    ("unreachable", {"served": 1}, {"host_up": True}, "unreachable"),
    ("unreachable", {"served": 1}, GONE, "exited"),
    ("starting", {}, GONE, "exited"),
    ("ready", {"served": 1}, GONE, "exited"),
    ("ready", {"served": 1}, {"host_up": None}, "ready"),
    ("exited", {}, GONE, "exited"),
    ("exited", {}, WELL | {"process": None}, "exited"),
    ("starting", {"failures": 2}, GONE, "crash_loop"),
    ("starting", {"failures": 2, "served": 3, "generation": 4}, GONE, "starting"),
    ("crash_loop", {}, WELL, "crash_loop"),
    ("draining", {}, GONE, "draining"),
    ("stopping", {}, WELL, "stopping"),
]


@pytest.mark.parametrize(("state", "about", "seen", "after"), TABLE)
def test_state(state: str, about: dict[str, Any], seen: dict[str, Any], after: str) -> None:
    before = one("p1", state, **about)
    found = observe(before, Seen(**seen), NOW)
    assert found.state == after
    assert found.since == (before.since if after == state else NOW)


def test_what_did_not_change_is_the_same_object() -> None:
    before = one("p1", "ready", served=1)
    assert observe(before, Seen(**WELL), NOW) is before
    assert observe(before, Seen(), NOW) is before


def test_a_generation_that_is_not_its_own_says_nothing() -> None:
    before = one("p1", "starting", generation=2)
    assert observe(before, Seen(**GONE), NOW) is before
    assert observe(before, Seen(**WELL), NOW) is before


def test_answers_of_an_earlier_start_do_not_make_it_ready() -> None:
    process = ProcessStatus(instance="p1", state="running", generation=2)
    before = one("p1", "starting", generation=2)
    seen = Seen(host_up=True, process=process, generation=1, healthy_streak=9)
    assert observe(before, seen, NOW).state == "starting"


def test_serving_forgets_failures() -> None:
    ready = observe(one("p1", "starting", failures=2), Seen(**WELL), NOW)
    assert (ready.failures, ready.served) == (0, 1)
    ended = observe(ready, Seen(**GONE), NOW)
    assert (ended.failures, ended.next_start) == (0, NOW)


def test_three_starts_that_never_serve_are_a_crash_loop() -> None:
    found: Instance = one("p1", "starting")
    waits = []
    while found.state != "crash_loop":
        found = observe(found.model_copy(update={"state": "starting"}), Seen(**GONE), NOW)
        waits.append(found.next_start)
    assert waits == [NOW + 10, NOW + 20, None]
    assert found.failures == CRASH_LOOP
    assert found.note == "ended with exit code 1"


def test_one_that_once_served_is_tried_for_ever_but_ever_slower() -> None:
    found = one("p1", "starting", generation=5, served=2, failures=40)
    process = ProcessStatus(instance="p1", state="lost", generation=5)
    ended = observe(found, Seen(host_up=True, process=process), NOW)
    assert (ended.state, ended.next_start) == ("exited", NOW + 300)
    assert ended.note == "ended, and nothing on the host says why"


def test_a_silent_host_does_not_count_as_another_failure() -> None:
    ended = observe(one("p1", "starting"), Seen(**GONE), NOW)
    for _ in range(5):
        ended = observe(ended, Seen(**AWAY), NOW)
        ended = observe(ended, Seen(**GONE), NOW)
    assert (ended.state, ended.failures) == ("exited", 1)


def test_a_ready_routers_note_stays_until_somebody_clears_it() -> None:
    before = one("r", "ready", served=1, note="the registry lacks p2")
    process = ProcessStatus(instance="r", state="running", generation=1, pid=7)
    assert observe(before, Seen(**WELL | {"process": process}), NOW).note == "the registry lacks p2"
    sick = before.model_copy(update={"state": "unhealthy"})
    assert observe(sick, Seen(**WELL | {"process": process}), NOW).note == ""


def test_a_draining_member_that_ends_is_seen_to_have_ended() -> None:
    after = observe(one("p1", "draining"), Seen(**GONE), NOW)
    assert after.process is not None
    assert (after.state, after.process.state) == ("draining", "exited")


@pytest.mark.parametrize(
    ("process", "note"),
    [
        ({"state": "exited", "exit_code": 137}, "ended by signal 9"),
        ({"state": "exited", "exit_code": 0}, "ended with exit code 0"),
        (
            {"state": "absent"},
            "its instance directory is gone from the host; what is left of it is ended",
        ),
        ({"state": "lost"}, "ended, and nothing on the host says why"),
    ],
)
def test_why_it_ended(process: dict[str, Any], note: str) -> None:
    seen = ProcessStatus(instance="p1", generation=1, **process)
    assert observe(one("p1", "starting"), Seen(host_up=True, process=seen), NOW).note == note


@pytest.mark.parametrize(("failures", "wait"), [(-1, 0), (0, 0), (1, 10), (6, 300), (99, 300)])
def test_backoff(failures: int, wait: float) -> None:
    assert backoff(failures) == wait
    assert sorted(BACKOFF_S) == list(BACKOFF_S)
