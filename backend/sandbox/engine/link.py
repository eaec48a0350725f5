"""Messages over a socket: four bytes of length, then JSON; raw bytes may follow a message."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

_HEAD = 4
_MOST = 64 * 1024 * 1024


class Closed(ConnectionError):
    """The other side is gone."""


def _framed(message: dict[str, Any]) -> bytes:
    body = json.dumps(message).encode()
    return len(body).to_bytes(_HEAD, "big") + body


def send(sock: socket.socket, message: dict[str, Any], data: bytes = b"") -> None:
    """Send one message and the raw bytes that belong to it."""
    sock.sendall(_framed(message) + data)


def receive_bytes(sock: socket.socket, count: int) -> bytes:
    """Exactly `count` bytes. Raises Closed."""
    parts = []
    while count:
        part = sock.recv(min(count, 1 << 20))
        if not part:
            raise Closed("closed by the peer")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def receive(sock: socket.socket) -> dict[str, Any]:
    """One message. Raises Closed, or ValueError when it is none of ours."""
    size = int.from_bytes(receive_bytes(sock, _HEAD), "big")
    if size > _MOST:
        raise ValueError(f"a message of {size} bytes")
    message = json.loads(receive_bytes(sock, size))
    if not isinstance(message, dict):
        raise ValueError("a message that is no object")
    return message


def listen(address: tuple[str, int]) -> socket.socket:
    """A listening socket. Raises OSError when the address cannot be had."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener


class AsyncLink:
    """The asyncio end of a socket pair."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def over(cls, sock: socket.socket) -> AsyncLink:
        """Take over a connected socket."""
        return cls(*await asyncio.open_connection(sock=sock))

    def send(self, message: dict[str, Any]) -> None:
        """Queue one message."""
        self._writer.write(_framed(message))

    async def receive(self) -> dict[str, Any] | None:
        """The next message, or None when the other side is gone."""
        try:
            size = int.from_bytes(await self._reader.readexactly(_HEAD), "big")
            message: dict[str, Any] = json.loads(await self._reader.readexactly(size))
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        return message

    def close(self) -> None:
        """Let go of the socket."""
        self._writer.close()
