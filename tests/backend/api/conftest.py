"""A whole backend on a folder of its own, asked in this process or over its socket."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from backend.api.app import create_app
from backend.bootstrap import build
from backend.paths import Paths
from backend.services.backend import Backend
from tests.backend.api.asking import Careful


@pytest.fixture
async def backend() -> AsyncIterator[Backend]:
    """Running, without hosts."""
    with tempfile.TemporaryDirectory(prefix="pdtui-api-") as folder:
        paths = Paths.default(Path(folder) / "state")
        async with build(paths) as running:
            yield running


@pytest.fixture
async def http(backend: Backend) -> AsyncIterator[httpx.AsyncClient]:
    """The API without a socket."""
    transport = httpx.ASGITransport(create_app(backend, "0"))
    async with Careful(transport=transport, base_url="http://pdtui/v1") as client:
        yield client
