"""Deployments and their groups."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from backend.api.deps import Actor, TheBackend
from backend.api.wire import CheckBody, Document, PauseBody, RestartBody, ScaleBody
from backend.domain.documents import parse_deployment
from backend.domain.errors import Invalid
from backend.domain.rules.table import NO_HOSTS
from backend.domain.views import Deletion, EventView, GroupView, LogChunk, ScaleResult
from backend.services.logs import read_log

router = APIRouter(tags=["deployments"])


@router.get("/groups")
async def list_groups(backend: TheBackend) -> list[GroupView]:
    """All groups, by name."""
    return list(backend.pictures.groups())


@router.get("/groups/{name}")
async def get_group(name: str, backend: TheBackend) -> GroupView:
    """One group as it is now."""
    return backend.pictures.group(name)


@router.get("/deployments/{name}")
async def get_deployment(name: str, backend: TheBackend) -> dict[str, Any]:
    """The saved document."""
    return backend.groups.document(name).document()


@router.put("/deployments/{name}")
async def put_deployment(
    name: str, body: Document, backend: TheBackend, actor: Actor, dry_run: bool = False
) -> GroupView:
    """Save a document; `dry_run` judges it and stores nothing."""
    document = parse_deployment(body)
    if document.name != name:
        raise Invalid.of(
            "structure.name",
            f"the document is named {document.name!r}, the address says {name!r}.",
            path="metadata.name",
            values={"document": document.name, "address": name},
            remedy="Make them the same.",
        )
    return await backend.groups.apply(document, actor, dry_run=dry_run)


@router.post("/check")
async def check(body: Document, backend: TheBackend, every: bool = False) -> CheckBody:
    """Every finding about a document, worst first; nothing is stored. `every`: what is fine too."""
    found = await backend.groups.check(parse_deployment(body), every=every)
    skipped = [] if backend.store.hosts else [NO_HOSTS]
    return CheckBody(verdicts=list(found), skipped=skipped)


@router.delete("/deployments/{name}", status_code=202)
async def delete_deployment(name: str, backend: TheBackend, actor: Actor) -> None:
    """Stop everything and forget it once nothing is left."""
    await backend.groups.delete(name, actor)


@router.post("/deployments/{name}/scale")
async def scale(name: str, body: ScaleBody, backend: TheBackend, actor: Actor) -> ScaleResult:
    """Set wanted members by role."""
    return await backend.groups.scale(name, body.counts, actor)


@router.post("/deployments/{name}/restart", status_code=202)
async def restart(name: str, body: RestartBody, backend: TheBackend, actor: Actor) -> GroupView:
    """Stop the whole group and form it from the saved document."""
    return await backend.groups.restart(name, actor, force=body.force)


@router.post("/deployments/{name}/pause", status_code=202)
async def pause(name: str, body: PauseBody, backend: TheBackend, actor: Actor) -> GroupView:
    """Switch the group off or on."""
    return await backend.groups.pause(name, body.paused, actor)


@router.delete("/deployments/{name}/instances/{instance}", status_code=202)
async def delete_instance(
    name: str, instance: str, backend: TheBackend, actor: Actor, dry_run: bool = False
) -> Deletion:
    """Take one instance out, and say what that means; `dry_run` only says it."""
    return await backend.groups.delete_instance(name, instance, actor, dry_run=dry_run)


@router.get("/events")
async def events(
    backend: TheBackend, group: str | None = None, limit: int = 200
) -> list[EventView]:
    """The newest history lines, oldest first."""
    return list(await backend.store.events(group, max(1, min(limit, 5000))))


@router.get("/instances/{instance}/log")
async def log(
    instance: str,
    backend: TheBackend,
    generation: int | None = None,
    offset: int | None = None,
    tail_bytes: int = 65536,
) -> LogChunk:
    """A piece of an instance's log."""
    return await read_log(
        backend.world,
        instance,
        generation=generation,
        offset=offset,
        tail_bytes=max(1, min(tail_bytes, 4 << 20)),
    )
