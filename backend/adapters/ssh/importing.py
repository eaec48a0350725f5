"""What the user's ssh configuration knows of hosts: the aliases it names, and where each leads.

Only names a person could type are listed: no patterns, no negations. Where an alias leads is
asyncssh's reading of the whole configuration, `Match` and `Include` with it, as at every connect.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from asyncssh.config import ConfigParseError

from backend.adapters.ssh.config import config_files, route
from backend.adapters.ssh.parsed import included
from backend.domain.host import NAME, Host
from backend.domain.views import SshAlias

_DEEPEST = 16
_WORD = re.compile(r"^\s*(host|match|include)(?:\s*=\s*|\s+)(.*)$", re.I)


def aliases(config: Path | None, patterns: Sequence[str] = ()) -> list[SshAlias]:
    """Every alias of the configuration (default `~/.ssh/config`) that a pattern matches, in order.

    One that cannot be resolved says so in `note`. Reads files: call it in a thread.
    """
    files = config_files(config)
    names = dict.fromkeys(name for file in files for name in _names(file, 0))
    return [
        _resolved(name, files)
        for name in names
        if not patterns or any(fnmatchcase(name, p) for p in patterns)
    ]


def _names(file: Path, depth: int) -> Iterator[str]:
    """Concrete names of `Host` lines, those of included files in their place."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    block = ["*"]  # an Include counts for the hosts of the block that it stands in
    for line in lines:
        found = _WORD.match(line)
        if not found:
            continue
        try:
            words = shlex.split(found.group(2), comments=False)
        except ValueError:
            continue
        keyword = found.group(1).lower()
        if keyword == "match":
            block = ["*"]
        elif keyword == "host":
            block = words
            yield from (w for w in words if not set(w) & set("*?!"))
        elif depth < _DEEPEST:
            inside = (n for f in _included(words) for n in _names(f, depth + 1))
            yield from (n for n in inside if any(fnmatchcase(n, p) for p in block))


def _included(patterns: Iterable[str]) -> Iterator[Path]:
    """Files of an `Include`."""
    for pattern in patterns:
        yield from included(pattern)


def entry_name(alias: str, taken: Iterable[str] = ()) -> str:
    """An inventory name for an alias: lower case, what does not fit becomes a dash."""
    plain = re.sub(r"[^a-z0-9.-]+", "-", alias.lower()).strip("-.")[:60].rstrip("-.") or "host"
    assert NAME.match(plain)
    used, name, number = set(taken), plain, 2
    while name in used:
        name, number = f"{plain}-{number}", number + 1
    return name


def _resolved(alias: str, files: tuple[Path, ...]) -> SshAlias:
    name = entry_name(alias)
    try:
        way = route(Host(name=name, address=alias), files)
    except (ConfigParseError, ValueError, OSError) as exc:
        return SshAlias(alias=alias, name=name, note=f"cannot be resolved: {exc}")
    return SshAlias(
        alias=alias,
        name=name,
        hostname=way.hostname,
        port=way.port,
        user=way.user,
        jump=",".join(way.hops),
        identity_files=way.identity_files or (),
    )
