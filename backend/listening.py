"""Where the backend listens: its own Unix socket, and TCP for callers with a token."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import os
import re
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from backend.domain.errors import Invalid, PdError, Refused

log = logging.getLogger(__name__)

GRACE_S = 2
RELOAD_S = 20.0
_ADDRESS = re.compile(r"^(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(?P<port>\d{1,5})$")


@dataclass(frozen=True)
class Tcp:
    """A TCP address to listen on. `names` are further Host names it is reached under; `plain`
    means that something in front of it does TLS."""

    host: str
    port: int
    certificate: Path | None = None
    key: Path | None = None
    names: tuple[str, ...] = ()
    plain: bool = False

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False

    def hosts(self) -> tuple[str, ...]:
        """Host headers that mean this address."""
        return (self.host, socket.gethostname(), *self.names)


def parse_tcp(
    text: str,
    *,
    certificate: Path | None = None,
    key: Path | None = None,
    names: tuple[str, ...] = (),
    plain: bool = False,
) -> Tcp:
    """`HOST:PORT` as an address. Raises Invalid (`daemon.listen`, `daemon.tls`); Refused
    (`daemon.no_tls`) for one that others can reach and that would pass tokens in clear."""
    found = _ADDRESS.match(text)
    if found is None or int(found["port"]) > 65535:
        raise Invalid.of(
            "daemon.listen",
            f"--listen {text!r} is no HOST:PORT.",
            values={"listen": text},
            remedy="Write for example 127.0.0.1:8470 or [::]:8470.",
        )
    if (certificate is None) != (key is None):
        raise Invalid.of(
            "daemon.tls",
            "a certificate and its key go together, and only one of them is given.",
            values={"--tls-cert": str(certificate), "--tls-key": str(key)},
            remedy="Give both --tls-cert and --tls-key.",
        )
    tcp = Tcp(found["host"], int(found["port"]), certificate, key, names, plain)
    if certificate is None and not plain and not tcp.loopback:
        raise Refused.of(
            "daemon.no_tls",
            f"{text} can be reached from elsewhere, and tokens would pass there in clear.",
            values={"listen": text},
            remedy="Give --tls-cert and --tls-key, listen on 127.0.0.1, or say --plain-http when "
            "a proxy in front of it does TLS.",
        )
    return tcp


def listen(path: Path) -> socket.socket:
    """A Unix socket at `path` that only its owner may use. The caller holds the ownership."""
    path.unlink(missing_ok=True)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        sock.bind(str(path))
    finally:
        os.umask(mask)
    sock.listen(128)
    return sock


def listen_tcp(tcp: Tcp) -> socket.socket:
    """A socket on the address. Raises Refused (`daemon.listen`) when it cannot be had."""
    host = tcp.host.strip("[]")
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, tcp.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(address)
            sock.listen(128)
        except OSError:
            sock.close()
            raise
    except OSError as error:
        raise Refused.of(
            "daemon.listen",
            f"{tcp.host}:{tcp.port} cannot be listened on: {error}.",
            values={"listen": f"{tcp.host}:{tcp.port}", "error": str(error)},
            remedy="Choose an address of this machine and a free port.",
        ) from None
    return sock


def config(app: ASGIApp, tcp: Tcp | None = None) -> uvicorn.Config:
    """How an application is served. Raises Invalid (`daemon.tls`) for unreadable certificates."""
    found = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
        timeout_keep_alive=75,
        ws="none",
        ssl_certfile=str(tcp.certificate) if tcp and tcp.certificate else None,
        ssl_keyfile=str(tcp.key) if tcp and tcp.key else None,
    )
    try:
        found.load()
    except (OSError, ssl.SSLError) as error:
        assert tcp is not None
        raise _unreadable(tcp, error) from None
    return found


def _unreadable(tcp: Tcp, error: Exception) -> PdError:
    return Invalid.of(
        "daemon.tls",
        f"the certificate {tcp.certificate} with the key {tcp.key} cannot be used: {error}.",
        values={"--tls-cert": str(tcp.certificate), "--tls-key": str(tcp.key)},
        remedy="Name PEM files that belong together and that this user may read.",
    )


async def renew(tcp: Tcp, context: ssl.SSLContext, hurry: asyncio.Event) -> None:
    """Take up renewed certificate files, soon after they changed or at once when told to.

    Connections that are open keep theirs; files that cannot be used leave the old ones in force.
    """
    assert tcp.certificate is not None
    assert tcp.key is not None
    last = _mark(tcp)
    while True:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(hurry.wait(), RELOAD_S)
        hurry.clear()
        now = _mark(tcp)
        if now == last:
            continue
        try:
            context.load_cert_chain(tcp.certificate, tcp.key)
        except (OSError, ssl.SSLError) as error:
            log.warning("%s The earlier one stays in force.", _unreadable(tcp, error))
            continue
        last = now
        log.info("the certificate %s is renewed", tcp.certificate)


def _mark(tcp: Tcp) -> tuple[object, ...]:
    found: list[object] = []
    for path in (tcp.certificate, tcp.key):
        try:
            seen = os.stat(path or "")
            found.append((seen.st_ino, seen.st_mtime_ns, seen.st_size))
        except OSError:
            found.append(None)
    return tuple(found)
