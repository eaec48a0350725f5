"""Accepted host keys: our own file, and the user's, which is only read.

asyncssh gives the same exception for an unknown and for a changed key, and turns verification off
for `UserKnownHostsFile none`; so the decision is made here, for every key, in one place.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncssh
from asyncssh.known_hosts import SSHKnownHosts

from backend.domain.errors import HostKeyChanged, HostKeyUnknown, PdError
from backend.domain.host import Host
from backend.domain.shell import quote

GLOBAL_FILE = Path("/etc/ssh/ssh_known_hosts")


@dataclass(frozen=True)
class KnownKeys:
    """What is known of one host: accepted keys, certificate authorities, revoked keys."""

    accepted: tuple[asyncssh.SSHKey, ...] = ()
    authorities: tuple[asyncssh.SSHKey, ...] = ()
    revoked: tuple[asyncssh.SSHKey, ...] = ()

    def algorithms(self) -> list[str]:
        """Signature algorithms of the accepted keys: asked for first, as OpenSSH does, so that
        a host known by one of its keys is not taken for an unknown one."""
        return list(dict.fromkeys(a.decode() for key in self.accepted for a in key.sig_algorithms))


def entry_name(name: str, port: int) -> str:
    """How known_hosts files write a host: plain for port 22, `[name]:port` for any other."""
    return name if port == 22 else f"[{name}]:{port}"


def _load(path: Path, into: SSHKnownHosts) -> None:
    """Add the file's entries; a line we cannot read is skipped, as OpenSSH does."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, PermissionError, NotADirectoryError, IsADirectoryError):
        return
    for line in text.splitlines():
        try:
            into.load(line)
        except ValueError:
            continue


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """What changes when a file does; None while there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


class HostKeys:
    """The known_hosts files: small, edited by others, and so read anew whenever one has changed."""

    def __init__(self, own: Path, others: Iterable[Path] | None = None) -> None:
        self.own = own
        self._others = tuple(others) if others is not None else None
        self._read: dict[tuple[Path, ...], tuple[list[Any], SSHKnownHosts]] = {}

    def files(self, configured: Iterable[str] | None) -> list[Path]:
        """Every file looked at. `configured` is the ssh configuration's UserKnownHostsFile."""
        if self._others is not None:
            return [self.own, *self._others]
        user = ["~/.ssh/known_hosts"] if configured is None else list(configured)
        return [self.own, *(Path(p).expanduser() for p in user), GLOBAL_FILE]

    def known(
        self, name: str, addr: str, port: int, configured: Iterable[str] | None = None
    ) -> KnownKeys:
        """What the files say of the host of that name, IP address (may be empty) and port."""
        entries = self._entries(self.files(configured))
        wanted = port if port != 22 else None
        found: Any = entries.match(name, "" if addr == name else addr, wanted)
        return KnownKeys(tuple(found[0]), tuple(found[1]), tuple(found[2]))

    def holding(
        self, name: str, addr: str, port: int, configured: Iterable[str] | None = None
    ) -> list[Path]:
        """The files that hold an accepted key of the host."""
        wanted, other = port if port != 22 else None, "" if addr == name else addr
        return [
            f for f in self.files(configured) if self._entries([f]).match(name, other, wanted)[0]
        ]

    def _entries(self, files: list[Path]) -> SSHKnownHosts:
        """The files' entries. With a hundred hosts, to read a hundred keys for each is most of the
        work of connecting to them."""
        stamps = [_stamp(path) for path in files]
        known = self._read.get(tuple(files))
        if known is not None and known[0] == stamps:
            return known[1]
        entries = SSHKnownHosts()
        for path in files:
            _load(path, entries)
        self._read[tuple(files)] = (stamps, entries)
        return entries

    def add(self, name: str, port: int, key: asyncssh.SSHKey) -> None:
        """Append the key to our own file, atomically, readable by the owner only."""
        line = f"{entry_name(name, port)} {key.export_public_key().decode().strip()}\n".encode()
        self.own.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        before = self.own.read_bytes() if self.own.exists() else b""
        if before and not before.endswith(b"\n"):
            before += b"\n"
        if line in before:
            return
        handle, temporary = tempfile.mkstemp(dir=self.own.parent, prefix=".known_hosts.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(before + line)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self.own)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise


@dataclass
class KeyCheck:
    """One connection's verdict on the key it was shown: asyncssh itself tells only yes or no."""

    host: Host
    keys: HostKeys
    configured: tuple[str, ...] | None = None
    name: str = ""
    addr: str = ""
    port: int = 22
    shown: asyncssh.SSHKey | None = None
    error: PdError | None = field(default=None)

    def lookup(
        self, name: str, addr: str, port: int | None
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """For asyncssh's `known_hosts`: no accepted key, so that every key comes to `check`."""
        known = self.keys.known(name, addr, port or 22, self.configured)
        return [], list(known.authorities), []

    def check(self, name: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        """Whether the shown key is an accepted one; otherwise `error` says why not."""
        self.name, self.addr, self.port, self.shown = name, addr, port, key
        known = self.keys.known(name, addr, port, self.configured)
        if key in known.revoked:
            self.error = self._changed(key, known, revoked=True)
        elif key in known.accepted:
            self.error = None
        elif known.accepted:
            self.error = self._changed(key, known)
        else:
            self.error = self._unknown(key)
        return self.error is None

    def _unknown(self, key: asyncssh.SSHKey) -> PdError:
        kind, print_ = key.get_algorithm(), key.get_fingerprint()
        return HostKeyUnknown.of(
            "host.key_unknown",
            f"host {self.host.name} ({entry_name(self.name, self.port)}) shows the key {kind} "
            f"{print_}, which was never accepted.",
            remedy="Compare the fingerprint with the host's own "
            "(ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub), then accept it: pdtui hosts accept-key "
            f"HOST {print_}",
            values={"host": self.host.name, "type": kind, "fingerprint": print_},
        )

    def _changed(self, key: asyncssh.SSHKey, known: KnownKeys, *, revoked: bool = False) -> PdError:
        kind, print_ = key.get_algorithm(), key.get_fingerprint()
        accepted = [k.get_fingerprint() for k in known.accepted]
        name = entry_name(self.name, self.port)
        if revoked:
            text = f"the key {kind} {print_}, which is marked as revoked"
            remedy = "Do not connect until the host has a new key."
        else:
            text = f"the key {kind} {print_}, but {', '.join(accepted)} was accepted"
            holding = self.keys.holding(self.name, self.addr, self.port, self.configured)
            removed = [f"ssh-keygen -R {quote(name)} -f {quote(str(f))}" for f in holding]
            remedy = (
                "Someone may be in between. If the host was reinstalled, remove the old key: "
                + " and ".join(removed)
            )
        return HostKeyChanged.of(
            "host.key_revoked" if revoked else "host.key_changed",
            f"host {self.host.name} ({name}) shows {text}.",
            remedy=remedy,
            values={
                "host": self.host.name, "type": kind, "fingerprint": print_,
                "accepted": accepted[0] if accepted else "", "all_accepted": accepted,
            },
        )  # fmt: skip


class KeyChecker(asyncssh.SSHClient):
    """Hands every host key to the connection's `KeyCheck`."""

    def __init__(self, verdict: KeyCheck) -> None:
        self._verdict = verdict
        self.takes_keys = False

    def public_key_auth_requested(self) -> None:
        """The server takes keys, and has refused all of ours: there is no other."""
        self.takes_keys = True

    def validate_host_public_key(
        self, host: str, addr: str, port: int, key: asyncssh.SSHKey
    ) -> bool:
        """Whether `key` is accepted for this host."""
        return self._verdict.check(host, addr, port, key)
