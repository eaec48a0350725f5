"""Quantities as a narrow column shows them; what is not known is a dash."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime

NONE = "-"


def age(seconds: float | None) -> str:
    """A duration in seconds in one or two units: `8s`, `4m`, `3h12m`, `5d`."""
    if seconds is None or seconds < 0:
        return NONE
    total = int(seconds)
    if total < 60:
        return f"{total}s"
    minutes, hours, days = total // 60, total // 3600, total // 86400
    if minutes < 60:
        return f"{minutes}m{total % 60:02d}s" if minutes < 10 else f"{minutes}m"
    if hours < 24:
        return f"{hours}h{minutes % 60:02d}m" if hours < 10 else f"{hours}h"
    return f"{days}d{hours % 24:02d}h" if days < 10 else f"{days}d"


def since(now: float, at: float) -> str:
    """Age at `now` of something that happened at `at` (epoch seconds; 0 is never)."""
    return age(now - at) if at else NONE


def mib(amount: int) -> str:
    """A size in MiB: `96GiB`, `512MiB`; 0 is unknown."""
    if amount <= 0:
        return NONE
    return f"{amount / 1024:.0f}GiB" if amount >= 1024 else f"{amount}MiB"


def clock(at: float) -> str:
    """Local time of day of an epoch second."""
    return datetime.fromtimestamp(at, tz=UTC).astimezone().strftime("%H:%M:%S") if at else NONE


def stamp(at: float) -> str:
    """Local date and time of an epoch second."""
    return (
        datetime.fromtimestamp(at, tz=UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")
        if at
        else NONE
    )


def runs(numbers: Iterable[int]) -> str:
    """Whole numbers as runs: `0-3,6`."""
    out: list[str] = []
    ordered = sorted(set(numbers))
    i = 0
    while i < len(ordered):
        j = i
        while j + 1 < len(ordered) and ordered[j + 1] == ordered[j] + 1:
            j += 1
        out.append(str(ordered[i]) if i == j else f"{ordered[i]}-{ordered[j]}")
        i = j + 1
    return ",".join(out) or NONE


_VENDOR = re.compile(r"^(NVIDIA|Tesla|Huawei|Ascend)[ -]+", re.IGNORECASE)
_MEMORY = re.compile(r"[ -](\d+ ?GB|HBM\w*|PCIe|SXM\d*)\b", re.IGNORECASE)


def chip(name: str) -> str:
    """An accelerator's type name for a narrow column: `NVIDIA H100 80GB HBM3` is `H100`."""
    short = _MEMORY.sub("", _VENDOR.sub("", _VENDOR.sub("", name.strip()))).strip()
    return short or name


def count(amount: int, one: str, many: str) -> str:
    """`amount` with the right word."""
    return f"{amount} {one if amount == 1 else many}"
