"""Ending what is left of an instance whose directory is gone from its host."""

from __future__ import annotations

from backend.steps.common import LIB

END_STRAYS = (
    LIB
    + r"""
ID=$1 PID=$2 START=$3
R_BOOT=$BOOT
set +f
strays() { # the living into M: the known leader's session, and whoever carries the instance's name
  M=
  if lives "$PID" "$START"; then
    M=$(cat /proc/[0-9]*/stat 2>/dev/null | awk -v s="$PID" -v t="$START" "$pdtui_awk")
  fi
  for e in $(grep -lzx "PDTUI_INSTANCE=$ID" /proc/[0-9]*/environ 2>/dev/null); do
    e=${e#/proc/} e=${e%/environ}
    if fact "$e" && [ "$F_STATE" != Z ] && [ "$F_STATE" != X ]; then M="$M $e"; fi
  done
}
strays
[ -z "$M" ] || kill -KILL $M 2>/dev/null
n=0
while [ $n -lt 30 ]; do
  strays
  [ -n "$M" ] || break
  sleep 0.1
  n=$((n + 1))
done
echo LEFT $M
"""
)
"""Arguments: instance, pid and start ticks of its leader as last seen (0 0 where never seen).

The start time and the boot that the host has now say that the pid is still the leader's: a caller
passes only what it saw in this boot. Says LEFT and the pids that live on."""


def left(text: str) -> list[int]:
    """Pids of the LEFT line. Raises ValueError when there is none."""
    for line in text.splitlines():
        words = line.split()
        if words and words[0] == "LEFT":
            return [int(w) for w in words[1:]]
    raise ValueError("the answer has no LEFT line")
