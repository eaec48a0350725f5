"""What lives of ours on a host: one script that reads every instance directory, and its parse."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from backend.domain.host import Claim
from backend.domain.instance import ProcessStatus
from backend.steps.common import LIB

_AWK = r"""
# The newest run of each instance, and its supervisor, by their own numbers. The whole of /proc is
# gone through only where a leader has ended and nobody has seen the last of its session yet.
function fields(line) {
  if (!match(line, /\) [A-Za-z] [-0-9 ]+$/)) return 0
  split(substr(line, RSTART + 2), f, " ")
  return f[1] != "Z" && f[1] != "X"
}
function lives(pid,   file, line, last) {
  if (pid + 0 <= 0) return 0
  file = "/proc/" pid "/stat"
  while ((getline line < file) > 0) last = line
  close(file)
  return fields(last)
}
function gone(run,   file, line, found) {
  file = run "/gone"
  found = (getline line < file) >= 0
  close(file)
  return found
}
match($0, /^[^ :]+\/run:/) {
  run = substr($0, 1, RLENGTH - 5); text = substr($0, RLENGTH + 1)
  at = index(text, "=")
  split(run, d, "/")
  if (substr(d[2], 2) + 0 > newest[d[1]] + 0) newest[d[1]] = substr(d[2], 2)
  said[run, substr(text, 1, at - 1)] = substr(text, at + 1)
}
END {
  for (i in newest) {
    run = i "/g" newest[i]
    if (said[run, "boot"] != boot) continue
    if (lives(said[run, "sup"])) print "S", said[run, "sup"], f[20]
    pid = said[run, "pid"]
    if (lives(pid) && f[20] == said[run, "start"]) print "P", pid, pid, f[20], 1, run
    else if (pid + 0 > 0 && !gone(run)) { ended[pid] = run; some = 1 }
  }
  all = "cat /proc/[0-9]*/stat 2>/dev/null"
  while (some && (all | getline line) > 0) {
    if (!fields(line)) continue
    k = (f[4] in ended) ? f[4] : ((f[3] in ended) ? f[3] : "")
    if (k == "") continue
    split(line, w, " ")
    if (k == w[1]) led[k] = 1
    n++; pids[n] = w[1]; key[n] = k; start[n] = f[20]
  }
  for (j = 1; j <= n; j++) print "P", pids[j], key[j], start[j], (key[j] in led), ended[key[j]]
}
"""

DUMP = (
    r"""
dump() { # WHICH: every fact about the instance directories that match
  echo "B $BOOT"
  cd "$W/instances" 2>/dev/null || return 0
  set +f
  for g in $1/g[0-9]*/; do if [ -d "$g" ]; then echo "G ${g%/}"; fi; done
  grep -H '' $1/claim $1/g[0-9]*/run $1/g[0-9]*/exit /dev/null 2>/dev/null | sed 's/^/F /'
  grep -H '' $1/g[0-9]*/run /dev/null 2>/dev/null |
    awk -v boot="$BOOT" '"""
    + _AWK
    + r"""' | while read -r t p k s led d; do
    case $t in S) echo "S $p $k"; continue ;; esac
    if [ "$led" = 1 ] || [ "/proc/$p/fd/1" -ef "$d/log" ] || [ "/proc/$p/fd/2" -ef "$d/log" ]
    then echo "P $p $k $s"; fi
  done
  return 0
}
"""
)

STATUSES = LIB + DUMP + '\nwork "$1"\ndump "${2:-*}"\n'
"""Arguments: work directory, instance (all of them when left out)."""


@dataclass
class Record:
    """The raw facts of one instance directory; keys of `runs` and `exits` are generations."""

    claim: dict[str, str] = field(default_factory=dict)
    generations: set[int] = field(default_factory=set)
    runs: dict[int, dict[str, str]] = field(default_factory=dict)
    exits: dict[int, int] = field(default_factory=dict)


