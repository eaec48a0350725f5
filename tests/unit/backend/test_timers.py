"""Patience set by the environment."""

from __future__ import annotations

import pytest

from backend.daemon import timers
from backend.domain.decide import Timers
from backend.domain.errors import Invalid


def test_each_timer_is_a_setting() -> None:
    found = timers({"PDTUI_START_LIMIT_S": "900", "PDTUI_DRAIN_CAP_S": "2.5", "HOME": "/"})
    assert found == Timers(start_limit_s=900.0, drain_cap_s=2.5)
    assert timers({"PDTUI_START_LIMIT_S": ""}) == Timers()


@pytest.mark.parametrize("text", ["soon", "-1", "nan", "inf"])
def test_what_is_no_number_of_seconds_is_refused(text: str) -> None:
    with pytest.raises(Invalid) as caught:
        timers({"PDTUI_HANG_LIMIT_S": text})
    assert repr(text) in caught.value.problem.message
