"""Tokens for TCP: who holds one, a new one, one taken back."""

from __future__ import annotations

from fastapi import APIRouter

from backend.api.deps import ROLE, Actor, TheBackend
from backend.domain.access import NewToken, TokenView

router = APIRouter(prefix="/tokens", tags=["access"])
ADMIN = {ROLE: "admin"}


@router.get("", openapi_extra=ADMIN)
async def list_tokens(backend: TheBackend) -> list[TokenView]:
    """All tokens, without the secrets."""
    return list(backend.tokens.all())


@router.post("", status_code=201, openapi_extra=ADMIN)
async def add_token(body: NewToken, backend: TheBackend, actor: Actor) -> TokenView:
    """A new token: this answer is the only place where it is told."""
    return await backend.tokens.add(body, actor)


@router.delete("/{name}", status_code=204, openapi_extra=ADMIN)
async def drop_token(name: str, backend: TheBackend, actor: Actor) -> None:
    """Take a token back; it holds no longer from now on."""
    await backend.tokens.drop(name, actor)
