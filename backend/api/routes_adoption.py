"""Taking over groups whose store was lost."""

from __future__ import annotations

from fastapi import APIRouter

from backend.api.deps import ROLE, Actor, TheBackend
from backend.api.wire import AdoptableBody, AdoptBody
from backend.domain.views import AdoptionResult
from backend.services.adoption import Adoption

router = APIRouter(tags=["adoption"])


@router.get("/adoptable")
async def adoptable(backend: TheBackend) -> AdoptableBody:
    """Instances on the hosts that are in no row of this store, by owner and group."""
    found, unasked = await Adoption(backend.reconciler).survey()
    return AdoptableBody(found=list(found), unasked=unasked)


@router.post("/adopt", openapi_extra={ROLE: "admin"})
async def adopt(body: AdoptBody, backend: TheBackend, actor: Actor) -> AdoptionResult:
    """Take over everything of one owner; nothing that runs is touched."""
    return await Adoption(backend.reconciler).adopt(body.owner, actor)
