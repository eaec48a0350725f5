"""NIXL: prefill keeps KV under a lease, decode dials its side channel, compares and reads.

The side channel here carries the handshake as the real one does, and the KV bytes too.
"""

from __future__ import annotations

import socket
import threading
import time
from typing import Any

from backend.sandbox.engine import link
from backend.sandbox.engine.config import VERSION, EngineConfig
from backend.sandbox.engine.connectors import Events, TransferFailure
from backend.sandbox.engine.connectors.shelf import Shelf
from backend.sandbox.engine.log import Log, raw
from backend.sandbox.engine.transfer import KvTransfer

_RETRY_S = 0.1
_PEER_TIMEOUT_S = 30.0
_NEEDED = ("remote_engine_id", "remote_request_id", "remote_host", "remote_port")


class Nixl:
    """Both sides of the connector."""

    def __init__(self, config: EngineConfig, kv: KvTransfer, log: Log, events: Events) -> None:
        self._config, self._kv, self._log = config, kv, log
        self._events = events
        self._hash = config.compat_hash()
        self._shelf = Shelf(kv.lease_s, self._expired)
        self._peers: dict[tuple[str, int], str] = {}

    def announce(self) -> None:
        """What the real connector logs at its start."""
        name, log = self._kv.connector, self._log
        log.info("nixl_utils.py:72", "NIXL is available")
        log.info(
            "connector.py:157",
            "NixlConnector setting KV cache layout to LBHNC for better xfer performance.",
        )
        name = "NixlPullConnector" if name == "NixlConnector" else name
        log.info(
            "factory.py:62",
            f"Creating v1 connector with name: {name} and engine_id: {self._kv.engine_id}",
        )
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        raw(f"{stamp} NIXL INFO    _api.py:405 Backend UCX was instantiated\n")

    def listen(self) -> None:
        """Bind the side channel and serve it, and watch the leases, in threads of their own."""
        for address in self._addresses():
            listener = link.listen(address)
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        self._shelf.start()

    def _addresses(self) -> list[tuple[str, int]]:
        return [(self._kv.side_host, self._kv.side_port)]

    # Prefill

    def keep(self, request: str, params: dict[str, Any], data: bytes) -> None:
        """Hold a prompt's KV until it is read or its lease runs out."""
        self._shelf.put(request, data)

    def offer(self, request: str, tokens: int) -> dict[str, Any]:
        """What the decode that continues this request needs to know."""
        blocks = -(-tokens // self._config.block_size)
        return {
            "do_remote_prefill": True,
            "do_remote_decode": False,
            "remote_block_ids": [list(range(1, blocks + 1))],
            "remote_engine_id": self._kv.engine_id,
            "remote_request_id": request,
            "remote_host": self._kv.side_host,
            "remote_port": self._kv.side_port,
            "tp_size": self._config.tp,
            "remote_num_tokens": tokens,
        }

    def _expired(self, request: str) -> None:
        self._log.warning(
            "base_worker.py:3120",
            f"Releasing expired KV blocks for request {request} which were retrieved by "
            "0 remote worker(s) before lease expired.",
        )
        self._events.expired(request)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            peer, _ = listener.accept()
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        with peer:
            peer.settimeout(_PEER_TIMEOUT_S)
            try:
                while True:
                    self._answer(peer, link.receive(peer))
            except (OSError, ValueError, KeyError):
                return  # it left, or it is no peer of ours

    def _answer(self, peer: socket.socket, message: dict[str, Any]) -> None:
        if message.get("get") == "meta":
            link.send(peer, self._meta())
        elif "read" in message:
            data = self._shelf.get(message["read"])
            if data is None:
                link.send(peer, {"error": "unknown request"})
            else:
                data = data[int(message["skip"]) :]
                link.send(peer, {"bytes": len(data)}, data)
        elif "done" in message:
            self._shelf.drop(message["done"])
            link.send(peer, {})
        else:
            raise ValueError("unknown message")

    def _meta(self) -> dict[str, Any]:
        return {
            "engine_id": self._kv.engine_id,
            "hash": self._hash,
            "version": VERSION,
            "tp_size": self._config.tp,
            "block_size": self._config.block_size,
        }

    # Decode

    def complete(self, params: dict[str, Any]) -> bool:
        """Whether the params name a prefill and its request."""
        return all(params.get(key) not in (None, "") for key in _NEEDED)

    def fetch(self, params: dict[str, Any], skip: int, timeout_s: float) -> bytes:
        """Dial, compare, read, release. Raises TransferFailure."""
        address = (str(params["remote_host"]), int(params["remote_port"]))
        deadline = time.monotonic() + timeout_s
        try:
            sock, meta = self._dial(address, deadline)
        except (OSError, ValueError, KeyError):
            raise TransferFailure(
                "handshake_failed", "zmq.error.Again: Resource temporarily unavailable", setup=True
            ) from None
        with sock:
            self._compare(address, meta, str(params["remote_engine_id"]))
            try:
                return self._read(sock, str(params["remote_request_id"]), skip)
            except (OSError, ValueError, KeyError) as e:
                raise TransferFailure("transfer_failed", f"RuntimeError: {e}") from None

    def _dial(
        self, address: tuple[str, int], deadline: float
    ) -> tuple[socket.socket, dict[str, Any]]:
        """A connection and the peer's metadata; like zmq, refusals are retried until the end."""
        while True:
            left = max(0.05, deadline - time.monotonic())
            try:
                sock = socket.create_connection(address, timeout=left)
            except OSError:
                if time.monotonic() + _RETRY_S > deadline:
                    raise
                time.sleep(_RETRY_S)
                continue
            try:
                link.send(sock, {"get": "meta"})
                meta = link.receive(sock)
            except (OSError, ValueError):
                sock.close()
                raise
            sock.settimeout(_PEER_TIMEOUT_S)
            return sock, meta

    def _compare(self, address: tuple[str, int], meta: dict[str, Any], engine: str) -> None:
        theirs, mine = meta["hash"], self._hash
        if self._kv.enforce_compat and theirs != mine:
            raise TransferFailure(
                "handshake_failed",
                f"RuntimeError: NIXL compatibility hash mismatch. Local: {mine}, Remote: {theirs}. "
                "Prefill and decode instances have incompatible configurations. This may be due "
                "to: different vLLM versions, models, dtypes, KV cache layouts, attention "
                "backends, etc. Both instances must use identical configurations.",
                setup=True,
            )
        if meta["engine_id"] != engine:
            raise TransferFailure(
                "handshake_failed",
                f"RuntimeError: Remote NIXL agent engine ID mismatch. Expected {engine}, "
                f"received {meta['engine_id']}.",
                setup=True,
            )
        self._compare_shapes(int(meta["tp_size"]), int(meta["block_size"]))
        self._note_peer(address, engine, int(meta["tp_size"]))

    def _compare_shapes(self, tp: int, block: int) -> None:
        own_tp, own_block = self._config.tp, self._config.block_size
        problem = None
        if max(own_tp, tp) % min(own_tp, tp):
            problem = (
                f"AssertionError: Local tensor parallel size {own_tp} is not divisible by remote "
                f"tensor parallel size {tp}."
            )
        elif tp > own_tp and tp > self._config.model.kv_heads:
            problem = "AssertionError"
        elif max(own_block, block) % min(own_block, block):
            problem = (
                f"AssertionError: Local block size {own_block} is not divisible by remote block "
                f"size {block} or vice versa."
            )
        if problem:
            raise TransferFailure("handshake_failed", problem, setup=True)

    def _note_peer(self, address: tuple[str, int], engine: str, tp: int) -> None:
        before = self._peers.get(address)
        if before == engine:
            return
        self._peers[address] = engine
        self._log.info(
            "base_worker.py:1093", f"NIXL compatibility check passed (hash: {self._hash})"
        )
        own = self._config.tp
        ratio = own // tp if own >= tp else -(tp // own)
        self._log.info(
            "base_worker.py:2255",
            f"Transfer plan: TransferTopology(tp_ratio={ratio}, "
            f"num_kv_heads={self._config.model.kv_heads}, local_tp={own}, remote_tp={tp})",
        )
        if before:
            self._log.info(
                "base_worker.py:3596",
                f"Remote engine at {address[0]}:{address[1]} changed from {before} to {engine}.",
            )

    def _read(self, sock: socket.socket, request: str, skip: int) -> bytes:
        link.send(sock, {"read": request, "skip": skip})
        head = link.receive(sock)
        if "error" in head:
            raise ValueError(f"remote KV of {request} is gone: {head['error']}")
        data = link.receive_bytes(sock, int(head["bytes"]))
        link.send(sock, {"done": request})
        link.receive(sock)
        return data

    def explain(self, request: str, params: dict[str, Any], failure: TransferFailure) -> None:
        """Log a failed fetch, with the context that vLLM adds."""
        trace = f"Traceback (most recent call last):\n{failure.error}"
        context: dict[str, Any] = {
            "failure_type": "handshake_setup_failed", "request_id": None,
            "engine_id": self._kv.engine_id, "remote_engine_id": params["remote_engine_id"],
        }  # fmt: skip
        if failure.setup:
            self._log.error(
                "base_worker.py:1318",
                f"NIXL transfer failure: handshake_setup_failed | Context: {context}\n{trace}",
            )
        context |= {
            "failure_type": failure.kind, "request_id": request,
            "remote_request_id": params["remote_request_id"],
            "remote_host": params["remote_host"], "remote_port": params["remote_port"],
        }  # fmt: skip
        self._log.error(
            "base_worker.py:1354",
            f"NIXL transfer failure: {failure.kind} | Context: {context}\n{trace}",
        )
