"""Metrics of groups and members, as figures over time."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from backend.api.deps import TheBackend
from backend.domain.watch_views import GroupMetrics, MemberMetrics

router = APIRouter(prefix="/metrics", tags=["watching"])

Window = Annotated[float, Query(gt=0, le=3600, description="seconds back from now")]
Points = Annotated[int, Query(ge=1, le=720, description="most points of each figure")]


@router.get("/groups/{name}")
async def of_group(
    name: str, backend: TheBackend, window: Window = 900, points: Points = 120
) -> GroupMetrics:
    """The figures of a group's members and its router."""
    backend.pictures.group(name)  # says which groups there are
    return backend.watching.effectiveness.history(name, window, points)


@router.get("/members/{instance}")
async def of_member(
    instance: str, backend: TheBackend, window: Window = 900, points: Points = 120
) -> MemberMetrics:
    """The figures of one member or router, and the newest value of every series."""
    found = backend.watching.instance(instance)
    return backend.watching.effectiveness.member(found, window, points, raw=True)
