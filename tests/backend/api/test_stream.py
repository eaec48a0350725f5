"""The event stream over a real socket: order, resume, and starting over when it is too late."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from backend.api.app import create_app
from backend.client.http import HttpClient
from backend.daemon import _Server
from backend.domain.views import Change
from backend.listening import config, listen
from backend.services.backend import Backend
from backend.services.bus import KEPT


@pytest.fixture
async def client(backend: Backend) -> AsyncIterator[HttpClient]:
    """A client of the backend's socket."""
    server = _Server(config(create_app(backend, "0")))
    serving = asyncio.create_task(server.serve(sockets=[listen(backend.paths.socket)]))
    client = HttpClient(backend.paths.socket)
    try:
        yield client
    finally:
        await client.aclose()
        backend.bus.close()
        server.should_exit = True
        await serving


async def _take(client: HttpClient, since: int, count: int) -> list[Change]:
    found: list[Change] = []
    async with asyncio.timeout(20):
        async for change in client.changes(since):
            found.append(change)
            if len(found) == count:
                break
    return found


async def test_changes_are_numbered_without_a_gap(client: HttpClient, backend: Backend) -> None:
    since = (await client.snapshot()).seq
    taking = asyncio.create_task(_take(client, since, 5))
    for n in range(5):
        backend.bus.publish("event", {"n": n})
    assert [(c.seq, c.body["n"]) for c in await taking] == [(since + n + 1, n) for n in range(5)]


async def test_a_stream_goes_on_where_it_broke_off(client: HttpClient, backend: Backend) -> None:
    since = (await client.snapshot()).seq
    for n in range(4):
        backend.bus.publish("event", {"n": n})
    first = await _take(client, since, 2)
    rest = await _take(client, first[-1].seq, 2)
    assert [c.body["n"] for c in first + rest] == [0, 1, 2, 3]


@pytest.mark.parametrize("late", [0, 1])
async def test_what_is_too_long_ago_starts_over_from_a_snapshot(
    client: HttpClient, backend: Backend, late: int
) -> None:
    """Changes of an earlier life of the backend, and ones that were kept no longer."""
    since = backend.bus.seq if late else 12
    for n in range(KEPT + 1 if late else 1):
        backend.bus.publish("event", {"n": n})
    (first,) = await _take(client, since, 1)
    assert first.kind == "snapshot"
    assert first.seq == backend.bus.seq


async def test_the_socket_is_the_owners_alone(client: HttpClient, backend: Backend) -> None:
    await client.health()
    assert backend.paths.socket.stat().st_mode & 0o077 == 0
    assert backend.paths.run.stat().st_mode & 0o077 == 0
