"""What SSH can do to us, as the errors this program explains: one function, one table of tests."""

from __future__ import annotations

import errno
import re
import socket
from collections.abc import Sequence

import asyncssh
from asyncssh.config import ConfigParseError

from backend.domain.errors import (
    HostDenied,
    HostError,
    HostUnreachable,
    PdError,
    RemoteFailed,
)
from backend.domain.host import Host

FORBIDDEN, FAILED, SHORTAGE = 1, 2, 4
"""Channel open failure codes of RFC 4254: forbidden by the server, connect failed, no resources."""


class DialFailed(HostError):
    """The host is reachable, but a TCP port seen from it is not; `values` has dest, port, cause."""


def _where(host: Host) -> str:
    return f"{host.address}:{host.port}" if host.port != 22 else host.address


def lost(host: Host, doing: str) -> HostUnreachable:
    """The connection ended while something was under way: its outcome is not known."""
    return HostUnreachable.of(
        "host.lost",
        f"host {host.name}: the connection was lost while {doing}; its outcome is not known.",
        remedy="The next call connects again; operations are safe to repeat.",
        values={"host": host.name},
    )


def _unreachable(host: Host, rule: str, cause: str, remedy: str) -> PdError:
    return HostUnreachable.of(
        rule,
        f"host {host.name} ({_where(host)}): {cause}.",
        remedy=remedy,
        values={"host": host.name, "address": host.address, "port": host.port, "cause": cause},
    )


def _denied(host: Host, rule: str, cause: str, remedy: str) -> PdError:
    return HostDenied.of(
        rule,
        f"host {host.name} ({_where(host)}): {cause}.",
        remedy=remedy,
        values={"host": host.name, "user": host.user or "", "cause": cause},
    )


def passphrase_needed(host: Host, files: Sequence[str]) -> PdError:
    """The login was refused, and these identity files could not be tried: they are locked."""
    return HostDenied.of(
        "host.passphrase",
        f"host {host.name} ({_where(host)}): it refused the login; {', '.join(files)} "
        f"{'is' if len(files) == 1 else 'are'} locked by a passphrase and could not be tried.",
        remedy="Unlock it for this backend's life with `pdtui hosts unlock`, or load it into the "
        "ssh agent with ssh-add.",
        values={"host": host.name, "user": host.user or "", "identities": list(files)},
    )


def no_keys_taken(host: Host) -> PdError:
    """The server has ways to log in, and a key is none of them."""
    return _denied(
        host, "host.password_only", "it takes no keys, only passwords or the like",
        "Passwords are neither asked for nor kept: set PubkeyAuthentication yes there, and put a "
        "key in the account's authorized_keys (ssh-copy-id).",
    )  # fmt: skip


def _key_trouble(exc: BaseException, host: Host) -> PdError | None:
    """Trouble with our own side of the login: identity files and the ssh configuration."""
    if isinstance(exc, ConfigParseError):
        return HostError.of(
            "host.ssh_config",
            f"host {host.name}: the ssh configuration cannot be read: {exc}.",
            remedy="Correct that line of the ssh configuration file.",
            values={"host": host.name, "cause": str(exc)},
        )
    if isinstance(exc, FileNotFoundError | PermissionError | IsADirectoryError):
        name = exc.filename or "an identity file"
        return _denied(
            host, "host.identity", f"{name} cannot be read ({exc.strerror})",
            "Set identity_files to a readable private key, or remove the entry.",
        )  # fmt: skip
    if isinstance(exc, asyncssh.KeyEncryptionError):
        return _denied(
            host, "host.identity", f"the identity file's passphrase is wrong ({exc})",
            "Load the key into the ssh agent with ssh-add.",
        )  # fmt: skip
    if isinstance(exc, asyncssh.KeyImportError):
        return _denied(
            host, "host.identity", f"an identity file cannot be used ({exc})",
            "An encrypted key has to be loaded into the ssh agent with ssh-add.",
        )  # fmt: skip
    return None


def _network_trouble(exc: OSError, host: Host, timeout: float) -> PdError:
    if isinstance(exc, socket.gaierror):
        return _unreachable(
            host, "host.name", f"the name {host.address!r} does not resolve ({exc.strerror})",
            "Check the address, or give an IP.",
        )  # fmt: skip
    if isinstance(exc, ConnectionRefusedError):
        return _unreachable(
            host, "host.refused", "nothing listens there (connection refused)",
            "Check that sshd runs and that the port is right.",
        )  # fmt: skip
    if isinstance(exc, TimeoutError):
        return _unreachable(
            host, "host.timeout", f"no answer within {timeout:g} s",
            "Check the address, the network and any firewall between.",
        )  # fmt: skip
    if isinstance(exc, ConnectionResetError | BrokenPipeError):
        return _unreachable(
            host, "host.dropped", "it dropped the connection during the handshake",
            "Check that the port is an SSH server's, and its MaxStartups.",
        )  # fmt: skip
    if exc.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH):
        return _unreachable(
            host, "host.route", f"no route to it ({exc.strerror})",
            "Check the address, that the machine is up, and the network between.",
        )  # fmt: skip
    return _unreachable(
        host, "host.network", f"the network failed ({exc.strerror or exc})",
        "Try `ssh` to the same address.",
    )  # fmt: skip


