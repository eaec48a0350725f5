"""Hosts, modes, the snapshot and the event stream."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Request
from fastapi.responses import StreamingResponse

from backend.api.deps import Actor, TheBackend
from backend.api.wire import API_VERSION, Document, KeyBody
from backend.domain.errors import Invalid
from backend.domain.views import Change, Health, HostView, ModeView, Snapshot
from backend.services.backend import Backend
from backend.services.pictures import reset

router = APIRouter(tags=["system"])

HEARTBEAT_S = 10.0


@router.get("/health")
async def health(request: Request, backend: TheBackend) -> Health:
    """Who answers."""
    return Health(
        version=request.app.state.version,
        api=API_VERSION,
        pid=os.getpid(),
        state_dir=str(backend.paths.state),
        embedded=backend.settings.embedded,
        hosts=len(backend.store.hosts),
        groups=len(backend.store.groups),
    )


@router.get("/snapshot")
async def snapshot(backend: TheBackend) -> Snapshot:
    """Everything there is, and the event number to go on from."""
    return await backend.pictures.snapshot()


@router.get("/modes")
async def modes(backend: TheBackend) -> list[ModeView]:
    """The catalogue's modes."""
    return list(backend.pictures.modes())


@router.get("/hosts")
async def list_hosts(backend: TheBackend) -> list[HostView]:
    """All hosts, by name."""
    return list(backend.pictures.hosts())


@router.put("/hosts/{name}")
async def put_host(name: str, body: Document, backend: TheBackend, actor: Actor) -> HostView:
    """Add or replace a host, and look at it."""
    if body.get("name", name) != name:
        raise Invalid.of(
            "structure.name",
            f"the host is named {body['name']!r}, the address says {name!r}.",
            path="name",
            values={"body": body["name"], "address": name},
            remedy="Make them the same.",
        )
    return await backend.hosts.put({**body, "name": name}, actor)


@router.post("/hosts/{name}/test")
async def test_host(name: str, backend: TheBackend) -> HostView:
    """Look at a host now; an error says what the look met."""
    return await backend.hosts.test(name)


@router.post("/hosts/{name}/accept-key")
async def accept_key(name: str, body: KeyBody, backend: TheBackend, actor: Actor) -> HostView:
    """Accept the host key that the host shows, if it has this fingerprint."""
    return await backend.hosts.accept_key(name, body.fingerprint, actor)


@router.delete("/hosts/{name}", status_code=204)
async def delete_host(name: str, backend: TheBackend, actor: Actor) -> None:
    """Remove a host that carries nothing of ours."""
    await backend.hosts.drop(name, actor)


@router.get("/changes")
async def changes(
    backend: TheBackend,
    since: int | None = None,
    last_event_id: Annotated[str | None, Header()] = None,
) -> StreamingResponse:
    """Server-sent events: every change after `Last-Event-ID` (or `since`), then new ones.

    When that is too long ago the first event is a `snapshot` to start over from.
    """
    start = since
    if last_event_id is not None and last_event_id.isdigit():
        start = int(last_event_id)
    stream = _stream(backend, backend.bus.seq if start is None else start)
    return StreamingResponse(stream, media_type="text/event-stream")


async def _stream(backend: Backend, since: int) -> AsyncIterator[bytes]:
    if not backend.bus.resumable(since):
        fresh = await backend.pictures.snapshot()
        yield _frame(reset(fresh))
        since = fresh.seq
    changes = backend.bus.subscribe(since)
    pending: asyncio.Future[Change] | None = None
    try:
        yield b": hello\n\n"
        while True:
            pending = pending or asyncio.ensure_future(anext(changes))
            done, _ = await asyncio.wait({pending}, timeout=HEARTBEAT_S)
            if not done:
                yield b": alive\n\n"
                continue
            try:
                change = pending.result()
            except StopAsyncIteration:
                return
            pending = None
            yield _frame(change)
    finally:
        if pending is not None:
            pending.cancel()
            await asyncio.gather(pending, return_exceptions=True)
        await changes.aclose()  # type: ignore[attr-defined]


def _frame(change: Change) -> bytes:
    body = change.model_dump_json()
    return f"id: {change.seq}\nevent: {change.kind}\ndata: {body}\n\n".encode()
