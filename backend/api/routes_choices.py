"""What a picker offers: modes that fit, and why the others do not."""

from __future__ import annotations

from fastapi import APIRouter

from backend.api.deps import ROLE, TheBackend
from backend.api.wire import Document
from backend.domain.documents import parse_deployment
from backend.domain.host import Vendor
from backend.domain.views import ModeChoice

router = APIRouter(tags=["system"])


@router.get("/mode-choices")
async def by_engine(
    backend: TheBackend, engine: str, vendor: Vendor | None = None
) -> list[ModeChoice]:
    """Every mode for an engine, on hosts of a vendor or on those of the inventory."""
    return list(backend.choices.of_engine(engine, vendor))


@router.post("/mode-choices", openapi_extra={ROLE: "read"})
async def by_document(body: Document, backend: TheBackend) -> list[ModeChoice]:
    """Every mode for a deployment draft, with what its versions are worth saying."""
    return list(backend.choices.of_document(parse_deployment(body)))
