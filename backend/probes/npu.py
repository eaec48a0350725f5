"""Reading `npu-smi info` and `npu-smi info -m`: chips, their types, their memory.

The table gives each chip two lines: NPU number, name and health, then chip number, bus id and
usage. Releases differ in columns (Phy-ID on A3, no HBM on 310P, an own NPU column on 950), so a
chip is what has a name on its first line and a bus id on its second; nothing else is a device.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from backend.domain.host import Accelerator

_FIRST = re.compile(r"^(\d+)\s+(\S*[A-Za-z]\S*)$")
_BUS = re.compile(r"^[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]$")
_USAGE = re.compile(r"(\d+)\s*/\s*(\d+)")
_NOISE = re.compile(r"^[+|=\-\s]*$")
_WELL = ("OK", "0K")
"""The second is how the letter O comes out of screenshots."""


@dataclass(frozen=True)
class Chip:
    """One chip as the table has it: NPU and chip number, and memory in MiB (0 where unknown)."""

    npu: int
    chip: int
    name: str
    health: str
    bus: str
    memory_mib: int


def parse(text: str | None) -> tuple[tuple[Accelerator, ...], str]:
    """Accelerators from the section, and what the tool said instead of, or beside, some of them.

    None or an empty text: there is no npu-smi. The index of a chip is its logical id, which is what
    ASCEND_RT_VISIBLE_DEVICES counts: from `info -m` where that knows it, else its place in the
    table, since a container counts the chips it was given from 0.
    """
    if not text or not text.strip():
        return (), ""
    table, mark, rest = text.partition("== status ")
    code, _, mapping = rest.partition("\n")
    found = chips(table)
    if not found:
        said = "; ".join(x.strip() for x in table.splitlines() if not _NOISE.match(x))
        ended = code.strip() if mark else "unknown, it did not end"
        return (), (f"npu-smi shows no chip (status {ended}): " + said)[:500].rstrip(": ")
    known = logical_ids(mapping)
    indices = [known.get((c.npu, c.chip)) for c in found]
    if None in indices or len(set(indices)) < len(indices):
        indices = list(range(len(found)))
    accelerators = [
        Accelerator(
            index=index if index is not None else 0,
            uuid=f"NPU-{c.bus}-{c.chip}",
            vendor="ascend",
            type=c.name if c.name.startswith("Ascend") else f"Ascend {c.name}",
            memory_mib=c.memory_mib,
        )
        for index, c in zip(indices, found, strict=True)
    ]
    ill = [f"NPU {c.npu} chip {c.chip} is {c.health}" for c in found if c.health not in _WELL]
    return tuple(sorted(accelerators, key=lambda a: a.index)), "; ".join(ill)


def chips(table: str) -> list[Chip]:
    """The chips of the table, in its order."""
    found: list[Chip] = []
    first: tuple[int, str, str] | None = None
    for line in table.splitlines():
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        if not line.lstrip().startswith("|") or len(cells) < 3:
            continue
        bus = next((i for i, c in enumerate(cells) if _BUS.match(c)), None)
        if bus is None:
            first = _opening(cells)
        elif first is not None:
            number, name, health = first
            chip = cells[0].split()
            usage = _USAGE.findall(" ".join(cells[bus + 1 :]))
            at = int(chip[0]) if chip and chip[0].isdecimal() else 0
            memory = int(usage[-1][1]) if usage else 0
            found.append(Chip(number, at, name, health, cells[bus], memory))
            first = None
    return found


def _opening(cells: list[str]) -> tuple[int, str, str] | None:
    """NPU number, name and health from a chip's first line; None where it is another line."""
    if len(cells) >= 4 and cells[0].isdecimal() and re.search("[A-Za-z]", cells[1]):
        joined, health = f"{cells[0]} {cells[1]}", cells[2]
    else:
        joined, health = cells[0], cells[1]
    match = _FIRST.match(joined)
    return (int(match[1]), match[2], health) if match and health[:1].isalnum() else None


def logical_ids(mapping: str) -> dict[tuple[int, int], int]:
    """(NPU, chip) -> logical id from `npu-smi info -m`; empty where it has no such column.

    Rows of controllers (`Mcu`) have no logical id.
    """
    lines = [x for x in mapping.splitlines() if x.strip()]
    header = next((x for x in lines if x.strip().startswith("NPU ID")), "")
    names = re.findall(r"NPU ID|Slot ID|Chip ID|Chip Logic ID|Chip Phy-ID|Chip Name", header)
    if "Chip Logic ID" not in names or "Chip ID" not in names:
        return {}
    at, chip = names.index("Chip Logic ID"), names.index("Chip ID")
    found = {}
    for line in lines[lines.index(header) + 1 :]:
        words = line.split()
        if (
            len(words) > at
            and words[0].isdecimal()
            and words[at].isdecimal()
            and words[chip].isdecimal()
        ):
            found[int(words[0]), int(words[chip])] = int(words[at])
    return found
