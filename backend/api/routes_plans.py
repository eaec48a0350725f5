"""What saving a document would do."""

from __future__ import annotations

from fastapi import APIRouter

from backend.api.deps import ROLE, TheBackend, Who
from backend.api.masking import shown_to
from backend.api.wire import Document
from backend.domain.planning import Plan

router = APIRouter(tags=["deployments"])


@router.post("/plan", openapi_extra={ROLE: "read"})
async def plan(body: Document, backend: TheBackend, who: Who) -> Plan:
    """What saving this document of any kind would change and move; nothing is stored."""
    found = await backend.planning.plan(body)
    shown = {"document": shown_to(who, found.document)}
    if found.saved is not None:
        shown["saved"] = shown_to(who, found.saved)
    return found.model_copy(update=shown)
