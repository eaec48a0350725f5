"""SGLang's transfer: the same request goes to both sides, which meet over a bootstrap room.

The bootstrap answers `GET /route?engine_rank=N` with where that rank of prefill listens.
"""

from __future__ import annotations

from typing import Any

from backend.sandbox.engine.connectors import TransferFailure
from backend.sandbox.engine.connectors.push import Push, ask

_NEEDED = ("bootstrap_host", "bootstrap_port", "bootstrap_room")


class Sglang(Push):
    """Both sides, whichever transfer backend carries the bytes."""

    KEY = "bootstrap_room"

    def announce(self) -> None:
        """What the real one logs when its transfer backend is up."""
        self._log.info("", f"Disaggregation transfer backend: {self._kv.connector}")

    def get(self, path: str) -> tuple[int, Any]:
        """`/route`: where a rank listens; -1 asks for the sizes only."""
        where, _, query = path.partition("?")
        if where == "/health":
            return 200, "OK"
        if where != "/route":
            return 404, "Not Found"
        if "engine_rank=-1" in query:
            return 200, {"prefill_attn_tp_size": self._config.tp, "prefill_dp_size": 1}
        host, port = self._rank
        return 200, {"rank_ip": host, "rank_port": port, "tp_size": self._config.tp}

    def put(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        """`/route`: ranks on other nodes enter themselves; here there are none."""
        return (200, "OK") if path == "/route" else (404, "Not Found")

    def complete(self, params: dict[str, Any]) -> bool:
        """Whether the params name a prefill and its room."""
        return all(params.get(key) not in (None, "") for key in _NEEDED)

    def find(self, params: dict[str, Any], timeout_s: float) -> tuple[str, int]:
        """The first rank of the prefill whose bootstrap the router named."""
        host, port = str(params["bootstrap_host"]), int(params["bootstrap_port"])
        found = ask(host, port, "/route?engine_rank=0&target_dp_group=0", timeout_s)
        theirs, own = int(found["tp_size"]), self._config.tp
        if max(own, theirs) % min(own, theirs):
            raise TransferFailure("handshake_failed", f"AssertionError: tp sizes {theirs}, {own}")
        return str(found["rank_ip"]), int(found["rank_port"])

    def explain(self, request: str, params: dict[str, Any], failure: TransferFailure) -> None:
        """Log a failed fetch as the decode's scheduler does."""
        room = params["bootstrap_room"]
        self._log.error(
            "",
            f"Decode transfer failed for request rank=0 decode_req.req.rid={request!r} "
            f"decode_req.req.bootstrap_room={room} with exception KVTransferError("
            f"bootstrap_room={room}): {failure.error}",
        )
