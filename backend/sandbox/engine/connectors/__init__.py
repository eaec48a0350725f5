"""KV connectors, each in a module of its own: how prefill keeps KV and how decode gets it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from backend.sandbox.engine.config import TRANSFERS, EngineConfig
from backend.sandbox.engine.log import Log


class TransferFailure(Exception):
    """KV did not arrive. `kind` is vLLM's word for the stage; `setup` tells that no handshake
    was reached; `error` is the exception as its traceback ends."""

    def __init__(self, kind: str, error: str, setup: bool = False) -> None:
        super().__init__(error)
        self.kind, self.error, self.setup = kind, error, setup


class Connector(Protocol):
    """What the engine core asks of a connector. Everything blocks and is called from threads."""

    def listen(self) -> None:
        """Serve peers. Raises OSError when the address cannot be had."""

    def keep(self, request: str, data: bytes) -> None:
        """Hold a prompt's KV for its decode until it is read or its lease runs out."""

    def offer(self, request: str, tokens: int) -> dict[str, Any]:
        """The `kv_transfer_params` that a prefill answers with."""

    def complete(self, params: dict[str, Any]) -> bool:
        """Whether a decode request's params name what `fetch` needs."""

    def fetch(self, params: dict[str, Any], skip: int, timeout_s: float) -> bytes:
        """The KV of a prompt without its first `skip` bytes. Raises TransferFailure."""


def create(config: EngineConfig, log: Log, expired: Callable[[str], None]) -> Connector | None:
    """The connector of this engine's config; `expired` is told each request whose lease ran out."""
    if config.kv is None:
        return None
    if config.kv.connector in TRANSFERS:
        from backend.sandbox.engine.connectors.nixl import Nixl

        return Nixl(config, config.kv, log, expired)
    raise ValueError(f"no transfer is known for {config.kv.connector}")
