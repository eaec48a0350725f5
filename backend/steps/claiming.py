"""Claiming accelerators and ports in the host's own instance directories, all or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from backend.steps.common import LIB, instance_id

_AWK = r"""
# orders in the variable, claims and listening ports on stdin: every clash, or nothing
BEGIN {
  n = split(orders, o, ";")
  for (i = 1; i <= n; i++) {
    split(o[i], f, "|"); mine[f[1]] = 1
    m = split(f[2], a, ","); for (j = 1; j <= m; j++) acc[a[j]] = f[1]
    m = split(f[3], a, ","); h = split(f[4], x, ",")
    for (j = 1; j <= m; j++) { port[a[j]] = f[1]; hex[x[j]] = a[j] }
  }
}
$1 == "L" { listens[$2] = 1; next }
{
  split($0, c, "/claim:"); at = index(c[2], "="); key = substr(c[2], 1, at - 1)
  if (key == "owner") owner[c[1]] = substr(c[2], at + 1)
  if (key == "accelerators") accs[c[1]] = substr(c[2], at + 1)
  if (key == "ports") ports[c[1]] = substr(c[2], at + 1)
}
END {
  for (d in owner) {
    if ((d in mine) && owner[d] != me) print "X instance", d, d, owner[d]
    if (d in mine && owner[d] == me) {
      m = split(ports[d], a, ","); for (j = 1; j <= m; j++) held[a[j]] = 1
    }
    if (d in mine) continue
    m = split(accs[d], a, ",")
    for (j = 1; j <= m; j++) if (a[j] in acc) print "X accelerator", a[j], d, owner[d]
    m = split(ports[d], a, ",")
    for (j = 1; j <= m; j++) if (a[j] in port) print "X port", a[j], d, owner[d]
  }
  for (y in hex) if ((y in listens) && !(hex[y] in held)) print "X listener", hex[y], "-", "-"
}
"""

LISTENERS_AWK = '$4 == "0A" { n = split($2, a, ":"); print "L", a[n], $10 }'
"""Listening ports (hexadecimal) and socket inodes from /proc/net/tcp and tcp6."""

CLAIM = (
    LIB
    + r"""
umask 077
work "$1"; OWNER=$2 ORDERS=$3
mkdir -p "$W/instances" || exit 1
exec 8>"$W/lock"
flock -w 10 8 || { echo BUSY; exit 0; }
cd "$W/instances" || exit 1
clash=$(
  {
    grep -H '' */claim /dev/null 2>/dev/null
    cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk '"""
    + LISTENERS_AWK
    + r"""'
  } | awk -v me="$OWNER" -v orders="$ORDERS" '"""
    + _AWK
    + r"""'
) || exit 1
if [ -n "$clash" ]; then printf '%s\n' "$clash"; exit 0; fi
IFS=';'
set -f
for o in $ORDERS; do
  id=${o%%|*} o=${o#*|}
  a=${o%%|*} o=${o#*|}
  mkdir -p "$id" &&
    printf 'owner=%s\ninstance=%s\naccelerators=%s\nports=%s\n' "$OWNER" "$id" "$a" "${o%%|*}" \
      >"$id/claim.new" && mv -f "$id/claim.new" "$id/claim" || exit 1
done
echo OK
"""
)
"""Arguments: work directory, owner, orders as `encode` writes them. Says OK, BUSY, or X lines."""

ADOPT = (
    LIB
    + r"""
umask 077
work "$1"; ID=$2 FROM=$3 TO=$4
exec 8>"$W/lock"
flock -w 10 8 || { echo BUSY; exit 0; }
C=$W/instances/$ID/claim
owner_of "$C" || { echo ABSENT; exit 0; }
if [ "$O" = "$TO" ]; then echo OK; exit 0; fi
[ "$O" = "$FROM" ] || { echo "FOREIGN $O"; exit 0; }
{ echo "owner=$TO"; grep -v '^owner=' "$C"; } >"$C.new" && mv -f "$C.new" "$C" || exit 1
echo OK
"""
)
"""Arguments: work directory, instance, its present owner, its next one. Says OK, ABSENT, BUSY, or
FOREIGN and the owner it has instead."""


@dataclass(frozen=True)
class ClaimOrder:
    """What one instance wants of a host: accelerator indices and TCP ports."""

    instance: str
    accelerators: tuple[int, ...] = ()
    ports: tuple[int, ...] = ()


@dataclass(frozen=True)
class Clash:
    """One thing that is not free. `kind` is instance, accelerator, port or listener."""

    kind: str
    value: str
    instance: str
    owner: str

    def text(self) -> str:
        """The clash as a person reads it."""
        if self.kind == "listener":
            return f"port {self.value} is listened on by a program that is not ours"
        if self.kind == "instance":
            return f"instance {self.value} belongs to {self.owner}"
        return f"{self.kind} {self.value} is claimed by {self.instance} of {self.owner}"


def hexadecimal(ports: Sequence[int]) -> str:
    """Ports as /proc/net/tcp writes them, with commas between."""
    return ",".join(f"{p:04X}" for p in ports)


def encode(orders: Sequence[ClaimOrder]) -> str:
    """The orders as one argument. Raises ValueError for an id that may not name a directory."""
    return ";".join(
        "|".join(
            (
                instance_id(o.instance),
                ",".join(str(int(a)) for a in o.accelerators),
                ",".join(str(int(p)) for p in o.ports),
                hexadecimal(o.ports),
            )
        )
        for o in orders
    )


def own_clashes(orders: Sequence[ClaimOrder]) -> list[Clash]:
    """Where two of the orders want the same thing."""
    seen: dict[tuple[str, int], str] = {}
    found = []
    for order in orders:
        wants = [("accelerator", a) for a in order.accelerators] + [
            ("port", p) for p in order.ports
        ]
        for want in wants:
            other = seen.setdefault(want, order.instance)
            if other != order.instance:
                found.append(Clash(want[0], str(want[1]), other, "the same request"))
    return found


def parse(text: str) -> list[Clash] | None:
    """The clashes that CLAIM found; an empty list when all was claimed; None while it was busy.

    Raises ValueError when the text is none of these.
    """
    lines = text.split("\n")
    clashes = [Clash(*w[1:5]) for line in lines if (w := line.split())[:1] == ["X"] and len(w) == 5]
    if clashes:
        return sorted(clashes, key=lambda c: (c.kind, c.value, c.instance))
    if "OK" in lines:
        return []
    if "BUSY" in lines:
        return None
    raise ValueError(f"unreadable answer to a claim: {text[-200:]!r}")
