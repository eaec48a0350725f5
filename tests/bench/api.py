"""The API over its socket: a list of 1,000 instances, and how soon a subscriber hears of an event.

The rivals are the same bytes from a bare server, and the same line over a bare socket.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from backend.api.app import create_app
from backend.bootstrap import build
from backend.client.http import HttpClient
from backend.daemon import _Server
from backend.domain.documents import parse_deployment
from backend.domain.group import Group, Instance
from backend.domain.instance import Band
from backend.listening import config, listen
from backend.paths import Paths
from backend.services.backend import Backend
from tests.bench.runner import Bench, BenchError

GROUPS, MEMBERS = 100, 10


class Stage:
    """A backend with many instances and a bare server, on an event loop of a thread's own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._stack = AsyncExitStack()
        self.do(self._up())

    def do(self, work: Coroutine[Any, Any, float]) -> float:
        """Run on the loop; its answer."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(120)

    async def _up(self) -> float:
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="pdtui-b-")))
        self._backend = await self._stack.enter_async_context(build(Paths.default(folder / "s")))
        await fill(self._backend)
        app = create_app(self._backend, "0")
        await self._stack.enter_async_context(_served(app, self._backend.paths.socket))
        self._http = await self._stack.enter_async_context(_client(self._backend.paths.socket))
        self._body = (await self._http.get("/v1/instances")).content
        self.count = len((await self._http.get("/v1/instances")).json())
        await self._stack.enter_async_context(_served(self._bare(), folder / "bare.sock"))
        self._plain = await self._stack.enter_async_context(_client(folder / "bare.sock"))
        return 0.0

    def _bare(self) -> Any:
        """An application that has the list's bytes at hand."""

        async def bare(scope: Any, receive: Any, send: Any) -> None:
            headers = [(b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": self._body})

        return bare

    async def listed(self) -> float:
        """Seconds of one list of all instances."""
        return await _timed(self._http, "/v1/instances", self._body)

    async def bare_listed(self) -> float:
        """Seconds of the same bytes."""
        return await _timed(self._plain, "/", self._body)

    async def heard(self) -> float:
        """Seconds from an event's publication until a client's stream gives it."""
        client = HttpClient(self._backend.paths.socket)
        try:
            mark = time.perf_counter_ns()
            hearing = asyncio.ensure_future(_heard(client, self._backend.bus.seq, mark))
            while not client.connected:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)
            began = time.perf_counter()
            self._backend.bus.publish("event", {"mark": mark})
            async with asyncio.timeout(20):
                await hearing
            return time.perf_counter() - began
        finally:
            await client.aclose()

    async def bare_heard(self) -> float:
        """Seconds of a line between two ends of a socket pair."""
        import socket

        here, there = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=here)
        _, sender = await asyncio.open_connection(sock=there)
        began = time.perf_counter()
        sender.write(b'data: {"seq": 1, "kind": "event", "body": {"n": 1}}\n')
        await reader.readline()
        took = time.perf_counter() - began
        sender.close()
        writer.close()
        return took


async def fill(backend: Backend) -> None:
    """Groups of as many ready instances as they want, on a host that does not answer, so that
    nobody acts on them."""
    await backend.hosts.put({"name": "away", "address": "127.0.0.1", "port": 1}, "bench")
    for number in range(GROUPS):
        name = f"g{number:03}"
        document = parse_deployment(
            {
                "apiVersion": "pdtui/v1",
                "kind": "Deployment",
                "metadata": {"name": name},
                "spec": {
                    "model": "/m",
                    "engine": "vllm",
                    "disaggregation": {"mode": "vllm-nixl"},
                    "roles": {r: {"replicas": MEMBERS // 2} for r in ("prefill", "decode")},
                },
            }
        )
        async with backend.store.write() as tx:
            tx.put_group(
                Group(name=name, version=1, document=document, revision="r", deleting=False)
            )
            for m in range(MEMBERS):
                tx.put_instance(
                    Instance(
                        id=f"{name}-{m}", group=name, host="away", revision="r",
                        role="prefill" if m % 2 else "decode", state="ready",
                        bands=(Band(name="http", base=40000 + m),),
                    )
                )  # fmt: skip


async def _heard(client: HttpClient, since: int, mark: int) -> None:
    """Follow the stream until the marked event comes."""
    async with aclosing(client.changes(since)) as stream:
        async for change in stream:
            if change.body.get("mark") == mark:
                return


@asynccontextmanager
async def _served(app: Any, path: Path) -> AsyncIterator[None]:
    server = _Server(config(app))
    task = asyncio.create_task(server.serve(sockets=[listen(path)]))
    try:
        yield
    finally:
        server.should_exit = True
        await task


def _client(path: Path) -> httpx.AsyncClient:
    transport = httpx.AsyncHTTPTransport(uds=str(path))
    return httpx.AsyncClient(
        transport=transport, base_url="http://pdtui", trust_env=False, timeout=60
    )


async def _timed(http: httpx.AsyncClient, path: str, expected: bytes) -> float:
    began = time.perf_counter()
    answer = await http.get(path)
    took = time.perf_counter() - began
    if answer.status_code != 200 or abs(len(answer.content) - len(expected)) > len(expected) / 10:
        raise BenchError(f"{path} answered {answer.status_code}, {len(answer.content)} bytes")
    return took


def benches() -> list[Bench]:
    """The API's benches; the backend is started with the first measure."""
    stage: list[Stage] = []

    def on() -> Stage:
        if not stage:
            stage.append(Stage())
            if stage[0].count != GROUPS * MEMBERS:
                raise BenchError(f"{stage[0].count} instances are listed")
        return stage[0]

    return [
        Bench(
            name=f"api: list of {GROUPS * MEMBERS} instances",
            ours=lambda: on().do(on().listed()),
            rival_name="the same bytes, bare server",
            rival=lambda: on().do(on().bare_listed()),
            aim="under 50 ms",
            rounds=15,
        ),
        Bench(
            name="api: event to subscriber",
            ours=lambda: on().do(on().heard()),
            rival_name="a line, bare socket",
            rival=lambda: on().do(on().bare_heard()),
            aim="under 20 ms",
            rounds=15,
        ),
    ]
