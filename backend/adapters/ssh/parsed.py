"""The ssh configuration as read for one destination, kept until one of its files changes.

asyncssh reads the whole configuration anew for every destination, which takes tens of milliseconds
for one of three hundred aliases; a look at all of them would spend most of its time there.
"""

from __future__ import annotations

import re
import shlex
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh

from backend.domain.host import Host

Stamp = tuple[str, int, int, int] | None
_LINE = re.compile(
    r"^[ \t]*(match|include|canonicalizehostname)(?:[ \t]*=[ \t]*|[ \t]+)(.*)$", re.I
)
_MOVING = re.compile(r"\b(exec|localnetwork|final|canonical)\b", re.I)
_MOST = 2000


@dataclass(frozen=True)
class _File:
    """One file read for its structure: what it includes, and whether it says the same each time."""

    stamp: Stamp
    includes: tuple[str, ...]
    settled: bool


@dataclass
class Parsed:
    """Reads configurations, and keeps what it read. Its methods read files: call them in a
    thread; several may at once."""

    _files: dict[Path, _File] = field(default_factory=dict)
    _options: dict[
        tuple[object, ...], tuple[tuple[Stamp, ...], asyncssh.SSHClientConnectionOptions]
    ] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def options(
        self, host: Host, files: tuple[Path, ...]
    ) -> tuple[asyncssh.SSHClientConnectionOptions, bool]:
        """What the files say of the entry, and whether it may stand in for them at a connect.

        It may not where the configuration is to be read again once a name was resolved, or asks
        the machine (`Match exec`). Raises asyncssh's ConfigParseError.
        """
        sources = list(self._sources(files, set()))
        stamps = tuple(f.stamp for f in sources)
        settled = bool(files) and all(f.settled for f in sources)
        key = (files, host.address, host.user, host.port)
        with self._lock:
            known = self._options.get(key)
        if settled and known is not None and known[0] == stamps:
            return known[1], True
        made = _read(host, files)
        if settled:
            with self._lock:
                if len(self._options) >= _MOST:
                    self._options.clear()
                self._options[key] = (stamps, made)
        return made, settled

    def _sources(self, paths: Iterable[Path], seen: set[Path]) -> Iterator[_File]:
        """Each file once, with what it includes."""
        for path in paths:
            if path not in seen:
                seen.add(path)
                found = self._file(path)
                yield found
                for pattern in found.includes:
                    yield from self._sources(included(pattern), seen)

    def _file(self, path: Path) -> _File:
        stamp = _stamp(path)
        with self._lock:
            known = self._files.get(path)
        if known is not None and known.stamp == stamp:
            return known
        includes: list[str] = []
        settled = stamp is not None
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            text, settled = "", False
        for line in text.splitlines():
            if not (match := _LINE.match(line)):
                continue
            word, rest = match[1].lower(), match[2]
            if word == "include":
                try:
                    includes += shlex.split(rest)
                except ValueError:
                    settled = False
            elif word == "match":
                settled = settled and not _MOVING.search(rest)
            else:
                settled = False
        read = _File(stamp, tuple(includes), settled)
        with self._lock:
            self._files[path] = read
        return read


def _stamp(path: Path) -> Stamp:
    try:
        found = path.stat()
    except OSError:
        return None
    return str(path), found.st_ino, found.st_mtime_ns, found.st_size


def included(pattern: str) -> list[Path]:
    """Files of one word of an `Include`: a relative one counts from `~/.ssh`, as ssh has it."""
    path = Path(pattern).expanduser()
    base = Path(path.anchor) if path.anchor else Path("~/.ssh").expanduser()
    rest = str(path.relative_to(path.anchor)) if path.anchor else str(path)
    return sorted(p for p in base.glob(rest) if p.is_file())


def _read(host: Host, files: tuple[Path, ...]) -> asyncssh.SSHClientConnectionOptions:
    """The configuration applied to the entry, whose own user and port win; 22, the default port,
    leaves the choice to the configuration."""
    own: dict[str, object] = {}
    if host.user:
        own["username"] = host.user
    if host.port != 22:
        own["port"] = host.port
    return asyncssh.SSHClientConnectionOptions(
        config=[str(f) for f in files],
        host=host.address,
        client_keys=None,
        known_hosts=None,
        **own,
    )
