"""Daemons as processes of their own, on a state directory of the test's."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from backend.client.http import HttpClient
from backend.domain.errors import PdError
from backend.paths import Paths

PATIENCE_S = 90
Process = asyncio.subprocess.Process


@asynccontextmanager
async def state() -> AsyncIterator[Path]:
    """A state directory whose socket's path is short enough."""
    with tempfile.TemporaryDirectory(prefix="pdtui-d-") as folder:
        yield Path(folder) / "state"


async def start(argv: list[str], **env: str) -> Process:
    """`python -m ARGV...`; its stdin stays open, its stderr can be read."""
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", *argv,
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        env={**os.environ, **env},
    )  # fmt: skip


async def daemon(state_dir: Path, *options: str, **env: str) -> Process:
    """`pdtui daemon`, not yet waited for."""
    return await start(["pdtui", "--state-dir", str(state_dir), "daemon", *options], **env)


async def answering(state_dir: Path, pid: int | None = None) -> int:
    """The pid of the backend that answers, once it is that of `pid` where one is given."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            client = HttpClient(Paths.default(state_dir).socket)
            try:
                found = (await client.health()).pid
                if pid in (None, found):
                    return found
            except PdError:
                pass
            finally:
                await client.aclose()
            await asyncio.sleep(0.1)


async def end(process: Process) -> int:
    """The exit code after SIGTERM."""
    if process.returncode is None:
        process.terminate()
    return await ended(process)


async def ended(process: Process) -> int:
    """The exit code, once it ends by itself."""
    async with asyncio.timeout(PATIENCE_S):
        await process.communicate()
    assert process.returncode is not None
    return process.returncode
