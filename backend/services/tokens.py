"""What a person asks of tokens: make, list, take back; and whose token a request carries."""

from __future__ import annotations

import secrets

from backend.domain.access import PREFIX, Caller, NewToken, Token, TokenView, digest
from backend.domain.errors import Conflict, NotFound
from backend.domain.telling import said
from backend.store.store import Store


class Tokens:
    """Use cases on tokens. A token itself is told once and kept nowhere."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def all(self) -> tuple[TokenView, ...]:
        """All tokens, by name, without the secrets."""
        return tuple(_view(t) for _, t in sorted(self._store.tokens.items()))

    async def add(self, wanted: NewToken, actor: str) -> TokenView:
        """Make a token; the answer is the only place where it is told. Raises Conflict."""
        async with self._store.lock(f"token:{wanted.name}"):
            if wanted.name in self._store.tokens:
                raise Conflict.of(
                    "token.exists",
                    f"there is a token {wanted.name!r} already.",
                    values={"name": wanted.name},
                    remedy="Choose another name, or remove that one first.",
                )
            text = PREFIX + secrets.token_urlsafe(32)
            async with self._store.write() as tx:
                token = Token(
                    name=wanted.name,
                    role=wanted.role,
                    digest=digest(text),
                    created=tx.now,
                    created_by=actor,
                    expires=None if wanted.days is None else tx.now + wanted.days * 86_400,
                )
                tx.put_token(token)
                line = said("token.added", token=token.name, role=token.role)
                tx.event("token_added", line, actor=actor)
        return _view(token).model_copy(update={"token": text})

    async def drop(self, name: str, actor: str) -> None:
        """Take a token back: it holds no longer from now on. Raises NotFound."""
        async with self._store.lock(f"token:{name}"):
            if name not in self._store.tokens:
                raise NotFound.among(
                    "token.unknown", "token", name, self._store.tokens, "pdtui tokens list"
                )
            async with self._store.write() as tx:
                tx.drop_token(name)
                tx.event("token_removed", said("token.removed", token=name), actor=actor)

    def caller(self, text: str, now: float) -> Caller | None:
        """Whose token `text` is; None for nobody's, and for one that has run out."""
        mark = digest(text)
        found = next((t for t in self._store.tokens.values() if t.digest == mark), None)
        if found is None or (found.expires is not None and found.expires <= now):
            return None
        return Caller(f"token {found.name}", found.role, remote=True)


def _view(token: Token) -> TokenView:
    return TokenView(**token.model_dump(exclude={"digest"}))
