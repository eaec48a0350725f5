"""What is watched: figures over time, canaries, alerts."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from backend.api.deps import TheBackend
from backend.domain.watch_views import AlertView, CanaryView, GroupMetrics, MemberMetrics
from backend.services.diagnosing import instance_of
from backend.services.own_metrics import page

router = APIRouter(tags=["watching"])
own = APIRouter(tags=["watching"])

Window = Annotated[float, Query(gt=0, le=3600, description="seconds back from now")]
Points = Annotated[int, Query(ge=1, le=720, description="most points of each figure")]


@router.get("/metrics/groups/{name}")
async def of_group(
    name: str, backend: TheBackend, window: Window = 900, points: Points = 120
) -> GroupMetrics:
    """The figures of a group's members and its router."""
    backend.pictures.group(name)  # says which groups there are
    return backend.watching.effectiveness.history(name, window, points)


@router.get("/metrics/members/{instance}")
async def of_member(
    instance: str, backend: TheBackend, window: Window = 900, points: Points = 120
) -> MemberMetrics:
    """The figures of one member or router, and the newest value of every series."""
    found = instance_of(backend.world, instance)
    return backend.watching.effectiveness.member(found, window, points, raw=True)


@router.get("/groups/{name}/canary")
async def last_canary(name: str, backend: TheBackend) -> CanaryView | None:
    """The group's last canary; null before the first."""
    return backend.pictures.group(name).canary


@router.post("/groups/{name}/canary")
async def run_canary(name: str, backend: TheBackend) -> CanaryView:
    """Send one small request through every pair and the router, now. The answer waits for all, but
    not for ever: while `running` is true, ask again."""
    backend.pictures.group(name)
    return await backend.watching.canary(name)


@router.get("/alerts")
async def alerts(backend: TheBackend) -> list[AlertView]:
    """Every alert that stands, the oldest first."""
    return list(backend.watching.alerts())


@own.get("/metrics", response_class=Response)
async def own_metrics(request: Request, backend: TheBackend) -> Response:
    """The backend's own metrics, for Prometheus."""
    body = page(backend, request.app.state.version)
    return Response(body, media_type="text/plain; version=0.0.4; charset=utf-8")
