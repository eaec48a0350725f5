"""Deployments and their groups."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from backend.api.deps import ROLE, Actor, Expected, MayExpect, TheBackend, Who, stated
from backend.api.masking import may_refer, shown_to
from backend.api.pages import Paged
from backend.api.wire import CheckBody, Document, PauseBody, RestartBody, ScaleBody
from backend.domain.documents import parse_deployment
from backend.domain.errors import Invalid
from backend.domain.rules.table import NO_HOSTS
from backend.domain.views import Deletion, EventView, GroupView, RenderedView, ScaleResult

router = APIRouter(tags=["deployments"])


@router.get("/groups")
async def list_groups(backend: TheBackend, page: Paged) -> list[GroupView]:
    """All groups, by name."""
    return page.of(backend.pictures.group_names(), backend.pictures.group)


@router.get("/groups/{name}")
async def get_group(name: str, backend: TheBackend) -> GroupView:
    """One group as it is now."""
    return backend.pictures.group(name)


@router.get("/deployments/{name}")
async def get_deployment(
    name: str, backend: TheBackend, who: Who, response: Response
) -> dict[str, Any]:
    """The saved document; a caller who may only read sees no secret of it."""
    saved, tag = backend.groups.saved(name)
    response.headers["ETag"] = tag
    return shown_to(who, saved.document())


@router.put("/deployments/{name}")
async def put_deployment(
    name: str,
    body: Document,
    backend: TheBackend,
    who: Who,
    expect: MayExpect,
    response: Response,
    dry_run: bool = False,
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
    if not dry_run:
        stated(expect)
        may_refer(who, document, backend.store.groups.get(name))
    view = await backend.groups.apply(document, who.name, dry_run=dry_run, expect=expect)
    response.headers["ETag"] = view.etag
    return view


@router.post("/check", openapi_extra={ROLE: "read"})
async def check(body: Document, backend: TheBackend, every: bool = False) -> CheckBody:
    """Every finding about a document, worst first; nothing is stored. `every`: what is fine too."""
    found = await backend.groups.check(parse_deployment(body), every=every)
    skipped = [] if backend.store.hosts else [NO_HOSTS]
    return CheckBody(verdicts=list(found), skipped=skipped)


@router.post("/render")
async def render(body: Document, backend: TheBackend) -> list[RenderedView]:
    """What one instance of each role would be started with; nothing is placed or stored."""
    return list(backend.rendering.of(backend.groups.settled(parse_deployment(body))))


@router.delete("/deployments/{name}", status_code=202)
async def delete_deployment(
    name: str, backend: TheBackend, actor: Actor, expect: Expected, force: bool = False
) -> None:
    """Stop everything and forget it once nothing is left; `force` passes silent hosts."""
    await backend.groups.delete(name, actor, expect=expect, force=force)


@router.post("/deployments/{name}/scale")
async def scale(
    name: str, body: ScaleBody, backend: TheBackend, actor: Actor, expect: Expected
) -> ScaleResult:
    """Set wanted members by role."""
    return await backend.groups.scale(name, body.counts, actor, expect=expect)


@router.post("/deployments/{name}/restart", status_code=202)
async def restart(
    name: str, body: RestartBody, backend: TheBackend, actor: Actor, expect: Expected
) -> GroupView:
    """Stop the whole group and form it from the saved document."""
    return await backend.groups.restart(name, actor, force=body.force, expect=expect)


@router.post("/deployments/{name}/pause", status_code=202)
async def pause(
    name: str, body: PauseBody, backend: TheBackend, actor: Actor, expect: Expected
) -> GroupView:
    """Switch the group off or on."""
    return await backend.groups.pause(name, body.paused, actor, force=body.force, expect=expect)


@router.post("/deployments/{name}/told")
async def told(name: str, backend: TheBackend, actor: Actor, expect: Expected) -> GroupView:
    """The operator has told a router that is kept up by hand of its present members."""
    return await backend.groups.told(name, actor, expect=expect)


@router.delete("/deployments/{name}/instances/{instance}", status_code=202)
async def delete_instance(
    name: str,
    instance: str,
    backend: TheBackend,
    actor: Actor,
    expect: MayExpect,
    dry_run: bool = False,
    force: bool = False,
) -> Deletion:
    """Take one instance out, and say what that means; `dry_run` only says it, `force` does not
    wait for a host that does not answer."""
    if not dry_run:
        stated(expect)
    return await backend.groups.delete_instance(
        name, instance, actor, dry_run=dry_run, force=force, expect=expect
    )


@router.get("/events")
async def events(
    backend: TheBackend,
    page: Paged,
    group: str | None = None,
) -> list[EventView]:
    """The newest history lines, oldest first; the next page are the ones before them."""
    before = int(page.after) if page.after is not None and page.after.isdecimal() else None
    found = await backend.store.events(group, page.limit, before)
    if len(found) == page.limit and found[0].seq > 1:
        page.goes_on(str(found[0].seq))
    return list(found)
