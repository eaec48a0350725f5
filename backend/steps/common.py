"""The instance directory on a host, and the shell functions that every step on it shares.

    WORK/lock                        one writer of claims at a time
    WORK/instances/ID/claim          owner, instance, accelerators, ports: whole or absent
    WORK/instances/ID/lock           one start or stop at a time
    WORK/instances/ID/spec.json      labels and launch spec, secret values left out
    WORK/instances/ID/env, env.json  the environment; owner only
    WORK/instances/ID/gN/            one generation: launch, run, exit, log, log.1, base, gone

A run is known by pid, start ticks and boot id; its members are its leader's session and process
group, and whoever carries its run id in the environment. Once the leader is gone a session number
alone proves nothing (the pid may have been used again), so members must then also write to the
run's log or carry its id. Engines rewrite their command lines and titles: those are never used.
"""

from __future__ import annotations

import re

INSTANCE = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")
OWNER = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")
FILE = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")
RESERVED = re.compile(r"^(claim|lock|env|env\.json|spec\.json|g[0-9]+)$")


def instance_id(value: str) -> str:
    """`value`, when it may name a directory. Raises ValueError otherwise."""
    if not INSTANCE.match(value):
        raise ValueError(f"{value!r} is no instance id: letters, digits, dots, dashes, underscores")
    return value


def owner_id(value: str) -> str:
    """`value`, when it may stand in a claim file. Raises ValueError otherwise."""
    if not OWNER.match(value):
        raise ValueError(f"{value!r} is no owner id: letters, digits, dots, dashes, underscores")
    return value


def file_name(value: str) -> str:
    """`value`, when a launch file may have that name. Raises ValueError otherwise."""
    if not FILE.match(value) or RESERVED.match(value):
        raise ValueError(f"{value!r} cannot name a launch file")
    return value


SESSIONS_AWK = r"""
# stat lines in, living members of session or group `s` out that began no earlier than `t`
match($0, /\) [A-Za-z] [-0-9 ]+$/) {
  split(substr($0, RSTART + 2), f, " ")
  if (f[1] != "Z" && f[1] != "X" && (f[3] == s || f[4] == s) && f[20] + 0 >= t + 0) print $1
}
"""

LIB = (
    r"""
set -u
pdtui_awk='"""
    + SESSIONS_AWK
    + r"""'
work() { # DIR: the work directory into W, counted from the home
  case $1 in /*) W=$1 ;; "~/"*) W=$HOME/${1#"~/"} ;; *) W=$HOME/$1 ;; esac
}
fact() { # PID: its state, group, session and start ticks into F_*
  F=
  { IFS= read -r F <"/proc/$1/stat"; } 2>/dev/null
  [ -n "$F" ] || return 1
  set -- ${F##*) }
  F_STATE=$1 F_START=${20}
}
record() { # FILE: a run record into R_*
  R_PID=0 R_START=0 R_BOOT= R_SUP=0 R_SUPSTART=0 R_ID=
  [ -f "$1" ] || return 1
  while IFS='=' read -r k v; do
    case $k in
    pid) R_PID=$v ;; start) R_START=$v ;; boot) R_BOOT=$v ;;
    sup) R_SUP=$v ;; supstart) R_SUPSTART=$v ;; id) R_ID=$v ;;
    esac
  done <"$1"
  [ -n "$R_ID" ]
}
lives() { # PID START: that very process, of this boot, and no zombie
  [ "$1" -gt 0 ] && [ "$R_BOOT" = "$BOOT" ] && fact "$1" && [ "$F_START" = "$2" ] &&
    [ "$F_STATE" != Z ] && [ "$F_STATE" != X ]
}
members() { # GENERATION DIR: the living of the run R_* into M, LEADER=1 if its leader is one
  M= LEADER= found=
  set +f
  marked=$(grep -lzx "PDTUI_RUN_ID=$R_ID" /proc/[0-9]*/environ 2>/dev/null)
  if [ "$R_PID" -gt 0 ] && [ "$R_BOOT" = "$BOOT" ]; then
    lives "$R_PID" "$R_START" && LEADER=1
    found=$(cat /proc/[0-9]*/stat 2>/dev/null | awk -v s="$R_PID" -v t="$R_START" "$pdtui_awk")
  fi
  for p in $found; do
    if [ -n "$LEADER" ] || [ "/proc/$p/fd/1" -ef "$1/log" ] || [ "/proc/$p/fd/2" -ef "$1/log" ]
    then M="$M $p"; fi
  done
  for e in $marked; do
    e=${e#/proc/} e=${e%/environ}
    case " $M " in *" $e "*) ;; *) M="$M $e" ;; esac
  done
}
open_runs() { # DIR: its generations that may still have a living process, into GENS
  GENS=
  set +f
  for g in "$1"/g[0-9]*; do
    if [ -d "$g" ] && [ ! -e "$g/gone" ]; then GENS="$GENS ${g##*/g}"; fi
  done
}
run_of() { # GENERATION DIR: its record, or the id of a launch that never came to one
  record "$1/run" && return 0
  { IFS= read -r R_ID <"$1/launch"; } 2>/dev/null
  [ -n "$R_ID" ]
}
locked() { # DIR: hold its lock as fd 9
  { exec 9>"$1/lock"; } 2>/dev/null || return 1
  flock -w 10 9 || { echo BUSY; exit 0; }
}
owner_of() { # CLAIM FILE: the owner into O
  O=
  [ -f "$1" ] || return 1
  while IFS='=' read -r k v; do if [ "$k" = owner ]; then O=$v; fi; done <"$1"
}
IFS= read -r BOOT </proc/sys/kernel/random/boot_id
"""
)
"""Functions of every script; they leave globbing on, and use short names of their own."""
