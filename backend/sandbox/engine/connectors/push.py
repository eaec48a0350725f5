"""Transfers in which decode asks prefill by a key that the router gave both of them.

Prefill runs a small HTTP server, its bootstrap, that tells where its ranks listen; decode asks it,
then asks the rank, which sends the KV as soon as it is there.
"""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from backend.sandbox.engine import link
from backend.sandbox.engine.config import EngineConfig
from backend.sandbox.engine.connectors import Events, TransferFailure
from backend.sandbox.engine.connectors.shelf import Shelf
from backend.sandbox.engine.log import Log
from backend.sandbox.engine.transfer import KvTransfer

_PEER_TIMEOUT_S = 30.0
_RETRY_S = 0.1


class Push:
    """Both sides. `KEY` is the parameter that names a request on both of them."""

    KEY = ""

    def __init__(self, config: EngineConfig, kv: KvTransfer, log: Log, events: Events) -> None:
        self._config, self._kv, self._log, self._events = config, kv, log, events
        self._shelf = Shelf(kv.lease_s, self._expired)
        self._rank = ("", 0)

    # What the dialects differ in

    def get(self, path: str) -> tuple[int, Any]:
        """The bootstrap server's answer to a GET: status and body."""
        raise NotImplementedError

    def put(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        """The bootstrap server's answer to a POST or PUT."""
        raise NotImplementedError

    def complete(self, params: dict[str, Any]) -> bool:
        """Whether a decode request's params name a prefill and its request."""
        raise NotImplementedError

    def find(self, params: dict[str, Any], timeout_s: float) -> tuple[str, int]:
        """Ask the bootstrap where the prefill's rank listens.

        Raises OSError or ValueError when it cannot be asked, TransferFailure when it is another.
        """
        raise NotImplementedError

    # Prefill

    def listen(self) -> None:
        """Serve the bootstrap and this engine's rank, and watch the leases; prefill only."""
        if not self._kv.produces:
            return
        rank = link.listen((self._kv.side_host, 0))
        self._rank = rank.getsockname()[:2]
        server = _Bootstrap((self._kv.side_host, self._kv.side_port), self)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        threading.Thread(target=self._accept, args=(rank,), daemon=True).start()
        self._shelf.start()

    def keep(self, request: str, params: dict[str, Any], data: bytes) -> None:
        """Hold a prompt's KV until its decode asks for it or its lease runs out."""
        self._shelf.put(str(params.get(self.KEY)), data)

    def offer(self, request: str, tokens: int) -> dict[str, Any] | None:
        """Nothing: the router knows already what decode needs."""
        return None

    def _expired(self, key: str) -> None:
        self._events.expired(key)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            peer, _ = listener.accept()
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        with peer:
            peer.settimeout(_PEER_TIMEOUT_S)
            try:
                order = link.receive(peer)
                key = str(order["pull"])
                data = self._shelf.get(key, float(order["wait"]))
                if data is None:
                    link.send(peer, {"error": f"no KV of {key}"})
                    return
                began, data = time.perf_counter(), data[int(order["skip"]) :]
                link.send(peer, {"bytes": len(data), "tp_size": self._config.tp}, data)
                link.receive(peer)
            except (OSError, ValueError, KeyError):
                return  # it left, or it is no peer of ours
        self._shelf.drop(key)
        self._events.sent(len(data), time.perf_counter() - began)

    # Decode

    def fetch(self, params: dict[str, Any], skip: int, timeout_s: float) -> bytes:
        """Find the rank, ask it, take what it sends. Raises TransferFailure."""
        deadline = time.monotonic() + timeout_s
        try:
            address = self._found(params, deadline)
            left = max(0.05, deadline - time.monotonic())
            with socket.create_connection(address, timeout=left) as peer:
                peer.settimeout(left + 1)
                link.send(peer, {"pull": str(params[self.KEY]), "skip": skip, "wait": left})
                head = link.receive(peer)
                if "error" in head:
                    raise ValueError(head["error"])
                peer.settimeout(_PEER_TIMEOUT_S)
                data = link.receive_bytes(peer, int(head["bytes"]))
                link.send(peer, {"done": True})
        except (OSError, ValueError, KeyError, http.client.HTTPException) as e:
            raise TransferFailure("transfer_failed", f"{type(e).__name__}: {e}") from None
        return data

    def _found(self, params: dict[str, Any], deadline: float) -> tuple[str, int]:
        while True:
            try:
                return self.find(params, max(0.05, deadline - time.monotonic()))
            except ConnectionRefusedError:
                if time.monotonic() + _RETRY_S > deadline:
                    raise
                time.sleep(_RETRY_S)


def ask(host: str, port: int, path: str, timeout_s: float) -> Any:
    """The JSON a bootstrap server answers. Raises OSError, HTTPException, ValueError."""
    connection = http.client.HTTPConnection(host, port, timeout=timeout_s)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != http.client.OK:
            raise ValueError(f"{host}:{port}{path} answered {answer.status}")
        return json.loads(body)
    finally:
        connection.close()


class _Bootstrap(ThreadingHTTPServer):
    """The bootstrap's HTTP side; the answers are its owner's."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], owner: Push) -> None:
        self.owner = owner
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that left is nothing to print a traceback for."""


class _Handler(BaseHTTPRequestHandler):
    server: _Bootstrap

    def do_GET(self) -> None:
        self._answer(*self.server.owner.get(self.path))

    def do_POST(self) -> None:
        try:
            body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)))
        except ValueError:
            body = None
        if not isinstance(body, dict):
            self._answer(422, {"detail": "a JSON object is expected"})
            return
        self._answer(*self.server.owner.put(self.path, body))

    do_PUT = do_POST

    def _answer(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Access is not logged."""
