"""Hosts, modes, the snapshot and the event stream."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from backend.api.deps import ROLE, Actor, Expected, TheBackend, Who
from backend.api.pages import Paged
from backend.api.wire import API_VERSION, Document, HandoverBody, KeyBody
from backend.domain.errors import Denied, Invalid
from backend.domain.views import Change, Health, HostView, ModeView, Snapshot
from backend.services.backend import Backend
from backend.services.pictures import reset

router = APIRouter(tags=["system"])

open_router = APIRouter(tags=["system"])
HEARTBEAT_S = 10.0
log = logging.getLogger(__name__)
STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A stream of changes, each with its number as its id.",
        "content": {
            "text/event-stream": {
                "schema": {"type": "string"},
                "example": 'id: 7\nevent: group\ndata: {"seq": 7, "kind": "group", "body": {}}\n\n',
            }
        },
    }
}


@open_router.get("/healthz", status_code=204)
async def alive() -> Response:
    """Whether somebody answers; for load balancers, also without a token."""
    return Response(status_code=204)


@router.get("/health")
async def health(request: Request, backend: TheBackend, who: Who) -> Health:
    """Who answers, and whether everything works."""
    return Health(
        status=(backend.ailment() and "degraded") or "ok",
        note=backend.ailment(),
        role=who.role,
        read_only=who.role == "read",
        version=request.app.state.version,
        api=API_VERSION,
        pid=os.getpid(),
        state_dir=str(backend.paths.state),
        embedded=backend.settings.embedded,
        hosts=len(backend.store.hosts),
        groups=len(backend.store.groups),
    )


@router.post("/handover", status_code=202, openapi_extra={ROLE: "admin"})
async def hand_over(body: HandoverBody, backend: TheBackend, who: Who) -> None:
    """End this backend, so that another on this machine takes its place; the groups run on."""
    if who.remote or backend.stop is None:
        raise Denied.of(
            "daemon.handover",
            "a backend hands over to one on its own machine only.",
            remedy="Use `pdtui daemon --takeover` there.",
        )
    log.info("handing over to version %s, which %s starts", body.version, who.name)
    backend.stop()


@router.get("/snapshot")
async def snapshot(backend: TheBackend) -> Snapshot:
    """Everything there is, and the event number to go on from."""
    return await backend.pictures.snapshot()


@router.get("/modes")
async def modes(backend: TheBackend) -> list[ModeView]:
    """The catalogue's modes."""
    return list(backend.pictures.modes())


@router.get("/hosts")
async def list_hosts(backend: TheBackend, page: Paged) -> list[HostView]:
    """All hosts, by name."""
    return page.of(sorted(backend.store.hosts), backend.pictures.host)


@router.put("/hosts/{name}")
async def put_host(
    name: str,
    body: Document,
    backend: TheBackend,
    actor: Actor,
    expect: Expected,
    response: Response,
) -> HostView:
    """Add or replace a host, and look at it."""
    if body.get("name", name) != name:
        raise Invalid.of(
            "structure.name",
            f"the host is named {body['name']!r}, the address says {name!r}.",
            path="name",
            values={"body": body["name"], "address": name},
            remedy="Make them the same.",
        )
    view = await backend.hosts.put({**body, "name": name}, actor, expect)
    response.headers["ETag"] = view.etag
    return view


@router.post("/hosts/{name}/test")
async def test_host(name: str, backend: TheBackend) -> HostView:
    """Look at a host now; an error says what the look met."""
    return await backend.hosts.test(name)


@router.post("/hosts/{name}/accept-key")
async def accept_key(
    name: str, body: KeyBody, backend: TheBackend, actor: Actor, expect: Expected
) -> HostView:
    """Accept the host key that the host shows, if it has this fingerprint."""
    return await backend.hosts.accept_key(name, body.fingerprint, actor, expect)


@router.delete("/hosts/{name}", status_code=204)
async def delete_host(
    name: str, backend: TheBackend, actor: Actor, expect: Expected, force: bool = False
) -> None:
    """Remove a host that carries nothing of ours; with `force` one that does not answer."""
    await backend.hosts.drop(name, actor, expect, force=force)


@router.get("/changes", response_class=StreamingResponse, responses=STREAM)
async def changes(
    backend: TheBackend,
    since: Annotated[int | None, Query(ge=0, le=2**53)] = None,
    last_event_id: Annotated[str | None, Header()] = None,
) -> StreamingResponse:
    """Server-sent events: every change after `Last-Event-ID` (or `since`), then new ones.

    When that is too long ago the first event is a `snapshot` to start over from.
    """
    start = since
    if last_event_id is not None and last_event_id.isdecimal() and len(last_event_id) < 19:
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
