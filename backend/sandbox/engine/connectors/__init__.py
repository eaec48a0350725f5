"""KV connectors, each in a module of its own: how prefill keeps KV and how decode gets it."""

from __future__ import annotations

from typing import Any, Protocol

from backend.sandbox.engine.config import EngineConfig
from backend.sandbox.engine.log import Log


class TransferFailure(Exception):
    """KV did not arrive. `kind` is vLLM's word for the stage; `setup` tells that no handshake
    was reached; `error` is the exception as its traceback ends."""

    def __init__(self, kind: str, error: str, setup: bool = False) -> None:
        super().__init__(error)
        self.kind, self.error, self.setup = kind, error, setup


class Events(Protocol):
    """Who is told what happens beside the requests; called from threads."""

    def expired(self, request: str) -> None:
        """The KV of a request was kept until its lease ran out."""

    def sent(self, size: int, seconds: float) -> None:
        """A decode took that many bytes."""


class Connector(Protocol):
    """What the engine core asks of a connector. Everything blocks and is called from threads.

    `params` are the request's `kv_transfer_params`.
    """

    def announce(self) -> None:
        """Log what the real connector logs at its start."""

    def listen(self) -> None:
        """Serve peers. Raises OSError when the address cannot be had."""

    def keep(self, request: str, params: dict[str, Any], data: bytes) -> None:
        """Hold a prompt's KV for its decode until it is read or its lease runs out."""

    def offer(self, request: str, tokens: int) -> dict[str, Any] | None:
        """The `kv_transfer_params` that a prefill answers with, if it answers with any."""

    def complete(self, params: dict[str, Any]) -> bool:
        """Whether a decode request's params name what `fetch` needs."""

    def fetch(self, params: dict[str, Any], skip: int, timeout_s: float) -> bytes:
        """The KV of a prompt without its first `skip` bytes. Raises TransferFailure."""

    def explain(self, request: str, params: dict[str, Any], failure: TransferFailure) -> None:
        """Log a failed fetch as the real connector does."""


def create(config: EngineConfig, log: Log, events: Events) -> Connector | None:
    """The connector of this engine's config."""
    if config.kv is None:
        return None
    if config.kv.family == "nixl":
        from backend.sandbox.engine.connectors.nixl import Nixl

        return Nixl(config, config.kv, log, events)
    if config.kv.family == "mooncake":
        from backend.sandbox.engine.connectors.mooncake import Mooncake

        return Mooncake(config, config.kv, log, events)
    if config.kv.family == "ascend":
        from backend.sandbox.engine.connectors.ascend import Ascend

        return Ascend(config, config.kv, log, events)
    from backend.sandbox.engine.connectors.sglang import Sglang

    return Sglang(config, config.kv, log, events)
