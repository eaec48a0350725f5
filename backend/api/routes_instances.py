"""Instances of all groups in one list, and their logs."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query

from backend.api.deps import TheBackend
from backend.api.pages import Paged
from backend.domain.views import InstanceView, LogChunk
from backend.services.logs import read_log

router = APIRouter(prefix="/instances", tags=["instances"])


@router.get("")
async def list_instances(
    backend: TheBackend,
    page: Paged,
    group: str | None = None,
    host: str | None = None,
    role: Literal["prefill", "decode", "router", "replica"] | None = None,
) -> list[InstanceView]:
    """All instances, by id, or those of a group, a host or a role."""
    rows = backend.pictures.instances(group=group, host=host, role=role)
    return page.of(sorted(rows), rows.__getitem__)


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
