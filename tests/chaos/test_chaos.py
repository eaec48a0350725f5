"""Fifty steps of chaos, and the seeds that once found something."""

from __future__ import annotations

import pytest

from tests.chaos.runner import PLAN, Chaos
from tests.live.lab import Lab

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.mark.lab_plan(PLAN)
async def test_fifty_steps_break_no_promise(lab: Lab) -> None:
    chaos = Chaos(lab, seed=1)
    await chaos.run(50)
    assert chaos.quiet == 5
    assert len(chaos.story) >= 55
    assert lab.watch.registries > 0
