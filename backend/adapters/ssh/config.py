"""Where a host entry leads: the ssh configuration applied, and the options to connect with."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import asyncssh
from asyncssh.config import ConfigParseError
from asyncssh.encryption import get_default_encryption_algs
from asyncssh.public_key import get_default_certificate_algs, get_default_public_key_algs

from backend.adapters.ssh.hostkeys import KnownKeys
from backend.adapters.ssh.identities import Identity
from backend.adapters.ssh.parsed import Parsed
from backend.domain.host import Host


@dataclass(frozen=True)
class Route:
    """How one host is reached. `alias` is the name its key is known by; `hops` are jump hosts,
    first one first, as `[user@]host[:port]`. `identity_files` is None where nothing names any;
    `options` are what a connect may start from instead of reading `files` again."""

    files: tuple[Path, ...]
    hostname: str
    port: int
    alias: str
    hops: tuple[str, ...] = ()
    known_hosts_files: tuple[str, ...] | None = None
    chooses_algorithms: bool = False
    chooses_ciphers: bool = False
    user: str = ""
    identity_files: tuple[str, ...] | None = None
    options: asyncssh.SSHClientConnectionOptions | None = None


def config_files(given: Path | None) -> tuple[Path, ...]:
    """The ssh configuration to honour: the given file, else `~/.ssh/config`; none if absent."""
    path = given if given is not None else Path("~/.ssh/config").expanduser()
    return (path,) if path.is_file() else ()


def route(host: Host, files: tuple[Path, ...], parsed: Parsed | None = None) -> Route:
    """Resolve the entry. Its own fields win over the configuration, except that port 22, the
    entry's default, leaves the choice to the configuration. `parsed` keeps what was read.

    Raises asyncssh's ConfigParseError for an unreadable configuration. Reads files: call it in a
    thread.
    """
    try:
        options, settled = (parsed or Parsed()).options(host, files)
    except RecursionError:
        raise ConfigParseError("an Include leads back to its own file") from None
    config = options.config
    hostname = str(config.get("Hostname", host.address))
    hops = host.jump if host.jump is not None else config.get("ProxyJump")
    known = config.get("UserKnownHostsFile")
    keys = host.identity_files or config.get("IdentityFile")
    return Route(
        files=files,
        options=options if settled else None,
        hostname=hostname,
        port=int(cast("int", config.get("Port", 22))),
        alias=str(config.get("HostKeyAlias") or hostname),
        hops=_hops(str(hops)) if hops else (),
        known_hosts_files=None if known is None else tuple(cast("list[str]", known)),
        chooses_algorithms=config.get("HostKeyAlgorithms") is not None,
        chooses_ciphers=config.get("Ciphers") is not None,
        user=str(config.get("User") or ""),
        identity_files=None if keys is None else tuple(str(k) for k in cast("list[str]", keys)),
    )


def _hops(text: str) -> tuple[str, ...]:
    if text.strip().lower() in ("", "none"):
        return ()
    return tuple(part.strip() for part in text.split(",") if part.strip())


def hop_host(text: str, before: str = "") -> Host:
    """A jump host written as `[user@]host[:port]` or `[user@][v6]:port`, as an entry of its own.

    `before` are the jump hosts on the way to it, with commas between.

    Raises ValueError when the port is no number.
    """
    user, _, rest = text.rpartition("@")
    address, port = rest, 22
    if rest.startswith("["):
        address, _, tail = rest[1:].partition("]")
        port = int(tail[1:]) if tail.startswith(":") else 22
    elif rest.count(":") == 1:
        address, _, number = rest.partition(":")
        port = int(number)
    way = ".".join(part for part in (before, text) if part).lower()
    plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in way).strip("-")[:36]
    digest = hashlib.sha256(way.encode()).hexdigest()[:8]
    return Host(
        name=f"jump.{plain or 'hop'}.{digest}",
        address=address,
        port=port,
        user=user or None,
        jump=before or None,
    )


def _ciphers() -> list[str]:
    """asyncssh's own choice, AES-GCM first: one call of the processor's own instruction a packet,
    where chacha20-poly1305 takes nine calls, which is a third of what a connection costs us."""
    return sorted((a.decode() for a in get_default_encryption_algs()), key=lambda a: "gcm" not in a)


def connect_options(
    host: Host, way: Route, known: KnownKeys, identity: Identity
) -> Mapping[str, Any]:
    """Keyword arguments for asyncssh's connect, apart from timeouts, tunnel and key checking."""
    options: dict[str, Any] = {
        **({"options": way.options} if way.options else {"config": [str(f) for f in way.files]}),
        "agent_forwarding": False,
        "password_auth": False,
        "kbdint_auth": False,
        "request_pty": False,
    }
    if host.user:
        options["username"] = host.user
    if host.port != 22:
        options["port"] = host.port
    if identity.keys is not None:
        options["client_keys"] = list(identity.keys)
        options["ignore_encrypted"] = True  # the agent may hold it; if not, `locked` says so
    elif way.options:
        options["client_keys"] = ()  # asyncssh's own choice
    if not way.chooses_ciphers:
        options["encryption_algs"] = _ciphers()
    if known.accepted and not way.chooses_algorithms:
        rest = [a.decode() for a in get_default_public_key_algs()]
        certificates = [a.decode() for a in get_default_certificate_algs()]
        first = known.algorithms()
        ordered = [*(certificates if known.authorities else []), *first, *rest]
        options["server_host_key_algs"] = list(dict.fromkeys(ordered))
    return options