@dataclass
class Picture:
    """Everything one `dump` said. `members` maps a session to its living pids and start ticks."""

    boot: str = ""
    instances: dict[str, Record] = field(default_factory=dict)
    supervisors: dict[int, int] = field(default_factory=dict)
    members: dict[int, dict[int, int]] = field(default_factory=dict)


def numbers(text: str) -> tuple[int, ...]:
    """`1,2,3` as numbers; what is no number is left out."""
    return tuple(int(n) for n in text.split(",") if n.isdecimal())


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def parse(text: str) -> Picture:
    """Read a `dump`. Lines it does not know are skipped; nothing is invented for missing ones."""
    picture = Picture()
    for line in text.splitlines():
        tag, _, rest = line.partition(" ")
        words = rest.split()
        if tag == "B":
            picture.boot = rest.strip()
        elif tag == "G":
            name, _, generation = rest.partition("/g")
            if generation.isdecimal():
                _record(picture, name).generations.add(int(generation))
        elif tag == "F":
            _fact(picture, rest)
        elif tag == "S" and len(words) == 2:
            picture.supervisors[_number(words[0])] = _number(words[1])
        elif tag == "P" and len(words) == 3:
            session = picture.members.setdefault(_number(words[1]), {})
            session[_number(words[0])] = _number(words[2])
    return picture


def _record(picture: Picture, name: str) -> Record:
    return picture.instances.setdefault(name, Record())


def _fact(picture: Picture, rest: str) -> None:
    """One line of a claim, run or exit file, as `grep -H` prints it."""
    path, colon, value = rest.partition(":")
    parts = path.split("/")
    if not colon:
        return
    if len(parts) == 2 and parts[1] == "claim":
        key, _, text = value.partition("=")
        _record(picture, parts[0]).claim[key] = text
    elif len(parts) == 3 and parts[1][1:].isdecimal():
        record, generation = _record(picture, parts[0]), int(parts[1][1:])
        if parts[2] == "run":
            key, _, text = value.partition("=")
            record.runs.setdefault(generation, {})[key] = text
        elif parts[2] == "exit" and value.split()[:1]:
            record.exits[generation] = _number(value.split()[0])


def claims(picture: Picture) -> list[Claim]:
    """Every claim on the host, whoever owns it."""
    return [
        Claim(
            owner=r.claim.get("owner", ""),
            instance=name,
            accelerators=numbers(r.claim.get("accelerators", "")),
            ports=numbers(r.claim.get("ports", "")),
        )
        for name, r in sorted(picture.instances.items())
        if r.claim
    ]


def status(picture: Picture, name: str) -> ProcessStatus:
    """What is known of one instance: its newest generation decides.

    While the supervisor of an ended leader still lives, its exit code is being written: that counts
    as running.
    """
    record = picture.instances.get(name, Record())
    owner = record.claim.get("owner", "")
    generation = max(record.generations, default=0)
    run = record.runs.get(generation)
    if not run or not run.get("id"):
        return ProcessStatus(instance=name, owner=owner, state="absent", generation=generation)
    pid, start = _number(run.get("pid", "")), _number(run.get("start", ""))
    alive = picture.members.get(pid, {}) if run.get("boot") == picture.boot else {}
    code = record.exits.get(generation)
    base = ProcessStatus(
        instance=name, owner=owner, state="lost", generation=generation, pid=pid, start_ticks=start
    )
    if alive.get(pid) == start:
        return base.model_copy(update={"state": "running"})
    survivors = 0 if pid in alive else sum(1 for began in alive.values() if began >= start)
    if code is not None:
        update = {"state": "exited", "exit_code": code, "survivors": survivors}
        return base.model_copy(update=update)
    supervisor = picture.supervisors.get(_number(run.get("sup", "")))
    if run.get("boot") == picture.boot and supervisor == _number(run.get("supstart", "")) != 0:
        return base.model_copy(update={"state": "running"})
    return base.model_copy(update={"survivors": survivors})


def statuses(picture: Picture, names: Iterable[str] | None = None) -> list[ProcessStatus]:
    """The status of every instance directory, or of those named."""
    return [status(picture, n) for n in (sorted(picture.instances) if names is None else names)]
