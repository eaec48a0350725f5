"""What saving a document would do."""

from __future__ import annotations

from fastapi import APIRouter

from backend.api.deps import TheBackend
from backend.api.wire import Document
from backend.domain.planning import Plan

router = APIRouter(tags=["deployments"])


@router.post("/plan")
async def plan(body: Document, backend: TheBackend) -> Plan:
    """What saving this document of any kind would change and move; nothing is stored."""
    return await backend.planning.plan(body)
