"""A laboratory per test: hosts, a backend, and nothing left of them afterwards."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.live.lab import Lab


@pytest.fixture
async def lab() -> AsyncIterator[Lab]:
    """Three hosts of two accelerators, known to the backend."""
    with tempfile.TemporaryDirectory(prefix="pdtui-lab-") as folder:
        lab = Lab(Path(folder))
        await lab.up()
        try:
            yield lab
        finally:
            await lab.down()
        assert lab.living() == []


@pytest.fixture(scope="module")
async def module_lab() -> AsyncIterator[Lab]:
    """One laboratory for the tests of a module that leave nothing behind."""
    with tempfile.TemporaryDirectory(prefix="pdtui-lab-") as folder:
        lab = Lab(Path(folder))
        await lab.up()
        try:
            await lab.add_hosts()
            yield lab
        finally:
            await lab.down()


@pytest.fixture
def shared_lab(module_lab: Lab) -> Lab:
    """The module's laboratory."""
    return module_lab
