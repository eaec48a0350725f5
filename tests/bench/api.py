"""The API over its socket: a list of 1,000 instances, and how soon a subscriber hears of an event.

The rivals are the same bytes from a bare server, and the same line over a bare socket.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx

from backend.api.app import create_app
from backend.bootstrap import build
from backend.client.http import HttpClient
from backend.daemon import _Server
from backend.domain.documents import parse_deployment
from backend.domain.group import Formed, Group, Instance
from backend.domain.instance import Band
from backend.domain.revision import revision
from backend.listening import config, listen
from backend.paths import Paths
from backend.services.backend import Backend
from tests.bench.runner import Bench, BenchError

GROUPS = 100
ROLES = (*["prefill"] * 5, *["decode"] * 4, "router")
INSTANCES = GROUPS * len(ROLES)
T = TypeVar("T")


class Stage:
    """A backend with many instances and a bare server, on an event loop of a thread's own; another
    one asks them."""

    def __init__(self) -> None:
        self._serving, self._asking = _Loop(), _Loop()
        self._stack = AsyncExitStack()
        self._serving.do(self._up())
        self._asking.do(self._connect())

    def do(self, work: Coroutine[Any, Any, float]) -> float:
        """Run where questions are asked; its answer."""
        return self._asking.do(work)

    def close(self) -> None:
        """End all of it."""
        self._asking.do(self._disconnect())
        self._serving.do(self._stack.aclose())
        self._asking.close()
        self._serving.close()

    async def _up(self) -> None:
        self._folder = Path(
            self._stack.enter_context(tempfile.TemporaryDirectory(prefix="pdtui-b-"))
        )
        paths = Paths.default(self._folder / "s")
        self._backend = await self._stack.enter_async_context(build(paths))
        await fill(self._backend)
        app = create_app(self._backend, "0")
        await self._stack.enter_async_context(_served(app, self._backend.paths.socket))
        await self._stack.enter_async_context(_served(self._bare(), self._folder / "bare.sock"))

    async def _connect(self) -> None:
        self._http = _client(self._backend.paths.socket)
        self._plain = _client(self._folder / "bare.sock")
        answer = await self._http.get("/v1/instances")
        self._body, self.count = answer.content, len(answer.json())

    async def _disconnect(self) -> None:
        await self._http.aclose()
        await self._plain.aclose()

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
            self._serving.call(self._backend.bus.publish, "event", {"mark": mark})
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


Question = Callable[[Stage], Coroutine[Any, Any, float]]


class _Loop:
    """An event loop on a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it there; its answer."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(120)

    def call(self, what: Callable[..., object], *args: object) -> None:
        """Call it there, soon."""
        self._loop.call_soon_threadsafe(what, *args)

    def close(self) -> None:
        """End the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)


async def fill(backend: Backend) -> None:
    """Groups of as many members as they want, each on a host that does not answer: there is nothing
    to do about them."""
    catalogue = backend.world.catalogue()
    recipe = catalogue.model_dump(mode="json")
    for number in range(GROUPS):
        name, host = f"g{number:03}", f"h{number:03}"
        await backend.hosts.put({"name": host, "address": "127.0.0.1", "port": 1}, "bench")
        document = parse_deployment(
            {
                "apiVersion": "pdtui/v1",
                "kind": "Deployment",
                "metadata": {"name": name},
                "spec": {
                    "model": "/m",
                    "engine": "vllm",
                    "disaggregation": {"mode": "vllm-nixl"},
                    "roles": {r: {"replicas": ROLES.count(r)} for r in ("prefill", "decode")},
                },
            }
        )
        digest = revision(document, catalogue)
        formed = Formed(revision=digest, document=document, recipe=recipe)
        async with backend.store.write() as tx:
            tx.put_group(
                Group(
                    name=name,
                    version=1,
                    document=document,
                    revision=digest,
                    formed=formed,
                    applied={r: ROLES.count(r) for r in ("prefill", "decode")},
                )
            )
            for m, role in enumerate(ROLES):
                tx.put_instance(
                    Instance(
                        id=f"{name}-{m}", group=name, host=host, revision=digest, role=role,
                        state="unreachable", bands=(Band(name="http", base=40000 + m),),
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
    """The API's benches; each starts its backend with the first measure."""
    return [
        _bench(
            name=f"api: list of {INSTANCES} instances",
            ours=Stage.listed,
            rival_name="the same bytes, bare server",
            rival=Stage.bare_listed,
            aim="under 50 ms",
        ),
        _bench(
            name="api: event to subscriber",
            ours=Stage.heard,
            rival_name="a line, bare socket",
            rival=Stage.bare_heard,
            aim="under 20 ms",
        ),
    ]


def _bench(name: str, ours: Question, rival_name: str, rival: Question, aim: str) -> Bench:
    stage: list[Stage] = []

    def ask(question: Question) -> float:
        if not stage:
            stage.append(Stage())
            if stage[0].count != INSTANCES:
                raise BenchError(f"{stage[0].count} instances are listed")
        return stage[0].do(question(stage[0]))

    def after() -> None:
        while stage:
            stage.pop().close()

    return Bench(
        name=name, ours=lambda: ask(ours), rival_name=rival_name, rival=lambda: ask(rival),
        aim=aim, rounds=15, after=after,
    )  # fmt: skip
