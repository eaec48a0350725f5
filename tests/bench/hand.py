"""What a person does by hand with `ssh` and `curl`: a process for each step, a look every 50 ms."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from shlex import join
from time import monotonic
from typing import Any

from tests.bench.runner import BenchError

LOOK_S = 0.05
PATIENCE_S = 60.0


async def until(ask: Callable[[], Awaitable[bool]], pause: float = LOOK_S) -> float:
    """The monotonic time at which the answer was yes. Raises TimeoutError."""
    async with asyncio.timeout(PATIENCE_S):
        while not await ask():
            await asyncio.sleep(pause)
    return monotonic()


class Hand:
    """One person at a shell, who may log in to one host."""

    def __init__(self, host: Mapping[str, Any], known_hosts: Path) -> None:
        self._login = [
            "ssh", "-F", "none", "-o", "BatchMode=yes", "-o", f"UserKnownHostsFile={known_hosts}",
            "-o", "IdentitiesOnly=yes", "-i", host["identity_files"][0], "-p", str(host["port"]),
            f"{host['user']}@{host['address']}",
        ]  # fmt: skip

    async def start(self, argv: Sequence[str], env: Mapping[str, str], folder: Path) -> int:
        """Start a program on the host with just this environment; its pid, and process group."""
        line = join(["setsid", "env", "-i", *(f"{k}={v}" for k, v in env.items()), *argv])
        quiet = ">/dev/null 2>&1 </dev/null"
        there = f"cd {join([str(folder)])} && {{ {line} {quiet} & echo $!; }}"
        return int(await _done([*self._login, there]))

    async def ok(self, url: str) -> bool:
        """Whether the address answers well."""
        try:
            await _done(["curl", "-sf", "--max-time", "5", url])
        except BenchError:
            return False
        return True

    async def post(self, url: str, row: Mapping[str, Any]) -> None:
        """Send it. Raises BenchError when it is not taken."""
        await _done(["curl", "-sf", "--max-time", "30", "--json", json.dumps(row), url])

    async def listed(self, router: str, member: str) -> bool:
        """Whether a router lists a member."""
        rows = json.loads(await _done(["curl", "-sf", "--max-time", "5", f"{router}/workers"]))
        return any(r["url"] == member for r in rows["workers"])

    async def add(self, router: str, member: str, role: str) -> None:
        """Make the member one of the router's, and see that it is."""
        row = {"url": member, "model_id": "chat", "worker_type": role}
        await self.post(f"{router}/workers", row)
        await until(lambda: self.listed(router, member))


async def _done(argv: Sequence[str]) -> str:
    process = await asyncio.create_subprocess_exec(
        *argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    async with asyncio.timeout(PATIENCE_S):
        said, complaint = await process.communicate()
    if process.returncode:
        raise BenchError(f"{argv[0]} ended with {process.returncode}: {complaint.decode().strip()}")
    return said.decode()
