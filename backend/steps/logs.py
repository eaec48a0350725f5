"""Reading an instance's log by a byte offset that rotation does not disturb.

The offset counts every byte the generation ever wrote; `base` on the host is how many of them have
been rotated out of `log`. `log.1` holds the last of those.
"""

from __future__ import annotations

from dataclasses import dataclass

from backend.steps.common import LIB

LOG = (
    LIB
    + r"""
work "$1"
D=$W/instances/$2 N=$3 FROM=$4 TAIL=$5 LIMIT=$6
[ -d "$D" ] || { echo ABSENT; exit 0; }
if [ -z "$N" ]; then
  N=0
  for g in "$D"/g[0-9]*; do if [ -d "$g" ] && [ "${g##*/g}" -gt "$N" ]; then N=${g##*/g}; fi; done
fi
cd "$D/g$N" 2>/dev/null && [ -f log ] || { echo ABSENT; exit 0; }
base=0 old=0 cut=0 tries=0
while [ -e rotating ] && [ $tries -lt 50 ]; do sleep 0.02; tries=$((tries + 1)); done
{ read -r base <base; } 2>/dev/null
size=$(wc -c <log)
if [ "$base" -gt 0 ] && [ -f log.1 ]; then old=$(wc -c <log.1); fi
end=$((base + size)) floor=$((base - old))
if [ -z "$FROM" ]; then
  FROM=$((end - TAIL))
  if [ "$FROM" -lt "$floor" ]; then FROM=$floor; fi
  if [ "$FROM" -gt 0 ]; then cut=1; fi
elif [ "$FROM" -lt "$floor" ] || [ "$FROM" -gt "$end" ]; then
  FROM=$floor cut=1
fi
echo "LOG $N $FROM $cut"
if [ "$FROM" -lt "$base" ]; then
  n=$((base - FROM))
  if [ "$n" -gt "$LIMIT" ]; then n=$LIMIT; fi
  tail -c "+$((FROM - floor + 1))" log.1 | head -c "$n"
  FROM=$base LIMIT=$((LIMIT - n))
fi
if [ "$LIMIT" -gt 0 ] && [ "$FROM" -lt "$end" ]; then
  tail -c "+$((FROM - base + 1))" log | head -c "$LIMIT"
fi
now=0
{ read -r now <base; } 2>/dev/null
if [ "$now" = "$base" ] && [ ! -e rotating ]; then echo .; else echo !; fi
"""
)
"""Arguments: work directory, instance, generation (empty: newest), offset (empty: the end), bytes
back from the end, most bytes. The last line is a dot, or `!` when a rotation came between."""

SPECS = (
    LIB
    + r"""
work "$1"
cd "$W/instances" 2>/dev/null || exit 0
grep -H '' */spec.json */env.json */row.json /dev/null 2>/dev/null
exit 0
"""
)
"""Argument: work directory. Every spec.json, env.json and row.json, one line each."""


@dataclass(frozen=True)
class Piece:
    """A piece of a log: `start` is the offset of its first byte, `after` the one to go on from."""

    generation: int
    start: int
    after: int
    text: str
    truncated: bool


class Disturbed(Exception):
    """The log was rotated while it was read; `piece` may hold some of it twice."""

    def __init__(self, piece: Piece) -> None:
        super().__init__()
        self.piece = piece


def parse(data: bytes) -> Piece | None:
    """Read LOG's answer; None when there is no such log.

    A character cut off at the end is left for the next piece. Raises ValueError when unreadable,
    Disturbed when it has to be asked again.
    """
    head, _, body = data.partition(b"\n")
    body, quiet = body[:-2], body[-2:]
    words = head.split()
    if words[:1] == [b"ABSENT"]:
        return None
    if len(words) != 4 or words[0] != b"LOG":
        raise ValueError(f"unreadable answer to a log request: {head[:200]!r}")
    generation, start = int(words[1]), int(words[2])
    kept = body[: len(body) - _unfinished(body)]
    piece = Piece(
        generation=generation,
        start=start,
        after=start + len(kept),
        text=kept.decode("utf-8", "replace"),
        truncated=words[3] == b"1",
    )
    if quiet != b".\n":
        raise Disturbed(piece)
    return piece


def _unfinished(data: bytes) -> int:
    """How many bytes at the end begin a UTF-8 character without ending it."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        need = 2 if byte & 0xE0 == 0xC0 else 3 if byte & 0xF0 == 0xE0 else 4
        return back if byte >= 0xC0 and need > back else 0
    return 0
