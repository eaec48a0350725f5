"""Before any route: who asks, from where, with how much; and a write that is asked again."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterable
from urllib.parse import unquote

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.api.bodies import judge_json, read_body, replay
from backend.api.problems import problem_response
from backend.domain.access import Caller
from backend.domain.errors import Conflict, Denied, Invalid, PdError, Refused, Unknown
from backend.services.backend import Backend
from backend.store.answers import Answer

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]", "pdtui"})
"""Host headers that our own clients send over the socket, and that mean this machine."""
CALLER = "pdtui.caller"
DOOR = "pdtui.door"
OPEN_PATHS = frozenset({"/healthz"})
"""Answered without a token: it tells nothing but that somebody answers."""
READS = frozenset({"GET", "HEAD", "OPTIONS"})
ONCE_TOLD = re.compile(r"^/v1/(tokens|identities)(/|$)")
"""Addresses whose answers hold a secret: they are not kept for a repetition."""
_KEY = re.compile(r"^[\x21-\x7e]{1,200}$")


def over_tcp(app: ASGIApp, names: Iterable[str]) -> ASGIApp:
    """The application as it is reached over TCP: only with a token, under these host names."""
    known = frozenset(n.lower() for n in names) | LOCAL_NAMES

    async def remote(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, DOOR: known}, receive, send)

    return remote


class Gate:
    """ASGI middleware around the routes of one backend."""

    def __init__(self, app: ASGIApp, backend: Backend) -> None:
        self._app, self._backend = app, backend
        self._under_way: set[tuple[str, str]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it before any route sees it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            answer = await self._admit(scope, receive, send)
        except PdError as error:
            answer = problem_response(error, scope["path"])
        if answer is not None:
            await answer(scope, receive, send)

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> Response | None:
        headers = Headers(scope=scope)
        refuse_foreign(headers, scope.get(DOOR, LOCAL_NAMES))
        caller = self._caller(scope, headers)
        scope[CALLER] = caller
        if scope["method"] in READS:
            await self._app(scope, receive, send)
            return None
        body = await read_body(headers, receive)
        judge_json(headers, body)
        receive = replay(body, receive)
        key = headers.get("idempotency-key")
        if key is None or ONCE_TOLD.match(scope["path"]) or not _routed(scope):
            await self._app(scope, receive, send)
            return None
        return await self._once(key, caller, body, scope, receive, send)

    def _caller(self, scope: Scope, headers: Headers) -> Caller:
        if DOOR not in scope:
            told = unquote(headers.get("x-pdtui-actor", ""))[:64]
            name = "".join(c if c.isprintable() else " " for c in told).strip()
            return Caller(name or f"uid {os.getuid()}", "admin")
        if scope["path"] in OPEN_PATHS:
            return Caller("anyone", "read", remote=True)
        scheme, _, token = headers.get("authorization", "").partition(" ")
        found = None
        if scheme.lower() == "bearer":
            found = self._backend.tokens.caller(token.strip(), time.time())
        if found is None:
            raise Unknown.of(
                "access.token",
                "over TCP every request carries a token, and this one "
                f"{'carries none' if not token else 'carries none that holds'}.",
                remedy="Send Authorization: Bearer TOKEN (PDTUI_TOKEN for the pdtui command); "
                "`pdtui tokens add NAME` on the backend's machine makes one.",
            )
        return found

    async def _once(
        self, key: str, caller: Caller, body: bytes, scope: Scope, receive: Receive, send: Send
    ) -> Response | None:
        """Do a write, or give the answer that was given to it before."""
        if not _KEY.match(key):
            raise Invalid.of(
                "request.idempotency_key",
                "an Idempotency-Key is 1 to 200 visible ASCII characters.",
                values={"length": len(key)},
                remedy="Send a fresh UUID with each new write.",
            )
        answers = self._backend.store.answers
        mark = (caller.name, key)
        asked = _digest(scope, body)
        if mark in self._under_way:
            raise _busy(key)
        self._under_way.add(mark)
        try:
            known = await answers.find(*mark, time.time())
            if known is not None:
                return _again(known, asked, key)
            await answers.begin(*mark, asked, time.time())
            seen = _Seen(send)
            try:
                await self._app(scope, receive, seen.send)
            finally:
                if seen.status and seen.status < 500:
                    await answers.keep(*mark, seen.answer(asked), time.time())
                else:
                    await answers.drop(*mark)
        finally:
            self._under_way.discard(mark)
        return None


class _Seen:
    """Passes an answer on and remembers it."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            found = MutableHeaders(raw=list(message["headers"]))
            self._headers = {k: v for k, v in found.items() if k != "content-length"}
        elif message["type"] == "http.response.body":
            self._body.append(message.get("body", b""))
        await self._send(message)

    def answer(self, digest: str) -> Answer:
        return Answer(digest, self.status, self._headers, b"".join(self._body))


def refuse_foreign(headers: Headers, names: frozenset[str]) -> None:
    """A browser's page must not reach the backend: raises Denied for foreign Host and Origin."""
    host = headers.get("host", "")
    name = re.sub(r":\d+$", "", host).lower()
    if name in names and "origin" not in headers:
        return
    raise Denied.of(
        "request.foreign",
        f"a request with Host {host[:100]!r} or from a web page is not answered here.",
        values={"host": host[:100], "origin": headers.get("origin")},
        remedy="Use the pdtui command, or curl with --unix-socket and http://localhost/; over TCP "
        "name the host with `pdtui daemon --allowed-host`.",
    )


def _routed(scope: Scope) -> bool:
    """Whether a route takes this method at this address; else the answer is 404 or 405."""
    return any(r.matches(scope)[0] is Match.FULL for r in scope["app"].router.routes)


def _digest(scope: Scope, body: bytes) -> str:
    about = b"\n".join([scope["method"].encode(), scope["path"].encode(), scope["query_string"]])
    return hashlib.sha256(about + b"\n" + body).hexdigest()


def _again(known: Answer, asked: str, key: str) -> Response:
    if known.digest != asked:
        raise Refused.of(
            "request.idempotency_key",
            "this Idempotency-Key was sent with another request before; nothing was done.",
            values={"key": key},
            remedy="Send a fresh one with each new write.",
        )
    if known.status == 0:
        raise Conflict.of(
            "request.unfinished",
            "a request with this Idempotency-Key was begun, and the backend ended before it had "
            "answered: whether it was done is not known.",
            values={"key": key},
            remedy="Look at what is there now; send it with a fresh key if it is still wanted.",
        )
    headers = {**known.headers, "Idempotency-Replayed": "true"}
    return Response(known.body, known.status, headers)


def _busy(key: str) -> Conflict:
    return Conflict.of(
        "request.under_way",
        "a request with this Idempotency-Key is still being answered.",
        values={"key": key},
        remedy="Wait a moment and ask again.",
    )
