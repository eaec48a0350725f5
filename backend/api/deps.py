"""What routes take from a request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, Header, Request

from backend.api.gate import CALLER, READS
from backend.domain.access import Caller, Role
from backend.domain.errors import Unconditional
from backend.domain.precondition import Expect, parse_expect
from backend.services.backend import Backend

ROLE = "x-pdtui-role"
"""Where a route's description tells the role it needs, when its method does not."""


def backend_of(request: Request) -> Backend:
    """The backend that this application serves."""
    backend: Backend = request.app.state.backend
    return backend


def caller_of(request: Request) -> Caller:
    """Who asks, as the gate found."""
    caller: Caller = request.scope[CALLER]
    return caller


def actor_of(request: Request) -> str:
    """Who asks, as the history names it: the local user, or the token."""
    return caller_of(request).name


def role_for(method: str, extra: dict[str, object] | None) -> Role:
    """The role that a route needs: what it says itself, else `read` for what only reads."""
    told = (extra or {}).get(ROLE)
    return told if told else ("read" if method in READS else "operate")  # type: ignore[return-value]


def authorised(request: Request) -> None:
    """Raises Denied unless the caller's role is enough for this route."""
    extra = getattr(request.scope.get("route"), "openapi_extra", None)
    what = f"{request.method} {request.url.path}"
    caller_of(request).needs(role_for(request.method, extra), what)


def _expected(required: bool) -> Callable[..., Expect]:
    def expected(
        if_match: Annotated[
            str | None,
            Header(description="The ETag that was read, or `*` for whatever is there."),
        ] = None,
        if_none_match: Annotated[
            str | None, Header(description="`*`: only if nothing of that name is there.")
        ] = None,
    ) -> Expect:
        found = parse_expect(if_match, if_none_match)
        if required and not found.stated:
            raise Unconditional.of(
                "write.unconditional",
                "a write says which state it is based on, and this one does not.",
                values={"If-Match": None, "If-None-Match": None},
                remedy='Send If-Match: "ETAG" of what you read, If-Match: * for whatever is '
                "there, or If-None-Match: * to create.",
            )
        return found

    return expected


TheBackend = Annotated[Backend, Depends(backend_of)]
Who = Annotated[Caller, Depends(caller_of)]
Actor = Annotated[str, Depends(actor_of)]
Expected = Annotated[Expect, Depends(_expected(True))]
MayExpect = Annotated[Expect, Depends(_expected(False))]
"""For routes that may be asked what a write would do: see `stated`."""


def stated(expect: Expect) -> Expect:
    """Raises Unconditional for a write that says nothing of what it is based on."""
    if not expect.stated:
        _expected(True)(None, None)
    return expect
