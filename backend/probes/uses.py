"""Who computes on each accelerator: processes the vendors' tools name, with owner and instance."""

from __future__ import annotations

from collections.abc import Sequence

from backend.domain.host import Accelerator, Use
from backend.probes import npu
from backend.probes.gpus import mib

NPU_APPS_AWK = r"""
/Process id/ { on = 1; next }
on && $3 ~ /^ *[0-9]+ *$/ {
  split($2, key, " ")
  gsub(/^ +| +$/, "", $4)
  print key[1] " " (key[2] == "" ? 0 : key[2]) "," $3 "," $5 "," $4
}
"""
"""`npu-smi info`'s process table as KEY,PID,MEMORY,NAME lines; the key is NPU and chip number."""

_SHARING = ("nvidia-cuda-mps-server",)
"""Servers that hold a card on behalf of others: no use of their own."""


def by_uuid(text: str | None, found: Sequence[Accelerator]) -> tuple[Use, ...]:
    """NVIDIA's compute processes. A MIG slice's counts for no accelerator that is not listed."""
    return _read(text, {a.uuid: a.index for a in found})


def by_chip(text: str | None, table: str, found: Sequence[Accelerator]) -> tuple[Use, ...]:
    """The NPUs' processes; `table` is the `npu-smi info` that numbered the chips."""
    index = {a.uuid: a.index for a in found}
    keys = {
        f"{c.npu} {c.chip}": index[f"NPU-{c.bus}-{c.chip}"]
        for c in npu.chips(table)
        if f"NPU-{c.bus}-{c.chip}" in index
    }
    return _read(text, keys)


def _read(text: str | None, index: dict[str, int]) -> tuple[Use, ...]:
    uses = []
    for line in (text or "").splitlines():
        fields = line.split("|", 5)
        if len(fields) != 6 or fields[0].strip() not in index:
            continue
        key, pid, memory, user, instance, name = (f.strip() for f in fields)
        if not (pid.isascii() and pid.isdecimal()) or name.rsplit("/", 1)[-1] in _SHARING:
            continue
        use = Use(index=index[key], pid=int(pid[:12]), name=name.rsplit("/", 1)[-1][:80],
                  memory_mib=mib(memory), user=user, instance=instance)  # fmt: skip
        uses.append(use)
    return tuple(sorted(uses, key=lambda u: (u.index, u.pid)))
