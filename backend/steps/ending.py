"""Ending an instance: one bounded step of a stop, and the removal of its directory."""

from __future__ import annotations

from dataclasses import dataclass

from backend.steps.common import LIB

_SCAN = r"""
scan() { # the living of every open generation into ALL, LED=1 while a leader is one of them
  ALL= LED= SUP=
  open_runs "$D"
  for n in $GENS; do
    run_of "$D/g$n" || { : >"$D/g$n/gone"; continue; }
    members "$D/g$n"
    if lives "$R_SUP" "$R_SUPSTART"; then SUP="$SUP $R_SUP"; fi
    ALL="$ALL$M" LED=$LED$LEADER
  done
}
"""

STOP = (
    LIB
    + _SCAN
    + r"""
work "$1"
ID=$2 OWNER=$3 SIGNAL=$4 TICKS=$5
D=$W/instances/$ID
if [ ! -d "$D" ]; then echo "LEFT"; exit 0; fi
owner_of "$D/claim" && [ "$O" != "$OWNER" ] && { echo "FOREIGN $O"; exit 0; }
locked "$D" || { echo "LEFT"; exit 0; }
strike() { # signal the leaders, or, where there is none, whoever is left
  open_runs "$D"
  for n in $GENS; do
    run_of "$D/g$n" || continue
    members "$D/g$n"
    case $SIGNAL in
    KILL)
      if [ -n "$M" ]; then kill -KILL $M 2>/dev/null
      elif lives "$R_SUP" "$R_SUPSTART"; then kill -KILL "$R_SUP" 2>/dev/null; fi ;;
    TERM)
      if [ -n "$LEADER" ]; then kill -TERM "$R_PID" 2>/dev/null
      elif [ -n "$M" ]; then kill -TERM $M 2>/dev/null; fi ;;
    esac
  done
}
strike
t=0
while :; do
  scan
  if [ -z "$ALL$SUP" ] || [ "$t" -ge "$TICKS" ]; then break; fi
  t=$((t + 1))
  sleep 0.1
done
if [ -z "$ALL$SUP" ]; then for n in $GENS; do : >"$D/g$n/gone"; done; fi
newest=-1
for g in "$D"/g[0-9]*; do
  if [ -d "$g" ] && [ "${g##*/g}" -gt "$newest" ]; then newest=${g##*/g}; fi
done
code=
{ read -r code when <"$D/g$newest/exit"; } 2>/dev/null
echo "LED $LED"
echo "SUP$SUP"
echo "EXIT $code"
echo "LEFT$ALL"
"""
)
"""Arguments: work directory, instance, owner, TERM, KILL or NONE, tenths of a second to wait."""

REMOVE = (
    LIB
    + _SCAN
    + r"""
work "$1"
ID=$2 OWNER=$3
D=$W/instances/$ID
if [ ! -d "$D" ]; then echo REMOVED; exit 0; fi
owner_of "$D/claim" && [ "$O" != "$OWNER" ] && { echo "FOREIGN $O"; exit 0; }
locked "$D" || { echo REMOVED; exit 0; }
scan
t=0
while [ -z "$ALL" ] && [ -n "$SUP" ] && [ $t -lt 50 ]; do # it is writing the exit code
  sleep 0.1
  t=$((t + 1))
  scan
done
if [ -n "$ALL" ]; then echo "ALIVE 0$ALL"; exit 0; fi
T=$W/instances/.gone.$ID.$$
mv "$D" "$T" && rm -rf "$T" || exit 1
echo REMOVED
"""
)
"""Arguments: work directory, instance, owner. The rename frees the claim in one step."""


@dataclass(frozen=True)
class Ending:
    """How far a stop is: whether a leader or a supervisor lives, and the living members' pids."""

    leader: bool = False
    supervisor: bool = False
    left: tuple[int, ...] = ()
    exit_code: int | None = None

    @property
    def gone(self) -> bool:
        """Nothing of the instance lives."""
        return not (self.leader or self.supervisor or self.left)


def parse(text: str) -> Ending:
    """Read STOP's answer. Raises ValueError when it holds none."""
    words = {line.split(" ")[0]: line.split()[1:] for line in text.splitlines() if line}
    if "LEFT" not in words:
        raise ValueError(f"unreadable answer to a stop: {text[-200:]!r}")
    code = words.get("EXIT", [])
    return Ending(
        leader=bool(words.get("LED")),
        supervisor=bool(words.get("SUP")),
        left=tuple(int(p) for p in words["LEFT"] if p.isdecimal()),
        exit_code=int(code[0]) if code and code[0].isdecimal() else None,
    )
