"""Mooncake: prefill sends the KV that decode asks for by `transfer_id`.

The bootstrap answers `GET /query` with each data parallel rank's engine and where its workers
listen; workers enter themselves by `POST /register`, as in vLLM's own server.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from backend.sandbox.engine.connectors import TransferFailure
from backend.sandbox.engine.connectors.push import Push, ask

_NEEDED = ("transfer_id", "remote_bootstrap_addr", "remote_engine_id")


class Mooncake(Push):
    """Both sides of `MooncakeConnector`."""

    KEY = "transfer_id"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._ranks: dict[int, dict[str, Any]] = {}

    def announce(self) -> None:
        """What the real connector logs at its start."""
        self._log.info(
            "factory.py:62",
            "Creating v1 connector with name: MooncakeConnector and engine_id: "
            f"{self._kv.engine_id}",
        )

    def listen(self) -> None:
        """Serve the bootstrap, and enter every tensor parallel rank of this engine."""
        super().listen()
        if self._kv.produces:
            host, port = self._rank
            for rank in range(self._config.tp):
                self.put(
                    "/register",
                    {
                        "engine_id": self._kv.engine_id, "dp_rank": 0, "tp_rank": rank,
                        "pp_rank": 0, "addr": f"tcp://{host}:{port}",
                    },
                )  # fmt: skip

    def get(self, path: str) -> tuple[int, Any]:
        """`/query`: every data parallel rank."""
        if path != "/query":
            return 404, {"detail": "Not Found"}
        return 200, {str(rank): entry for rank, entry in sorted(self._ranks.items())}

    def put(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        """`/register`: one worker of one data parallel rank."""
        if path != "/register":
            return 404, {"detail": "Not Found"}
        try:
            engine, addr = str(body["engine_id"]), str(body["addr"])
            dp, tp, pp = (int(body[k]) for k in ("dp_rank", "tp_rank", "pp_rank"))
        except (KeyError, ValueError, TypeError) as e:
            return 422, {"detail": f"{type(e).__name__}: {e}"}
        entry = self._ranks.setdefault(dp, {"engine_id": engine, "worker_addr": {}})
        if entry["engine_id"] != engine:
            return 400, {"detail": f"Engine ID mismatch for dp_rank={dp}"}
        workers = entry["worker_addr"].setdefault(str(tp), {})
        if str(pp) in workers:
            return 400, {"detail": f"Worker with dp_rank={dp}, tp_rank={tp} is already registered"}
        workers[str(pp)] = addr
        return 200, {"status": "ok"}

    def complete(self, params: dict[str, Any]) -> bool:
        """Whether the params name a prefill and its request."""
        return all(params.get(key) not in (None, "") for key in _NEEDED)

    def find(self, params: dict[str, Any], timeout_s: float) -> tuple[str, int]:
        """The worker of the engine that the router named, by the bootstrap's `/query`."""
        at = urlsplit(str(params["remote_bootstrap_addr"]))
        if not at.hostname or not at.port:
            raise ValueError(f"no bootstrap address: {params['remote_bootstrap_addr']!r}")
        wanted = str(params["remote_engine_id"])
        ranks = ask(at.hostname, at.port, "/query", timeout_s)
        entry = next((e for e in ranks.values() if e["engine_id"] == wanted), None)
        if entry is None:
            there = ", ".join(e["engine_id"] for e in ranks.values())
            raise TransferFailure(
                "handshake_failed",
                f"KeyError: remote engine {wanted} is not at {at.netloc}, where {there} is now",
            )
        self._compare(len(entry["worker_addr"]))
        worker = urlsplit(entry["worker_addr"]["0"]["0"])
        return str(worker.hostname), int(worker.port or 0)

    def _compare(self, theirs: int) -> None:
        own = self._config.tp
        if max(own, theirs) % min(own, theirs):
            raise TransferFailure(
                "handshake_failed",
                f"AssertionError: Local tensor parallel size {own} is not divisible by remote "
                f"tensor parallel size {theirs}.",
            )

    def explain(self, request: str, params: dict[str, Any], failure: TransferFailure) -> None:
        """Log a failed fetch as vLLM's worker does."""
        self._log.error(
            "mooncake_connector.py:1012",
            f"Error happens during transferring kvcache for {request}: {failure.error}",
        )

    def _expired(self, key: str) -> None:
        self._log.warning(
            "mooncake_connector.py:930",
            f"Request {key} was not fetched in time: its KV blocks are released.",
        )
        super()._expired(key)