def _disconnected(exc: asyncssh.DisconnectError, host: Host, timeout: float) -> PdError:
    if isinstance(exc, asyncssh.PermissionDenied):
        user = f" for user {host.user}" if host.user else ""
        return _denied(
            host, "host.login", f"it refused the login{user} ({exc.reason})",
            "Check user and identity_files, or load the key with ssh-add; "
            "a locked account is refused too.",
        )  # fmt: skip
    if isinstance(exc, asyncssh.ConnectionLost) and "timeout" in exc.reason.lower():
        return _unreachable(
            host, "host.mute", f"it accepted the connection but said nothing for {timeout:g} s",
            "Check that the port is an SSH server's and that the machine is not hung.",
        )  # fmt: skip
    if isinstance(exc, asyncssh.KeyExchangeFailed):
        return _unreachable(
            host, "host.algorithms", f"no algorithm in common ({exc.reason})",
            "Upgrade its SSH server, or allow an algorithm in ~/.ssh/config.",
        )  # fmt: skip
    if isinstance(exc, asyncssh.ProtocolError | asyncssh.ProtocolNotSupported):
        return _unreachable(
            host, "host.protocol", f"what answers there speaks no SSH ({exc.reason})",
            "Check the port.",
        )  # fmt: skip
    return _unreachable(
        host, "host.dropped", f"it ended the connection ({exc.reason})",
        "Check that the port is an SSH server's, and its MaxStartups.",
    )  # fmt: skip


def explain(exc: BaseException, host: Host, *, timeout: float = 0.0) -> PdError:
    """`exc`, raised while connecting to or using `host`, as one of our errors.

    Errors that are ours already come back unchanged. Anything unforeseen becomes a `HostError`
    that says what it was.
    """
    if isinstance(exc, PdError):
        return exc
    trouble = _key_trouble(exc, host)
    if trouble:
        return trouble
    if isinstance(exc, OSError):
        return _network_trouble(exc, host, timeout)
    if isinstance(exc, asyncssh.DisconnectError):
        return _disconnected(exc, host, timeout)
    if isinstance(exc, asyncssh.ChannelOpenError):
        return _channel_trouble(exc, host)
    if isinstance(exc, asyncssh.SFTPError):
        return RemoteFailed.of(
            "host.sftp", f"host {host.name}: a file operation failed: {exc.reason}.",
            remedy="Check the path and the rights on it.",
            values={"host": host.name, "cause": exc.reason},
        )  # fmt: skip
    return HostError.of(
        "host.failed",
        f"host {host.name}: {type(exc).__name__}: {exc}.",
        remedy="Check the host's entry in the inventory.",
        values={"host": host.name, "cause": str(exc)},
    )


def _channel_trouble(exc: asyncssh.ChannelOpenError, host: Host) -> PdError:
    if "closed" in exc.reason.lower():
        return lost(host, "a channel was opened")
    return HostError.of(
        "host.sessions",
        f"host {host.name}: it opens no further session ({exc.reason}).",
        remedy="Raise MaxSessions of its SSH server, or close other programs' sessions.",
        values={"host": host.name, "cause": exc.reason},
    )


def dial_failed(exc: asyncssh.ChannelOpenError, host: Host, dest: str, port: int) -> PdError:
    """A TCP connection from `host` to `dest:port` that was not made."""
    if "closed" in exc.reason.lower():
        return lost(host, f"{dest}:{port} was dialled")
    if exc.code == FORBIDDEN:
        return HostError.of(
            "host.forwarding",
            f"host {host.name}: its SSH server forbids TCP forwarding ({exc.reason}).",
            remedy="Set AllowTcpForwarding yes (or local) there; members are probed through it.",
            values={"host": host.name, "dest": dest, "port": port, "cause": exc.reason},
        )
    return DialFailed.of(
        "host.dial",
        f"host {host.name}: {dest}:{port} cannot be reached from it ({exc.reason}).",
        values={"host": host.name, "dest": dest, "port": port, "cause": exc.reason},
    )


_NAMED = re.compile(r"^\s*\((\S+)\)(.*)$", re.DOTALL)


def at_jump(error: HostError, host: Host, hop: Host, *, listed: bool) -> HostError:
    """What kept us from a jump host, said of the host behind it; a hop that is no entry of the
    inventory (`listed`) is named by its address. Its values are still the hop's."""

    def told(message: str) -> str:
        rest = message.removeprefix(f"host {hop.name}")
        if rest == message:
            return message
        named = _NAMED.match(rest)
        label = hop.name if listed else named[1] if named else hop.address
        where = f" ({named[1]})" if named and listed else ""
        return f"host {host.name}: its jump host {label}{where}{named[2] if named else rest}"

    changed = [p.model_copy(update={"message": told(p.message)}) for p in error.problems]
    return type(error)(*changed)


def through_jump(exc: asyncssh.ChannelOpenError, host: Host, hop: Host) -> PdError:
    """The jump host is reached, the host behind it is not."""
    return _unreachable(
        host, "host.jump", f"jump host {hop.address} cannot reach it ({exc.reason})",
        "Check the address as the jump host sees it, and that it may forward TCP.",
    )  # fmt: skip
