"""NVIDIA in depth: what the query says, what else is asked, the table where there is no query.

`nvidia-smi` in its forms, and none of them is trusted: a row is a device only with a number and a
UUID that looks like one; everything else it prints is kept as a note.
"""

from __future__ import annotations

import csv
import io
import re

from backend.domain.host import Accelerator

QUERY = "--query-gpu=index,uuid,name,memory.total --format=csv,noheader,nounits"
MORE = "--query-gpu=index,driver_version,memory.used,mig.mode.current --format=csv,noheader,nounits"
APPS = "--query-compute-apps=gpu_uuid,pid,used_memory,process_name --format=csv,noheader,nounits"

SCRIPT = rf"""
whose() {{ # lines KEY,PID,MEMORY,NAME in; KEY|PID|MEMORY|USER|INSTANCE|NAME out
  while IFS=, read -r key pid memory name; do
    pid=${{pid#"${{pid%%[! ]*}}"}} pid=${{pid%% *}} user= instance=
    case $pid in ''|*[!0-9]*) continue ;; esac
    if [ -d "/proc/$pid" ]; then
      user=$(stat -c %U "/proc/$pid" 2>/dev/null)
      instance=$({{ tr '\0' '\n' <"/proc/$pid/environ"; }} 2>/dev/null |
        sed -n 's/^PDTUI_INSTANCE=//p')
    fi
    printf '%s|%s|%s|%s|%s|%s\n' "$key" "$pid" "$memory" "$user" "$instance" "$name"
  done
}}
part nvidia
if command -v nvidia-smi >/dev/null 2>&1; then
  said=$(bounded 12 nvidia-smi {QUERY} 2>&1)
  code=$?
  printf '%s\n== status %s\n' "$said" "$code"
  case "
$said" in *"
"[0-9]*", "*) known=1 ;; *) known= ;; esac
  if [ -n "$known" ]; then
    part nvidia-more
    bounded 5 nvidia-smi {MORE} 2>/dev/null
    part nvidia-uses
    bounded 5 nvidia-smi {APPS} 2>/dev/null | whose
  elif [ "$code" != 124 ] && [ "$code" != 137 ]; then # else it hangs, in its other forms too
    part nvidia-list
    bounded 5 nvidia-smi -L 2>/dev/null
    part nvidia-table
    bounded 5 nvidia-smi 2>/dev/null
  fi
fi
"""
"""Sections of the look; `bounded` and `part` are the look's own."""

_COUNTED = re.compile(r"^\d+$")
_UUID = re.compile(r"^(GPU|MIG)-[0-9A-Za-z./-]+$")
_LISTED = re.compile(r"^GPU (\d+): (.+) \(UUID: (GPU-[0-9A-Za-z-]+)\)\s*$")
_ROW = re.compile(
    r"^\|\s+(\d+)\s+(\S.*?)\s+(?:On|Off|N/A)\s+\|\s+[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}"
    r"\.[0-9A-Fa-f]\s+(?:On|Off|N/A)\s+\|"
)
_MEMORY = re.compile(r"\|\s*(\d+)MiB\s*/\s*(\d+)MiB\s*\|")
_MIG = re.compile(r"\|\s*(Enabled|Disabled|N/A)\*?\s*\|\s*$")
_DRIVER = re.compile(r"Driver Version:\s*([0-9][0-9.]*)")


def queried(text: str | None) -> tuple[tuple[Accelerator, ...], str]:
    """Accelerators from nvidia-smi's query, and what it said instead of some of them.

    None or an empty text: there is no nvidia-smi. `[N/A]` memory counts as unknown (0).
    """
    if not text or not text.strip():
        return (), ""
    body, mark, code = text.rpartition("== status ")
    if not mark:
        body, code = text, "unknown, it did not end"
    found: dict[int, Accelerator] = {}
    other: list[str] = []
    for line in body.splitlines():
        fields = _fields(line)
        device = _device(fields)
        if device is not None and device.index not in found:
            found[device.index] = device
        elif line.strip():
            other.append(line.strip())
    code = code.strip()
    if code != "0" and not other:
        other.append(f"nvidia-smi ended with status {code}")
    return tuple(found[i] for i in sorted(found)), "; ".join(other)[:500]


def _fields(line: str) -> list[str]:
    try:
        return next(csv.reader(io.StringIO(line), skipinitialspace=True), [])
    except csv.Error:
        return []


def _device(fields: list[str]) -> Accelerator | None:
    """One row of the query. A name may hold commas: index and uuid stand before it, memory after.

    A lost card still has a row: its uuid or name is `[GPU is lost]`, `ERR!` or `[Unknown Error]`.
    """
    if len(fields) < 4 or not _counted(fields[0]) or not _UUID.match(fields[1].strip()):
        return None
    name = ", ".join(f.strip() for f in fields[2:-1])
    if not name or "ERR!" in name or name.startswith("["):
        return None
    return Accelerator(
        index=int(fields[0]),
        uuid=fields[1].strip(),
        vendor="nvidia",
        type=name,
        memory_mib=mib(fields[-1]),
    )


def _counted(text: str) -> bool:
    return bool(_COUNTED.match(text.strip())) and len(text.strip()) < 5 and text.isascii()


def mib(text: str) -> int:
    """A memory size in MiB; 0 for `[N/A]` and whatever else is no number."""
    number = text.strip().split(" ")[0]
    return int(number) if _COUNTED.match(number) and number.isascii() and len(number) < 12 else 0


def with_more(found: tuple[Accelerator, ...], text: str | None) -> tuple[Accelerator, ...]:
    """The accelerators with driver, used memory and MIG mode, as far as the tool knew them."""
    more = {}
    for line in (text or "").splitlines():
        fields = _fields(line)
        if len(fields) >= 4 and _counted(fields[0]):
            more[int(fields[0])] = {
                "driver": fields[1].strip(),
                "used_mib": mib(fields[2]),
                "mig": fields[3].strip() == "Enabled",
            }
    return tuple(a.model_copy(update=more.get(a.index, {})) for a in found)


def tabled(table: str | None, listing: str | None) -> tuple[Accelerator, ...]:
    """Accelerators from the plain table, where the query is not understood.

    The table has no UUIDs: a card is one that `nvidia-smi -L` lists under the same number.
    """
    known = {
        int(m[1]): m for line in (listing or "").splitlines() if (m := _LISTED.match(line.strip()))
    }
    driver = _DRIVER.search(table or "")
    found: dict[int, Accelerator] = {}
    at: int | None = None
    for line in (table or "").splitlines():
        row = _ROW.match(line)
        if row is not None and int(row[1]) not in found:
            listed = known.get(int(row[1]))
            at = int(row[1]) if listed else None
            if listed:
                found[int(row[1])] = Accelerator(
                    index=int(row[1]), uuid=listed[3], vendor="nvidia", type=listed[2],
                    driver=driver[1] if driver else "",
                )  # fmt: skip
            continue
        if at is None:
            continue
        if "MIG devices" in line or "Processes" in line:
            break
        if (memory := _MEMORY.search(line)) and not found[at].memory_mib:
            size = {"used_mib": mib(memory[1]), "memory_mib": mib(memory[2])}
            found[at] = found[at].model_copy(update=size)
        elif mig := _MIG.search(line):
            found[at] = found[at].model_copy(update={"mig": mig[1] == "Enabled"})
    return tuple(found[i] for i in sorted(found))
