"""Whether disaggregation pays for a deployment."""

from __future__ import annotations

from fastapi import APIRouter

from backend.api.deps import TheBackend
from backend.api.wire import AdviceBody
from backend.domain.advice.model import Advice
from backend.domain.documents import parse_deployment
from backend.domain.errors import Invalid
from backend.services.advising import Given, advice_on

router = APIRouter(tags=["deployments"])


@router.post("/advice")
async def advice(body: AdviceBody, backend: TheBackend) -> Advice:
    """The user's three questions answered for a stored deployment, or for a document."""
    given = Given(**body.model_dump(exclude={"name", "document"}))
    if (body.name is None) == (body.document is None):
        raise Invalid.of(
            "request.body",
            "either a name or a document is asked about.",
            path="name",
            values={"name": body.name},
            remedy="Give one of `name` and `document`.",
        )
    if body.name is not None:
        stored = backend.groups.document(body.name)
        return await advice_on(backend.world, stored, backend.pictures.group(body.name), given)
    return await advice_on(backend.world, parse_deployment(body.document), None, given)
