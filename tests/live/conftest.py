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
