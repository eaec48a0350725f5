"""The SSH fixtures, and runtimes on one embedded host whose processes all end with the test."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from backend.adapters.process import ClaimOrder, ProcessRuntime
from backend.adapters.ssh.pool import SshPool
from backend.domain.host import Host
from backend.domain.instance import LaunchSpec, ProcessStatus
from tests.backend.ssh.conftest import (
    Machine,
    client_key,
    host,
    machine,
    machine_at,
    pool,
    trusted,
)

__all__ = ["client_key", "host", "machine", "machine_at", "pool", "trusted"]


def in_home(home: Path) -> set[int]:
    """Processes that were started in an instance directory under `home`."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            if Path(os.readlink(entry / "cwd")).is_relative_to(home / ".pdtui"):
                found.add(int(entry.name))
    return found


def alive(pid: int) -> bool:
    """Whether the process lives and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now, below those that the kernel hands out by itself."""
    ports: list[int] = []
    while len(ports) < count:
        port = random.randrange(10_240, 32_000)
        with contextlib.suppress(OSError), socket.socket() as sock:
            sock.bind(("127.0.0.1", port))
            ports.append(port)
    return ports


class Rig:
    """One owner's runtime on one host, with the calls that tests repeat."""

    def __init__(self, runtime: ProcessRuntime, host: Host, home: Path) -> None:
        self.runtime, self.host, self.home = runtime, host, home

    def folder(self, instance: str = "a") -> Path:
        return self.home / ".pdtui" / "instances" / instance

    def spec(self, script: str, **changes: object) -> LaunchSpec:
        """A launch of `sh -c script` on a port of its own."""
        port = free_ports(1)[0]
        body = {"argv": ("sh", "-c", script), "address": "127.0.0.1", "port": port}
        return LaunchSpec.model_validate(body | changes)

    async def claim(self, instance: str = "a", *ports: int) -> None:
        await self.runtime.claim(self.host, [ClaimOrder(instance, ports=ports)])

    async def start(
        self, script: str, instance: str = "a", generation: int = 1, **changes: object
    ) -> ProcessStatus:
        """Claim, and start a script."""
        await self.claim(instance)
        return await self.runtime.start(
            self.host, instance, generation, self.spec(script, **changes), {"role": "prefill"}
        )

    async def until(self, state: str, instance: str = "a") -> ProcessStatus:
        """Wait for the instance's state."""
        while True:
            status = await self.runtime.status(self.host, instance)
            if status.state == state:
                return status
            await asyncio.sleep(0.05)

    async def text(self, instance: str = "a") -> str:
        return (await self.runtime.log(self.host, instance)).text

    async def says(self, words: str, instance: str = "a") -> str:
        """Wait until the log holds the words."""
        while words not in (text := await self.text(instance)):
            await asyncio.sleep(0.05)
        return text


@pytest.fixture
async def rig(pool: SshPool, machine: Machine, host: Host) -> AsyncIterator[Rig]:
    """The owner `me` on one host, rotating logs quickly."""
    yield Rig(ProcessRuntime(pool, "me", log_limit=2000, rotate_every_s=0.1), host, machine.home)
    for pid in in_home(machine.home):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def rival(pool: SshPool, rig: Rig) -> Rig:
    """Another owner on the same host."""
    return Rig(ProcessRuntime(pool, "rival"), rig.host, rig.home)
