"""Instances of all groups in one list, and their logs."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response
from pydantic import TypeAdapter

from backend.api.deps import TheBackend
from backend.api.pages import Paged
from backend.domain.views import InstanceView, LogChunk
from backend.services.logs import read_log

router = APIRouter(prefix="/instances", tags=["instances"])
_LIST = TypeAdapter(list[InstanceView])


@router.get("", response_model=list[InstanceView])
async def list_instances(
    backend: TheBackend,
    page: Paged,
    group: str | None = None,
    host: str | None = None,
    role: Literal["prefill", "decode", "router", "replica"] | None = None,
) -> Response:
    """All instances, by id, or those of a group, a host or a role."""
    rows = backend.pictures.instances(group=group, host=host, role=role)
    shown = page.of(sorted(rows), rows.__getitem__)
    link = {k: v for k, v in page.response.headers.items() if k == "link"}
    # they are views already: written as they are, not judged once more
    return Response(_LIST.dump_json(shown), headers=link, media_type="application/json")


@router.get("/{instance}/log")
async def log(
    instance: str,
    backend: TheBackend,
    generation: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
    offset: Annotated[int | None, Query(ge=0, le=2**53)] = None,
    tail_bytes: Annotated[int, Query(description="Bytes from the end, at most 4 MiB.")] = 65536,
) -> LogChunk:
    """A piece of an instance's log."""
    return await read_log(
        backend.world,
        instance,
        generation=generation,
        offset=offset,
        tail_bytes=max(1, min(tail_bytes, 4 << 20)),
    )
