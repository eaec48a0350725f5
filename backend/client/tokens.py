"""The client's questions on tokens."""

from __future__ import annotations

from urllib.parse import quote

from pydantic import TypeAdapter

from backend.client.calls import Calls
from backend.domain.access import TokenView


class TokenCalls(Calls):
    """What `HttpClient` asks of the routes on tokens."""

    async def tokens(self) -> tuple[TokenView, ...]:
        """All tokens, without the secrets."""
        body = await self._call("GET", "/tokens")
        return TypeAdapter(tuple[TokenView, ...]).validate_python(body)

    async def add_token(self, name: str, role: str, days: float | None = None) -> TokenView:
        """A new token; the answer's `token` is told only here."""
        order = {"name": name, "role": role, "days": days}
        return TokenView.model_validate(await self._call("POST", "/tokens", json=order))

    async def drop_token(self, name: str) -> None:
        """Take a token back."""
        await self._call("DELETE", f"/tokens/{quote(name, safe='')}")
