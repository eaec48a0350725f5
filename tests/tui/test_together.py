"""Two consoles and a script change one deployment at once: nothing is lost, all see the same."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from backend.api.app import create_app
from backend.bootstrap import build
from backend.client.http import HttpClient
from backend.daemon import _Server
from backend.domain.errors import Changed
from backend.listening import config, listen
from backend.paths import Paths
from backend.services.backend import Backend
from pdtui.app import Console
from tests.backend.api.test_api import DOCUMENT

pytestmark = pytest.mark.slow

EACH = 6
PATIENCE_S = 90


@asynccontextmanager
async def serving() -> AsyncIterator[Backend]:
    """A backend on a socket of its own."""
    with tempfile.TemporaryDirectory(prefix="pdtui-t-") as folder:
        paths = Paths.default(Path(folder) / "state")
        async with build(paths) as backend:
            server = _Server(config(create_app(backend, "0")))
            task = asyncio.create_task(server.serve(sockets=[listen(paths.socket)]))
            try:
                yield backend
            finally:
                backend.bus.close()
                server.should_exit = True
                await task


@asynccontextmanager
async def console(backend: Backend, folder: Path) -> AsyncIterator[Console]:
    """A whole console on the backend, loaded."""

    async def open_client() -> HttpClient:
        return HttpClient(backend.paths.socket)

    app = Console(open_client, state_dir=folder)
    async with app.run_test(size=(100, 30)):
        await until(lambda: app.store.loaded and "chat" in app.store.groups)
        yield app


async def until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not done():
            await asyncio.sleep(0.01)


async def by_console(app: Console) -> int:
    """Members added, one at a time, each on what the console shows; how often it was too late."""
    late = 0
    for _ in range(EACH):
        while True:
            seen = app.store.groups["chat"]
            counts = {"decode": seen.roles["decode"].wanted + 1}
            assert app.session is not None
            try:
                await app.session._ask(
                    lambda c, s=seen, n=counts: c.scale("chat", n, etag=s.etag)  # type: ignore[misc]
                )
                break
            except Changed:
                late += 1
                await until(lambda s=seen: app.store.groups["chat"].etag != s.etag)  # type: ignore[misc]
        await until(lambda s=seen: app.store.groups["chat"].etag != s.etag)  # type: ignore[misc]
    return late


async def by_script(client: HttpClient) -> int:
    """The same by reading and saving the whole document."""
    late = 0
    for _ in range(EACH):
        while True:
            document, etag = await client.deployment_at("chat")
            decode = document["spec"]["roles"].setdefault("decode", {})
            decode["replicas"] = decode.get("replicas", 1) + 1
            try:
                await client.apply(document, etag=etag)
                break
            except Changed:
                late += 1
    return late


async def test_no_update_is_lost_and_both_consoles_converge(tmp_path: Path) -> None:
    async with serving() as backend:
        client = HttpClient(backend.paths.socket)
        first = await client.apply(DOCUMENT, etag="")
        before = first.roles["decode"].wanted
        async with (
            console(backend, tmp_path / "a") as one,
            console(backend, tmp_path / "b") as other,
        ):
            late = await asyncio.gather(by_console(one), by_console(other), by_script(client))
            assert sum(late) > 0, "they never met: nothing was tried"
            group = backend.pictures.group("chat")
            assert group.roles["decode"].wanted == before + 3 * EACH
            assert group.version == 1 + 3 * EACH
            await until(
                lambda: all(a.store.groups["chat"].etag == group.etag for a in (one, other))
            )
            assert one.store.groups["chat"] == other.store.groups["chat"]
        await client.aclose()
        versions = [row[0] for row in await backend.store.documents("chat")]
        assert sorted(versions) == list(range(1, 2 + 3 * EACH))
