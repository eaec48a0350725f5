"""Starting one generation of an instance: the scripts, the files they write, and their answers.

The leader writes its own `run` record and only then becomes the program, so a record exists before
the program does. It makes the record by a hard link, which one of two contenders gets: a start
that finds a generation without a record takes the record's name itself, and a late leader then ends
without having started anything. The supervisor runs the leader in the foreground, since a
background job would hand on SIGINT ignored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from backend.domain.instance import LaunchSpec
from backend.domain.references import plain
from backend.domain.secrets import is_secret
from backend.domain.shell import quote
from backend.steps.claiming import LISTENERS_AWK, hexadecimal
from backend.steps.common import LIB, file_name, instance_id
from backend.steps.status import DUMP

KEPT = 3
"""Generations whose directories are kept."""

_CHILD = r"""
pdtui_gen=$1 pdtui_dir=$2 pdtui_umask=$3 pdtui_sup=$4
shift 4
cd "$pdtui_gen" || exit 125
IFS= read -r pdtui_id <launch || exit 125
[ "$pdtui_id" = "$PDTUI_RUN_ID" ] || exit 125
pdtui_ticks() { IFS= read -r pdtui_t <"/proc/$1/stat"; set -- ${pdtui_t##*) }; pdtui_t=${20}; }
IFS= read -r pdtui_boot </proc/sys/kernel/random/boot_id
pdtui_ticks "$pdtui_sup"; pdtui_supstart=$pdtui_t
pdtui_ticks "$$"
printf 'pid=%s\nstart=%s\nboot=%s\nsid=%s\nsup=%s\nsupstart=%s\nid=%s\n' "$$" "$pdtui_t" \
  "$pdtui_boot" "$$" "$pdtui_sup" "$pdtui_supstart" "$pdtui_id" >"run.$pdtui_id" &&
  ln "run.$pdtui_id" run || exit 125
rm -f "run.$pdtui_id"
cd "$pdtui_dir" || exit 125
umask "$pdtui_umask"
. ./env
unset pdtui_gen pdtui_umask pdtui_sup pdtui_id pdtui_t pdtui_boot pdtui_supstart
command -v "$1" >/dev/null 2>&1 || {
  echo "pdtui: program not found on this host: $1 (PATH is $PATH)"
  exit 127
}
exec "$@"
"""

_SUPERVISOR = r"""
gen=$1 dir=$2 max=$3 every=$4 id=$5 mask=$6
shift 6
cd "$gen" || exit 1
trap : HUP INT TERM
rotate() {
  trap 'kill "$z" 2>/dev/null; exit 0' TERM
  while :; do
    sleep "$every" & z=$!
    wait "$z"
    if record run && lives "$R_PID" "$R_START"; then :; else exit 0; fi
    n=$(wc -c <log) && [ "$n" -gt "$max" ] || continue
    : >rotating
    if cp log log.new && n=$(wc -c <log.new) && mv -f log.new log.1; then
      b=0
      { IFS= read -r b <base; } 2>/dev/null
      echo $((b + n)) >base.new && mv -f base.new base && : >log
    fi
    rm -f rotating
  done
}
rotate & rotator=$!
PDTUI_RUN_ID=$id setsid sh ./lead "$gen" "$dir" "$mask" "$$" "$@" \
  </dev/null >>log 2>&1
code=$?
kill "$rotator" 2>/dev/null
wait "$rotator" 2>/dev/null
rm -f rotating
record run && [ "$R_ID" = "$id" ] || exit 0
printf '%s %s\n' "$code" "$(date +%s)" >exit.new && mv -f exit.new exit
members "$gen"
[ -n "$M" ] || exit 0
kill -TERM $M 2>/dev/null
n=0
while [ $n -lt 20 ]; do
  sleep 0.1
  n=$((n + 1))
  members "$gen"
  [ -n "$M" ] || exit 0
done
kill -KILL $M 2>/dev/null
"""

START = (
    LIB
    + DUMP
    + f"\nSUPERVISOR={quote(LIB + _SUPERVISOR)}\nCHILD={quote(_CHILD)}\n"
    + f"AWK={quote(LISTENERS_AWK)}\n"
    + r"""
mask=$(umask)
umask 077
work "$1"
ID=$2 OWNER=$3 N=$4 RUN=$5 MAX=$6 EVERY=$7 PORTS=$8 KEPT=$9
shift 9
D=$W/instances/$ID G=$W/instances/$ID/g$N
owner_of "$D/claim" || { echo UNCLAIMED; exit 0; }
[ "$O" = "$OWNER" ] || { echo "FOREIGN $O"; exit 0; }
locked "$D" || { echo UNCLAIMED; exit 0; }
if [ -e "$G" ] && [ ! -e "$G/run" ]; then
  # A start that was cut off: take its record's name, unless its leader just did.
  if ln "$G/launch" "$G/run" 2>/dev/null || [ ! -e "$G/launch" ]; then
    mv "$G" "$D/.dead.$RUN" && rm -rf "$D/.dead.$RUN"
  fi
fi
if [ -e "$G/run" ]; then echo FOUND; dump "$ID"; exit 0; fi
for g in "$D"/g[0-9]*; do
  if [ -d "$g" ] && [ "${g##*/g}" -gt "$N" ]; then echo "NEWER ${g##*/g}"; exit 0; fi
done
open_runs "$D"
for n in $GENS; do
  M=
  run_of "$D/g$n" && members "$D/g$n"
  if [ -n "$M" ]; then echo "ALIVE $n$M"; exit 0; fi
  : >"$D/g$n/gone"
done
listening=$(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk "$AWK")
taken=
while read -r l port inode; do
  case ",$PORTS," in *",$port,"*)
    set +f
    pid=$(find /proc/[0-9]*/fd -lname "socket:\[$inode\]" 2>/dev/null | head -n 1)
    pid=${pid#/proc/} pid=${pid%%/*} name=
    if [ -n "$pid" ]; then { IFS= read -r name <"/proc/$pid/comm"; } 2>/dev/null; fi
    echo "TAKEN $port ${pid:-0} $name"
    taken=1 ;;
  esac
done <<PDTUI_LISTENING
$listening
PDTUI_LISTENING
[ -z "$taken" ] || exit 0
for g in "$D"/g[0-9]*; do
  if [ -d "$g" ] && [ "${g##*/g}" -le $((N - KEPT)) ]; then rm -rf "$g"; fi
done
count=$1
shift
while [ "$count" -gt 0 ]; do
  rm -f "$D/$1"
  printf '%s' "$2" >"$D/$1" || exit 1
  shift 2
  count=$((count - 1))
done
printf '%s' "$1" >"$D/env" && printf '%s\n' "$2" >"$D/env.json" || exit 1
printf '%s\n' "$3" >"$D/spec.new" && mv -f "$D/spec.new" "$D/spec.json" || exit 1
shift 3
mkdir "$G" && printf '%s' "$SUPERVISOR" >"$G/supervise" && printf '%s' "$CHILD" >"$G/lead" &&
  printf '%s\n' "$RUN" >"$G/launch" || exit 1
setsid -f sh "$G/supervise" "$G" "$D" "$MAX" "$EVERY" "$RUN" "$mask" "$@" \
  </dev/null >/dev/null 2>&1 9>&- || exit 1
n=0
while [ ! -e "$G/run" ] && [ $n -lt 250 ]; do sleep 0.02; n=$((n + 1)); done
[ -e "$G/run" ] || { echo "pdtui: the supervisor wrote no run record" >&2; exit 1; }
echo STARTED
dump "$ID"
"""
)
"""Arguments: see `start_args`. Says UNCLAIMED, FOREIGN, BUSY, NEWER, ALIVE, TAKEN, or FOUND or
STARTED and a dump."""


def env_text(env: Mapping[str, str]) -> str:
    """The environment as a shell file, every value one quoted word."""
    return "".join(f"export {name}={quote(value)}\n" for name, value in env.items())


def spec_text(
    owner: str, instance: str, generation: int, spec: LaunchSpec, labels: Mapping[str, str]
) -> str:
    """spec.json: what adoption needs, in one line, without values that look secret."""
    launch = spec.model_dump(mode="json")
    launch["env"] = {
        k: v for k, v in launch["env"].items() if isinstance(v, dict) or not is_secret(k)
    }
    body: dict[str, Any] = {
        **labels,
        "owner": owner,
        "instance": instance,
        "generation": generation,
        "launch": launch,
    }
    return json.dumps(body, ensure_ascii=True)


def start_args(
    work_dir: str,
    owner: str,
    instance: str,
    generation: int,
    spec: LaunchSpec,
    labels: Mapping[str, str],
    *,
    run_id: str,
    log_limit: int,
    rotate_every_s: float,
    row: str = "",
    recorded: LaunchSpec | None = None,
    env: Mapping[str, str] | None = None,
) -> list[str]:
    """START's arguments. `log_limit` is in bytes; `row` is kept beside spec.json as one line;
    `recorded` is what adoption finds, where that is another launch than the one that is run; `env`
    is its environment with what it only refers to, which adoption is to find as references.

    Raises ValueError for names that may not be files, and for NUL characters.
    """
    whole = {
        **(spec.env if env is None else env),
        "PDTUI_RUN_ID": run_id,
        "PDTUI_INSTANCE": instance,
        "PDTUI_ROLE": labels.get("role", ""),
    }
    kept = recorded or spec
    files: list[str] = []
    for file in spec.files:
        files += [file_name(file.name), file.content]
    if row:
        files += ["row.json", row + "\n"]
    return [
        work_dir, instance_id(instance), owner, str(int(generation)), run_id, str(int(log_limit)),
        f"{rotate_every_s:g}", hexadecimal(spec.ports or (spec.port,)), str(KEPT),
        str(len(files) // 2), *files, env_text(whole), json.dumps(plain(kept.env)),
        spec_text(owner, instance, generation, kept, labels), *spec.argv,
    ]  # fmt: skip


def taken(lines: Sequence[str]) -> list[tuple[int, int, str]]:
    """Port, pid (0 when not visible) and program name of every TAKEN line."""
    found = []
    for line in lines:
        words = line.split(" ", 3)
        if words[0] == "TAKEN" and len(words) >= 3:
            found.append((int(words[1], 16), int(words[2]), words[3] if len(words) > 3 else ""))
    return found
