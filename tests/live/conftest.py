"""A laboratory per test: hosts, a backend, and nothing left of them afterwards."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.live.lab import Lab


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marker that this file answers."""
    config.addinivalue_line("markers", "lab_plan(plan): the hosts of the test's laboratory")


@pytest.fixture
async def lab(request: pytest.FixtureRequest) -> AsyncIterator[Lab]:
    """Three hosts of two accelerators, or those of the test's `lab_plan`."""
    marker = request.node.get_closest_marker("lab_plan")
    with tempfile.TemporaryDirectory(prefix="pdtui-lab-") as folder:
        lab = Lab(Path(folder))
        await lab.up(marker.args[0] if marker else None)
        try:
            yield lab
        finally:
            await lab.down()
        assert lab.living() == []
