"""Who sits on a host's ports: its listeners, and which ports cannot be bound for another reason.

A listing alone tells too little: a port may be reserved, or held by a socket that does not listen.
A trial bind takes nothing from anybody: it does not listen, and lets others bind beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from backend.domain.checkup import Listener
from backend.probes.host import SECTION, sections

BIND = r"""import errno, socket, sys
for port in map(int, sys.argv[1:]):
    for family, every in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
        try:
            tried = socket.socket(family)
        except OSError:
            continue
        with tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                if family == socket.AF_INET6:
                    tried.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                tried.bind((every, port))
            except OSError as error:
                if error.errno in (errno.EADDRINUSE, errno.EACCES):
                    print(port, errno.errorcode[error.errno])
                    break
print("tried")
"""

PART = rf"""
part listeners
if command -v ss >/dev/null 2>&1; then bounded 8 ss -Htlnp 2>/dev/null; fi
part bind
if [ $# -gt 0 ] && command -v python3 >/dev/null 2>&1; then
  bounded 8 python3 -c '{BIND}' "$@" 2>/dev/null
fi
"""
"""Sections of a look, whose `part` and `bounded` they use; the arguments are the ports tried."""

SCRIPT = rf"""
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
export PATH
LC_ALL=C
export LC_ALL
bounded() {{
  s=$1
  shift
  if command -v timeout >/dev/null 2>&1; then timeout -k 1 "$s" "$@"; else "$@"; fi
}}
part() {{ printf '\n{SECTION}%s\n' "$1"; }}
{PART}
part end
exit 0
"""

_SOCKET = re.compile(r":(\d+)$")
_USER = re.compile(r'\("([^"]*)",pid=(\d+)')
_STUCK = re.compile(r"^(\d{1,5}) (EADDRINUSE|EACCES)$")


def parse(stdout: str) -> tuple[tuple[Listener, ...], frozenset[int] | None]:
    """SCRIPT's answer: see `listeners` and `unbindable`."""
    part = sections(stdout)
    return listeners(part.get("listeners", "")), unbindable(part.get("bind", ""))


def listeners(text: str) -> tuple[Listener, ...]:
    """`ss -Htlnp`: each port once; without rights the holder stays unknown."""
    found: dict[int, Listener] = {}
    for line in text.splitlines():
        words = line.split()
        at = words.index("LISTEN") if "LISTEN" in words else -1
        port = _SOCKET.search(words[at + 3]) if at >= 0 and len(words) > at + 4 else None
        if port is None or not 0 < int(port[1]) < 65536:
            continue
        user = _USER.search(line)
        seen = Listener(
            port=int(port[1]), pid=int(user[2]) if user else 0, name=user[1] if user else ""
        )
        if seen.port not in found or not found[seen.port].pid:
            found[seen.port] = seen
    return tuple(found[p] for p in sorted(found))


def unbindable(text: str) -> frozenset[int] | None:
    """Ports that could not be bound; None where nobody could try them."""
    lines = text.split("\n")
    if "tried" not in lines:
        return None
    return frozenset(_numbers(m[1] for line in lines if (m := _STUCK.match(line))))


def _numbers(found: Iterable[str]) -> Iterable[int]:
    return (int(n) for n in found if 0 < int(n) < 65536)
