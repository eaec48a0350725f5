"""The deeper look: limits, disk, runtimes, programs, RDMA, listeners, leftovers, model folders.

One script of independent sections as the plain look's; nothing here needs root, and what a host
does not tell is absent from the facts, never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from backend.domain.checkup import Box, Checkup, Marked, ModelCopy, Rdma
from backend.probes import ports, trouble
from backend.probes.host import SECTION, sections
from backend.steps.common import LIB

SCRIPT = (
    LIB
    + rf"""
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
export PATH
LC_ALL=C
export LC_ALL
work "$1"
bounded() {{
  s=$1
  shift
  if command -v timeout >/dev/null 2>&1; then timeout -k 1 "$s" "$@"; else "$@"; fi
}}
part() {{ printf '\n{SECTION}%s\n' "$1"; }}
part time
date +%s.%N 2>/dev/null
part kernel
uname -srm
part disk
mkdir -p "$W" 2>/dev/null
df -Pk "$W" 2>/dev/null
probe=$W/.write.$$
if {{ head -c 65536 /dev/zero >"$probe"; }} 2>/dev/null; then echo writable; else echo readonly; fi
rm -f "$probe"
part shm
df -Pk /dev/shm 2>/dev/null
part memory
grep -E '^(MemTotal|MemAvailable):' /proc/meminfo
part limits
cat /proc/self/limits
part runtimes
for r in $2; do
  command -v "$r" >/dev/null 2>&1 || continue
  case $r in docker) form='{{{{.Server.Version}}}}' ;; *) form='{{{{.Client.Version}}}}' ;; esac
  if said=$(bounded 8 "$r" version --format "$form" 2>&1); then echo "$r $said"
  else printf '%s !%s\n' "$r" "$(printf '%s' "$said" | tail -n 1)"; fi
done
part containers
ids=$(readlink -f "$W" 2>/dev/null)
for r in $2; do
  command -v "$r" >/dev/null 2>&1 || continue
  for c in $(bounded 8 "$r" ps -aq --filter label=pdtui.id 2>/dev/null); do
    bounded 8 "$r" inspect -f \
      '{{{{.Name}}}}|{{{{.State.Status}}}}|{{{{index .Config.Labels "pdtui.id"}}}}' "$c" 2>/dev/null
  done
done | while IFS='|' read -r name state id; do
  case $id in "$W"/instances/*|"$ids"/instances/*) echo "${{name#/}}|$state|${{id##*/}}" ;; esac
done
part relays
for r in bash python3 socat nc; do command -v "$r" >/dev/null 2>&1 && echo "$r"; done
part gpu-runtimes
command -v nvidia-ctk nvidia-container-runtime ascend-docker-runtime 2>/dev/null
for f in /etc/cdi/*.json /etc/cdi/*.yaml /var/run/cdi/*; do if [ -e "$f" ]; then echo "$f"; fi; done
part rdma
for p in /sys/class/infiniband/*/ports/*; do
  [ -d "$p" ] || continue
  d=${{p%/ports/*}} state= net=
  {{ IFS= read -r state <"$p/state"; }} 2>/dev/null
  for n in "$d"/device/net/*; do if [ -e "$n" ]; then net=${{n##*/}}; fi; done
  echo "${{d##*/}}|${{p##*/}}|$state|$net"
done
part hccn
cat /etc/hccn.conf 2>/dev/null
part fabric
if ls /dev/nvidia-nvswitch* >/dev/null 2>&1; then
  echo nvswitch
  bounded 8 nvidia-smi --query-gpu=index,fabric.state,fabric.status --format=csv,noheader \
    2>/dev/null
fi
"""
    + trouble.SCRIPT
    + r"""
