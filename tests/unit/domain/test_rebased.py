"""Stored times after a clock that was set back: nothing waits for a day that is long over."""

from __future__ import annotations

from backend.domain import acts
from tests.unit.domain.pictures import NOW, one


def test_times_ahead_come_back_to_now() -> None:
    future = NOW + 86400
    i = one("p1", "exited", since=future, next_start=future)
    back = acts.rebased(i, NOW)
    assert (back.since, back.next_start) == (NOW, NOW + 300)
    leaving = acts.rebased(one("p1", "draining", draining_since=future), NOW)
    assert leaving.draining_since == NOW


def test_times_that_make_sense_stay() -> None:
    for i in (one("p1"), one("p1", "draining"), one("p1", "exited", next_start=NOW + 300)):
        assert acts.rebased(i, NOW) is i
