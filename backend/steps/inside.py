"""A container started for nothing but to see which accelerators it was given, and gone again.

It is started by the launcher of real instances, with the arguments that give them their cards. No
image is pulled: one that the group wants is used where it is there, else any, engines' first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from backend.domain.host import Runtime
from backend.steps.common import LIB
from backend.steps.containing import COMMON, LAUNCHER, Cards

RUN_S = 30
"""Seconds that such a container may take; the driver is slow where nothing keeps it loaded."""
WHOLE_S = 100.0
"""Seconds of the whole look: a client that hangs is asked a few short questions too."""
PART = "== pdtui "
_REFERENCE = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._:/@-]*$")

LOOK = rf"""
PATH=${{PATH:-}}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/nvidia/bin
echo '{PART}began'
for f in /dev/nvidia[0-9]* /dev/davinci[0-9]*; do if [ -e "$f" ]; then echo "device $f"; fi; done
for f in $*; do if [ -e "$f" ]; then echo "has $f"; fi; done
if command -v nvidia-smi >/dev/null 2>&1; then
  echo '{PART}smi'
  nvidia-smi -L 2>&1
  echo "{PART}status $?"
fi
"""
"""Runs in the container; arguments: files of the driver that are looked for, as one word."""

SCRIPT = (
    LIB
    + r"""
work "$1"
rt=$2 launcher=$3 look=$4 seconds=$5 devices=$6 mounts=$7
shift 7
bounded() {
  s=$1
  shift
  if command -v timeout >/dev/null 2>&1; then set -- timeout -k 1 "$s" "$@"; fi
  "$@" 9>&- # what the client leaves behind must not hold the lock
}
tell() { printf '== pdtui %s\n' "$1"; }
clean() {
  for c in $(bounded 8 "$rt" ps -aq --filter "label=pdtui.id=$PWD" 2>/dev/null); do
    bounded 10 "$rt" rm -f "$c" >/dev/null 2>&1
  done
}
attempt() { # IMAGE DEVICES MOUNTS ARGUMENT...: the launcher's own way, what it says into SAID
  i=$1 d=$2 m=$3
  shift 3
  SAID=$(bounded "$seconds" sh -c "$launcher" container.sh "$rt" "$i" "" "$d" "$m" --rm \
    "$@" --entrypoint sh "$i" -c "$look" look "$devices $mounts" 2>&1 </dev/null)
  CODE=$?
  clean
}
command -v "$rt" >/dev/null 2>&1 || exit 0
mkdir -p "$W/look" && cd "$W/look" || exit 0
{ exec 9>lock; } 2>/dev/null && flock -w 40 9 || exit 0
tries=
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  bounded 8 "$rt" image inspect "$1" >/dev/null 2>&1 && tries="$tries $1"
  shift
done
shift
[ -n "$tries" ] || tries=$(bounded 8 "$rt" images --format '{{.Repository}}:{{.Tag}}' 2>/dev/null |
  grep -v '<none>' | awk '/vllm|sglang|cann|cuda/ { print; next } { l = l $0 "\n" }
    END { printf "%s", l }' | head -n 3)
set -f
for image in $tries; do
  attempt "$image" "$devices" "$mounts" "$@"
  case $SAID in *"== pdtui began"*) ;;
  *'"sh": executable file'*|*'file `sh` not'*|*'xec format error'*)
    continue ;; # no shell in it, or for other machines
  esac
  tell image
  printf '%s\n' "$image"
  tell "ran $CODE"
  printf '%s\n' "$SAID"
  case $CODE:$SAID in
  0:*|124:*|137:*|*"== pdtui began"*) ;;
  *) # is it the cards, or does nothing start here?
    while [ "${1:-}" = --gpus ]; do shift 2; done
    attempt "$image" "" "" "$@"
    case $SAID in
    *"== pdtui began"*) tell "bare 0" ;;
    *)
      tell "bare $CODE"
      printf '%s\n' "$SAID" ;;
    esac ;;
  esac
  break
done
tell end
exit 0
"""
)
"""See `arguments`. Says nothing where there is no such client or no image that it could start."""


def arguments(
    work_dir: str, runtime: Runtime, given: Cards, images: Sequence[str], seconds: int = RUN_S
) -> list[str]:
    """SCRIPT's arguments: `given` is what the container gets, `images` those that are wanted."""
    wanted = [i for i in dict.fromkeys(images) if _REFERENCE.match(i)]
    return [
        work_dir, runtime, LAUNCHER, LOOK, str(seconds), given.devices, given.mounts,
        *wanted, "--", *given.arguments, *COMMON,
    ]  # fmt: skip
