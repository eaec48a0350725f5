"""vLLM-Ascend's Mooncake connectors: the two hops of NIXL over a handshake port per rank.

Both roles are told both sizes. Prefill has at least as many ranks as decode, a multiple of them.
"""

from __future__ import annotations

from typing import Any

from backend.sandbox.engine.connectors import TransferFailure
from backend.sandbox.engine.connectors.nixl import Nixl


class Ascend(Nixl):
    """Both sides of `MooncakeConnectorV1` and `MooncakeHybridConnector`."""

    def announce(self) -> None:
        """What the real connector logs at its start."""
        self._log.info(
            "factory.py:62",
            f"Creating v1 connector with name: {self._kv.connector} and engine_id: "
            f"{self._kv.engine_id}",
        )
        first = self._kv.side_port
        self._log.info(
            "mooncake_connector.py:402",
            f"{self._kv.side_host} listens on {first}-{first + self._config.tp - 1} for handshakes",
        )

    def _addresses(self) -> list[tuple[str, int]]:
        first = self._kv.side_port
        return [(self._kv.side_host, first + rank) for rank in range(self._config.tp)]

    def offer(self, request: str, tokens: int) -> dict[str, Any]:
        """What the decode that continues this request needs to know."""
        offered = super().offer(request, tokens)
        offered.pop("tp_size")
        return {**offered, "remote_ptp_size": str(self._config.tp)}

    def _compare(self, address: tuple[str, int], meta: dict[str, Any], engine: str) -> None:
        prefill, decode = self._kv.sizes["prefill"], self._kv.sizes["decode"]
        theirs, own = int(meta["tp_size"]), self._config.tp
        problem = None
        if meta["engine_id"] != engine:
            problem = f"RuntimeError: engine {engine} is not at {address[0]}:{address[1]}"
        elif prefill < decode or prefill % decode:
            problem = f"AssertionError: prefill tp_size {prefill} must be a multiple of {decode}"
        elif (theirs, own) != (prefill, decode):
            problem = f"AssertionError: told {prefill} and {decode} ranks, found {theirs}, {own}"
        elif meta["connector"] != self._kv.connector:
            problem = f"RuntimeError: {meta['connector']} does not pair with {self._kv.connector}"
        if problem:
            raise TransferFailure("handshake_failed", problem)

    def _meta(self) -> dict[str, Any]:
        return {**super()._meta(), "connector": self._kv.connector}

    def explain(self, request: str, params: dict[str, Any], failure: TransferFailure) -> None:
        """Log a failed fetch as the plugin's receiving thread does."""
        self._log.error(
            "mooncake_connector.py:611", f"Failed to transfer KV of {request}: {failure.error}"
        )
