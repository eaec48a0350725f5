"""A sandbox of two hosts, and a client that trusts exactly its keys."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import asyncssh
import pytest

from backend.domain.host import Host
from backend.sandbox.hosts import Sandbox
from backend.sandbox.plan import default_plans

Connect = Callable[..., Awaitable[asyncssh.SSHClientConnection]]


@pytest.fixture
async def sandbox(tmp_path: Path) -> AsyncIterator[Sandbox]:
    async with Sandbox(tmp_path / "sandbox", default_plans(2)) as running:
        yield running


async def dial(host: Host, known_hosts: Path) -> asyncssh.SSHClientConnection:
    """A strict connection to one inventory entry."""
    return await asyncssh.connect(
        host.address, host.port, username=host.user, client_keys=list(host.identity_files),
        known_hosts=str(known_hosts), config=None, encoding=None, login_timeout=10,
        connect_timeout=10,
    )  # fmt: skip


@pytest.fixture
async def connect(sandbox: Sandbox) -> AsyncIterator[Connect]:
    made: list[asyncssh.SSHClientConnection] = []

    async def one(name: str = "node1") -> asyncssh.SSHClientConnection:
        host = next(h for h in sandbox.inventory() if h.name == name)
        connection = await dial(host, sandbox.known_hosts)
        made.append(connection)
        return connection

    yield one
    for connection in made:
        connection.close()
        await connection.wait_closed()
