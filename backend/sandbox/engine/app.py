"""The engine's HTTP API as a bare ASGI application: a web framework would double its start."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from backend.sandbox.engine import openai
from backend.sandbox.engine.config import VERSION
from backend.sandbox.engine.log import raw
from backend.sandbox.engine.openai import Call, HttpError
from backend.sandbox.engine.serving import Engine, EngineDead, LoadFailed
from backend.sandbox.engine.switches import SwitchError

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_REASONS = {
    200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found",
    405: "Method Not Allowed", 500: "Internal Server Error", 503: "Service Unavailable",
}  # fmt: skip
_TEXT = b"text/plain; version=0.0.4; charset=utf-8"


class Exchange:
    """One request and its answer."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.method, self.path = scope["method"], scope["path"]
        self.headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        self._client = scope.get("client") or ("", 0)
        self._receive, self._send = receive, send
        self.client_gone = False

    async def json(self) -> Any:
        """The body. Raises HttpError 400 when it is no JSON."""
        parts, more = [], True
        while more:
            message = await self._receive()
            parts.append(message.get("body", b""))
            more = message.get("more_body", False)
        try:
            return json.loads(b"".join(parts))
        except ValueError as e:
            raise HttpError(400, f"JSON decode error: {e}", "BadRequestError") from None

    async def disconnected(self) -> None:
        """Return once the client has left."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.client_gone = True

    async def begin(self, status: int, kind: bytes, length: int | None = None) -> None:
        """Send the head, and log the request as uvicorn does."""
        headers = [(b"content-type", kind)]
        if length is not None:
            headers.append((b"content-length", str(length).encode()))
        raw(
            f'INFO:     {self._client[0]}:{self._client[1]} - "{self.method} {self.path} HTTP/1.1" '
            f"{status} {_REASONS.get(status, '')}\n"
        )
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def body(self, data: bytes, more: bool = False) -> None:
        """Send (a part of) the body."""
        await self._send({"type": "http.response.body", "body": data, "more_body": more})

    async def answer(self, status: int, data: Any) -> None:
        """A whole answer: JSON, or text when `data` is a string."""
        text = data if isinstance(data, str) else json.dumps(data)
        body = text.encode()
        kind = _TEXT if isinstance(data, str) else b"application/json"
        await self.begin(status, kind, len(body))
        await self.body(body)


class App:
    """Routes of one engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._frozen: str | None = None
        self._routes: dict[tuple[str, str], Callable[[Exchange], Awaitable[None]]] = {
            ("GET", "/health"): self._health,
            ("GET", "/ping"): self._health,
            ("GET", "/version"): self._version,
            ("GET", "/load"): self._load,
            ("GET", "/metrics"): self._metrics,
            ("GET", "/v1/models"): self._models,
            ("POST", "/tokenize"): self._tokenize,
            ("POST", "/v1/completions/render"): self._render,
            ("POST", "/v1/chat/completions/render"): self._render,
            ("POST", "/v1/completions"): self._infer,
            ("POST", "/v1/chat/completions"): self._infer,
            ("GET", "/sim"): self._show_switches,
            ("POST", "/sim"): self._set_switches,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI entry."""
        if scope["type"] != "http":
            return
        exchange = Exchange(scope, receive, send)
        route = self._routes.get((exchange.method, exchange.path))
        try:
            if route is None:
                known = {path for _, path in self._routes}
                raise (
                    HttpError(405, "Method Not Allowed", "Method Not Allowed")
                    if exchange.path in known
                    else HttpError(404, "Not Found", "Not Found")
                )
            self._authorise(exchange)
            await route(exchange)
        except HttpError as e:
            await exchange.answer(e.status, e.body)

    def _authorise(self, exchange: Exchange) -> None:
        keys = self.engine.config.api_keys
        if not keys or not exchange.path.startswith("/v1"):
            return
        if exchange.headers.get("authorization", "").removeprefix("Bearer ") not in keys:
            raise HttpError(401, "Unauthorized", "Unauthorized")

    async def _health(self, exchange: Exchange) -> None:
        engine = self.engine
        bad = engine.dead.is_set() or engine.switches.unhealthy
        await exchange.begin(503 if bad else 200, b"text/plain", 0)
        await exchange.body(b"")

    async def _version(self, exchange: Exchange) -> None:
        await exchange.answer(200, {"version": VERSION})

    async def _load(self, exchange: Exchange) -> None:
        await exchange.answer(200, {"server_load": self.engine.in_flight})

    async def _metrics(self, exchange: Exchange) -> None:
        if not self.engine.switches.stale_metrics:
            self._frozen = None
            await exchange.answer(200, self.engine.metrics.render())
            return
        self._frozen = self._frozen or self.engine.metrics.render()
        await exchange.answer(200, self._frozen)

    async def _models(self, exchange: Exchange) -> None:
        config = self.engine.config
        models: list[dict[str, Any]] = [
            {
                "id": name, "object": "model", "created": 0, "owned_by": "vllm",
                "root": config.model.name, "parent": None, "max_model_len": config.max_model_len,
                "permission": [],
            }
            for name in config.names
        ]  # fmt: skip
        await exchange.answer(200, {"object": "list", "data": models})

    async def _tokenize(self, exchange: Exchange) -> None:
        body = await exchange.json()
        openai.check_model(self.engine.config, body.get("model"))
        tokens = openai.prompt_tokens(body, "messages" in body)
        await exchange.answer(
            200,
            {
                "count": len(tokens), "max_model_len": self.engine.config.max_model_len,
                "tokens": tokens, "token_strs": None,
            },
        )  # fmt: skip

    async def _render(self, exchange: Exchange) -> None:
        body = await exchange.json()
        chat = "chat" in exchange.path
        call = openai.parse(self.engine.config, body, chat, exchange.headers.get("x-request-id"))
        rendered = {"request_id": call.shown_id, "token_ids": call.request.tokens}
        await exchange.answer(200, rendered if chat else [rendered])

    async def _show_switches(self, exchange: Exchange) -> None:
        await exchange.answer(200, self.engine.switches.shown())

    async def _set_switches(self, exchange: Exchange) -> None:
        try:
            body = await exchange.json()
            if not isinstance(body, dict):
                raise SwitchError("must be an object")
            self.engine.switches.update(body)
        except SwitchError as e:
            raise HttpError(400, str(e), "BadRequestError") from None
        if self.engine.switches.stale_metrics and self._frozen is None:
            self._frozen = self.engine.metrics.render()
        await self._show_switches(exchange)

    async def _infer(self, exchange: Exchange) -> None:
        body = await exchange.json()
        engine = self.engine
        if engine.switches.fail == "500":
            raise openai.INTERNAL
        watch = asyncio.create_task(exchange.disconnected())
        try:
            if engine.switches.fail == "hang":
                await watch
                return
            given = exchange.headers.get("x-request-id")
            call = self._parse(body, exchange.path.startswith("/v1/chat"), given)
            answer = self._stream if call.stream else self._whole
            await answer(exchange, call)
            if call.request.finish == "abort":
                await watch  # vLLM leaves the client of an aborted request waiting
        finally:
            watch.cancel()

    def _parse(self, body: Any, chat: bool, given: str | None) -> Call:
        return openai.parse(self.engine.config, body, chat, given)

    def _failed(self, call: Call) -> None:
        self.engine.log.error(
            "serving.py:203", f"Request {call.shown_id} failed with an internal error during "
            "generation",
        )  # fmt: skip

    async def _whole(self, exchange: Exchange, call: Call) -> None:
        tokens = self.engine.generate(call.request, lambda: exchange.client_gone)
        try:
            text = "".join([token async for token in tokens])
        except (LoadFailed, EngineDead):
            self._failed(call)
            raise openai.INTERNAL from None
        if call.request.finish != "abort":
            await exchange.answer(200, openai.whole(call, text))

    async def _stream(self, exchange: Exchange, call: Call) -> None:
        await exchange.begin(200, b"text/event-stream; charset=utf-8")
        first = True
        try:
            async for text in self.engine.generate(call.request, lambda: exchange.client_gone):
                data = openai.chunk(call, text, first, call.request.finish)
                await exchange.body(openai.event(data), more=True)
                first = False
        except (LoadFailed, EngineDead):
            self._failed(call)
            await exchange.body(openai.event(openai.INTERNAL.body), more=True)
        if call.request.finish == "abort":
            return
        if call.usage_in_stream and call.request.finish != "error":
            await exchange.body(openai.event(openai.usage_chunk(call)), more=True)
        await exchange.body(b"data: [DONE]\n\n")