part marked
ours=$(readlink -f "$W")
for e in $(grep -lz '^PDTUI_RUN_ID=' /proc/[0-9]*/environ 2>/dev/null); do
  p=${e#/proc/} p=${p%/environ}
  case $(readlink "/proc/$p/cwd") in "$ours"/instances/*) ;; *) continue ;; esac # another's
  i=$({ tr '\0' '\n' <"$e"; } 2>/dev/null | sed -n 's/^PDTUI_INSTANCE=//p')
  { IFS= read -r comm <"/proc/$p/comm"; } 2>/dev/null || continue
  if [ -n "$i" ]; then echo "$p|$i|$comm"; fi
done
shift 2
part programs
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  case $1 in
  "~/"*) f=$HOME/${1#"~/"}; [ -x "$f" ] && [ ! -d "$f" ] || f= ;;
  */*) f=$1; [ -x "$f" ] && [ ! -d "$f" ] || f= ;;
  *) f=$(command -v -- "$1" 2>/dev/null) ;;
  esac
  printf '%s\t%s\n' "$1" "$f"
  shift
done
[ $# -gt 0 ] && shift
part models
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  m=$1
  shift
  case $m in "~/"*) d=$HOME/${m#"~/"} ;; *) d=$m ;; esac
  if [ ! -d "$d" ]; then printf '%s\t-\n' "$m"; continue; fi
  sum=$({ sha256sum <"$d/config.json"; } 2>/dev/null)
  ls -lLn "$d" 2>/dev/null | awk -v m="$m" -v s="${sum%% *}" '
    $NF ~ /\.(safetensors|bin|pt|gguf)$/ { n++; b += $5 }
    END { printf "%s\t+\t%s\t%d\t%.0f\n", m, s, n, b }'
done
[ $# -gt 0 ] && shift
"""
    + ports.PART
    + """
part end
exit 0
"""
)
"""Arguments: the work directory, container runtimes (words of one), programs looked for, `--`,
folders of models, `--`, ports."""

LIMITS = {
    "Max locked memory": "memlock",
    "Max open files": "nofile",
    "Max processes": "nproc",
    "Max core file size": "core",
}
_LIMIT = re.compile(r"^(Max [a-z ]+?)\s{2,}(\S+)\s+(\S+)")
_HCCN = re.compile(r"^\s*address_(\d+)\s*=\s*(\S+)\s*$")


def arguments(
    work_dir: str,
    runtimes: Sequence[str],
    programs: Sequence[str],
    models: Sequence[str],
    tried: Sequence[int] = (),
) -> list[str]:
    """SCRIPT's arguments."""
    return [work_dir, " ".join(runtimes), *programs, "--", *models, "--", *map(str, tried)]


def parse(stdout: str, sent_at: float, answered_at: float) -> Checkup:
    """The facts that the output holds; the times are our clock's around the look, in seconds."""
    part = sections(stdout)
    disk = _df(part.get("disk", ""))
    shm = _df(part.get("shm", ""))
    memory = dict(re.findall(r"^(\w+):\s+(\d+) kB", part.get("memory", ""), re.M))
    words = part.get("disk", "").split()
    fabric = part.get("fabric", "").splitlines()
    return Checkup(
        kernel=part.get("kernel", "").strip(),
        skew_s=_skew(part.get("time", ""), sent_at, answered_at),
        disk_free=disk[1] if disk else None,
        disk_total=disk[0] if disk else 0,
        writable=None if not words else words[-1] == "writable",
        shm_total=shm[0] if shm else None,
        memory_total=int(memory["MemTotal"]) >> 10 if "MemTotal" in memory else None,
        memory_free=int(memory.get("MemAvailable", 0)) >> 10,
        limits=limits(part.get("limits", "")),
        programs=dict(_pairs(part.get("programs", ""))),
        runtimes=dict(_split(part.get("runtimes", ""))),
        relays=tuple(part.get("relays", "").split()),
        containers=containers(part.get("containers", "")),
        gpu_runtimes=tuple(part.get("gpu-runtimes", "").split()),
        rdma=rdma(part.get("rdma", "")),
        hccn=hccn(part.get("hccn", "")),
        npu_ports=trouble.npu_ports(part.get("npu-net", "")),
        xids=trouble.xids(part.get("xid", "")),
        fabric=tuple(x for x in fabric if x != "nvswitch"),
        nvswitch="nvswitch" in fabric,
        listeners=ports.listeners(part.get("listeners", "")),
        unbindable=ports.unbindable(part.get("bind", "")),
        marked=marked(part.get("marked", "")),
        models=models(part.get("models", "")),
    )


def _skew(text: str, sent_at: float, answered_at: float) -> float | None:
    """How far the host's clock is from ours, as far as the round trip lets us tell."""
    try:
        there = float(text.strip().removesuffix(".%N").removesuffix(".N"))
    except ValueError:
        return None
    if sent_at <= there <= answered_at:
        return 0.0
    return there - (answered_at if there > answered_at else sent_at)


def _df(text: str) -> tuple[int, int] | None:
    """Total and free MiB from `df -Pk`."""
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 6 and words[1].isdecimal() and words[3].isdecimal():
            return int(words[1]) >> 10, int(words[3]) >> 10
    return None


def limits(text: str) -> dict[str, int | None]:
    """Soft limits of /proc/self/limits by their short names; memlock in KiB, None is unlimited."""
    found: dict[str, int | None] = {}
    for line in text.splitlines():
        match = _LIMIT.match(line)
        name = LIMITS.get(match[1]) if match else None
        if match is None or name is None:
            continue
        if match[2] == "unlimited":
            found[name] = None
        elif match[2].isdecimal():
            found[name] = int(match[2]) >> 10 if name == "memlock" else int(match[2])
    return found


def _pairs(text: str) -> list[tuple[str, str]]:
    return [
        (a, b.strip())
        for line in text.splitlines()
        if "\t" in line
        for a, b in [line.split("\t", 1)]
    ]


def _split(text: str) -> list[tuple[str, str]]:
    return [(w[0], w[1]) for line in text.splitlines() if len(w := line.split(" ", 1)) == 2]


def rdma(text: str) -> tuple[Rdma, ...]:
    """Ports of RDMA devices; the kernel writes a state as `4: ACTIVE`."""
    found = []
    for line in text.splitlines():
        fields = line.split("|")
        if len(fields) == 4 and fields[1].isdecimal():
            state = fields[2].partition(":")[2].strip() or fields[2].strip()
            found.append(
                Rdma(device=fields[0], port=int(fields[1]), state=state, interface=fields[3])
            )
    return tuple(found)


def hccn(text: str) -> dict[str, str]:
    """Addresses of /etc/hccn.conf by device number, as written."""
    return {m[1]: m[2] for line in text.splitlines() if (m := _HCCN.match(line))}


def marked(text: str) -> tuple[Marked, ...]:
    """Living processes of instances."""
    found = []
    for line in text.splitlines():
        fields = line.split("|", 2)
        if len(fields) == 3 and fields[0].isdecimal():
            found.append(Marked(pid=int(fields[0]), instance=fields[1], name=fields[2]))
    return tuple(found)


def containers(text: str) -> tuple[Box, ...]:
    """Containers that carry an instance of this work directory, running or not; each once, where
    docker's client is podman's under another name."""
    found = {}
    for line in text.splitlines():
        fields = line.split("|")
        if len(fields) == 3 and all(fields):
            found[fields[0]] = Box(name=fields[0], state=fields[1], instance=fields[2])
    return tuple(found.values())


def models(text: str) -> tuple[ModelCopy, ...]:
    """Model folders, there or not."""
    found = []
    for line in text.splitlines():
        fields = line.split("\t")
        if fields[1:] == ["-"]:
            found.append(ModelCopy(path=fields[0]))
        elif (
            len(fields) == 5
            and fields[1] == "+"
            and fields[3].isdecimal()
            and fields[4].isdecimal()
        ):
            found.append(
                ModelCopy(
                    path=fields[0], there=True, digest=fields[2],
                    weights=int(fields[3]), size=int(fields[4]),
                )
            )  # fmt: skip
    return tuple(found)


ROUTES = r"""
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
for t in "$@"; do
  printf '%s\t%s\n' "$t" "$(ip -o route get "$t" 2>/dev/null | head -n 1)"
done
"""
"""Arguments: addresses. Says which way each would go."""


def routes(text: str) -> dict[str, str]:
    """The interface towards each address that has a way."""
    found = {}
    for line in text.splitlines():
        target, _, way = line.partition("\t")
        words = way.split()
        if "dev" in words[:-1]:
            found[target] = words[words.index("dev") + 1]
    return found
