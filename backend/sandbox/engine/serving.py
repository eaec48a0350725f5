"""Requests inside the engine: admitted, prefilled or loaded, generated token by token, counted."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from backend.sandbox.engine import kv
from backend.sandbox.engine.config import EngineConfig
from backend.sandbox.engine.link import AsyncLink
from backend.sandbox.engine.log import Log
from backend.sandbox.engine.metrics import Metrics
from backend.sandbox.engine.sglang_metrics import SglangMetrics
from backend.sandbox.engine.switches import Switches

_REPORT_S = 10.0
_EARLIER = "0c0ffee0-0000-4000-8000-000000000000"
_NOWHERE = "192.0.2.1"
"""An address that no host has (RFC 5737)."""


class EngineDead(Exception):
    """The engine core is gone."""


class LoadFailed(Exception):
    """KV did not arrive and the policy is to fail the request."""


@dataclass
class Request:
    """One prompt on its way. `params` are the request's kv_transfer_params."""

    id: str
    tokens: list[int]
    max_tokens: int
    min_tokens: int = 0
    ignore_eos: bool = False
    params: dict[str, Any] = field(default_factory=dict)
    generated: int = 0
    finish: str = ""
    offered: dict[str, Any] | None = None
    cached: int = 0


class Engine:
    """The scheduler's side of the API process; the core does the rest."""

    def __init__(self, config: EngineConfig, switches: Switches, log: Log) -> None:
        self.config, self.switches, self.log = config, switches, log
        info = {
            "block_size": str(config.block_size), "cache_dtype": config.cache_dtype,
            "enable_prefix_caching": str(config.prefix_caching),
            "kv_cache_size_tokens": str(config.cache_tokens),
        }  # fmt: skip
        family = config.kv.family if config.kv else None
        kind = SglangMetrics if config.flavor == "sglang" else Metrics
        self.metrics = kind(config.names[0], family, info)
        self.aborted = asyncio.Event()
        self.dead = asyncio.Event()
        self.ready = asyncio.Event()
        self.idle = asyncio.Event()
        self.idle.set()
        self._slots = asyncio.Semaphore(config.max_num_seqs)
        self._link: AsyncLink | None = None
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._last = 0
        self._used = 0

    @property
    def in_flight(self) -> int:
        """Requests admitted and not finished."""
        return int(self.metrics.running.get() + self.metrics.waiting.get())

    async def listen(self, link: AsyncLink) -> None:
        """Take the core's answers and events until it is gone; then the engine is dead."""
        self._link = link
        while (message := await link.receive()) is not None:
            event = message.get("event")
            if event == "ready":
                self.ready.set()
            elif event == "expired":
                self.metrics.transfer.expired()
            elif event == "sent":
                self.metrics.transfer.sent(message["bytes"], message["seconds"])
            else:
                waiting = self._answers.pop(message["id"])
                if not waiting.done():  # its request may have been cancelled
                    waiting.set_result(message)
        self.dead.set()
        for waiting in self._answers.values():
            if not waiting.done():
                waiting.set_exception(EngineDead())
        self._answers.clear()
        link.close()

    async def _ask(self, order: dict[str, Any]) -> dict[str, Any]:
        if self.dead.is_set() or self._link is None:
            raise EngineDead
        self._last += 1
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._answers[self._last] = answer
        self._link.send({"id": self._last, **order})
        return await answer

    async def generate(self, request: Request, gone: Callable[[], bool]) -> AsyncIterator[str]:
        """The answer's tokens. `gone` tells whether the client has left.

        Raises LoadFailed or EngineDead. An aborted engine stops yielding without an end; what the
        client then sees is the caller's affair, as it is in vLLM.
        """
        m, began = self.metrics, time.perf_counter()
        self.idle.clear()
        m.waiting.add()
        try:
            await self._slots.acquire()
        except asyncio.CancelledError:
            m.waiting.add(-1)
            self._note_idle()
            raise
        m.running.add()
        m.waiting.add(-1)
        self._use(len(request.tokens))
        m.queue_time.observe(time.perf_counter() - began)
        try:
            state = await self._prompt(request)
            async for text in self._decode(request, state, began, gone):
                yield text
        except LoadFailed:
            request.finish = "error"
            raise
        except EngineDead:
            if not self.aborted.is_set():
                request.finish = "error"
                raise
            request.finish = "abort"
        finally:
            self._slots.release()
            m.running.add(-1)
            self._note_idle()
            self._use(-len(request.tokens) - request.generated)
            self._count(request, began)

    def _note_idle(self) -> None:
        if not self.in_flight:
            self.idle.set()

    def _use(self, tokens: int) -> None:
        self._used += tokens
        self.metrics.cache_usage.set(min(1.0, self._used / self.config.cache_tokens))

    def _count(self, request: Request, began: float) -> None:
        m = self.metrics
        m.success.add(1, request.finish or "abort")
        m.request_prompt.observe(len(request.tokens))
        m.request_generation.observe(request.generated)
        m.e2e.observe(time.perf_counter() - began)

    async def _prompt(self, request: Request) -> bytes:
        """Make or get the prompt's KV; returns the state that decoding starts from."""
        began = time.perf_counter()
        if self.switches.prefill_delay:
            await asyncio.sleep(self.switches.prefill_delay)
        result: dict[str, Any] | None = None
        if request.params.get("do_remote_prefill"):
            result = await self._load(request)
        if result is None:
            keep = bool(request.params.get("do_remote_decode"))
            order = {
                "op": "prefill", "request": request.id, "tokens": request.tokens, "keep": keep,
                "params": request.params, "drop": self.switches.drop_kv,
                "corrupt": self.switches.corrupt_kv,
            }  # fmt: skip
            result = await self._ask(order)
            self._count_prompt(request, result["cached"], external=0)
            request.offered = result.get("params")
            if self.switches.stale_engine and request.offered:
                request.offered |= {"remote_engine_id": _EARLIER}
        request.cached = result["cached"]
        self.metrics.prefill_time.observe(time.perf_counter() - began)
        return bytes.fromhex(result["state"])

    async def _load(self, request: Request) -> dict[str, Any] | None:
        """KV from the prefill engine; None where the prompt is to be computed here instead."""
        m = self.metrics
        order = {
            "op": "load", "request": request.id, "tokens": request.tokens,
            "params": request.params | ({"remote_host": _NOWHERE} if self.switches.cut_off else {}),
            "timeout": self.switches.handshake_timeout,
        }  # fmt: skip
        result = await self._ask(order)
        if result.get("invalid"):
            return None
        if result.get("failed"):
            m.transfer.failed()
            if self.config.kv and self.config.kv.failure_policy == "fail":
                raise LoadFailed
            return None
        external = len(request.tokens) - result["cached"]
        m.transfer.received(result["bytes"], result["seconds"], result["blocks"])
        self._count_prompt(request, result["cached"], external)
        return {**result, "cached": len(request.tokens)}

    def _count_prompt(self, request: Request, cached: int, external: int) -> None:
        m, total = self.metrics, len(request.tokens)
        m.prompt_tokens.add(total)
        m.prefix_queries.add(total)
        m.prefix_hits.add(cached)
        if self.config.kv:
            m.external_queries.add(total - cached)
            m.external_hits.add(external)
        m.by_source.add(total - cached - external, "local_compute")
        m.by_source.add(cached, "local_cache_hit")
        m.by_source.add(external, "external_kv_transfer")
        m.cached.add(cached + external)
        m.cached_by_source.add(cached, "device")
        m.cached_by_source.add(external, "p2p")

    async def _decode(
        self, request: Request, state: bytes, began: float, gone: Callable[[], bool]
    ) -> AsyncIterator[str]:
        m, end = self.metrics, max(kv.natural_length(state), request.min_tokens)
        last = time.perf_counter()
        for text in kv.words(state):
            await asyncio.sleep(self.switches.token_delay)
            if self.dead.is_set():
                raise EngineDead
            if gone() or self.aborted.is_set():
                request.finish = "abort"
                return
            request.generated += 1
            self._use(1)
            m.generation_tokens.add()
            now = time.perf_counter()
            if request.generated == 1:
                m.first_token.observe(now - began)
            else:
                m.next_token.observe(now - last)
            last = now
            if request.generated >= request.max_tokens:
                request.finish = "length"
            elif request.generated >= end and not request.ignore_eos:
                request.finish = "stop"
            yield text
            if request.finish:
                m.decode_time.observe(now - began)
                return

    async def report(self) -> None:
        """Log throughput every ten seconds in which something happened, until cancelled."""
        m = self.metrics
        before = (0.0, 0.0, 0)
        while True:
            await asyncio.sleep(_REPORT_S)
            now = (m.prompt_tokens.get(), m.generation_tokens.get(), m.transfer.moved)
            if now == before:
                continue
            prompt, generation = (
                (a - b) / _REPORT_S for a, b in zip(now[:2], before, strict=False)
            )
            self.log.info(
                "loggers.py:335",
                f"Engine 000: Avg prompt throughput: {prompt:.1f} tokens/s, "
                f"Avg generation throughput: {generation:.1f} tokens/s, "
                f"Running: {m.running.get():.0f} reqs, Waiting: {m.waiting.get():.0f} reqs, "
                f"GPU KV cache usage: {m.cache_usage.get() * 100:.1f}%",
            )
            if now[2] != before[2] and (said := m.transfer.summary(now[2] - before[2])):
                self.log.info("metrics.py:103", said)
            before = now


def request_id(prefix: str, given: str | None) -> tuple[str, str]:
    """The response's id (of `X-Request-Id` when there is one) and the engine's internal one."""
    shown = f"{prefix}-{given or secrets.token_hex(8)}"
    return shown, f"{shown}-0-{secrets.token_hex(4)}"
