"""The SSH fixtures, and a runtime on one embedded host that ends every process it started."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from backend.adapters.process import ProcessRuntime
from backend.adapters.ssh.pool import SshPool
from backend.domain.host import Host
from tests.backend.ssh.conftest import (
    Machine,
    client_key,
    host,
    machine,
    machine_at,
    pool,
)

__all__ = ["client_key", "host", "machine", "machine_at", "pool"]


def end_leftovers(home: Path) -> None:
    """Kill what a failed test left: processes whose working directory lies in the home."""
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            if Path(os.readlink(entry / "cwd")).is_relative_to(home):
                os.kill(int(entry.name), signal.SIGKILL)


@pytest.fixture
async def runtime(pool: SshPool, machine: Machine) -> AsyncIterator[ProcessRuntime]:
    """A runtime of the owner `me`, rotating logs quickly."""
    yield ProcessRuntime(pool, "me", log_limit=2000, rotate_every_s=0.2)
    await asyncio.to_thread(end_leftovers, machine.home)


@pytest.fixture
def claimed(runtime: ProcessRuntime, host: Host) -> Host:
    """The host's entry."""
    return host
