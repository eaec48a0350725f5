"""Port bands: contiguous runs, allocated first-fit from the bottom of a host's range."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from backend.domain.instance import Band


class Demand(Protocol):
    """A wanted band: its name and width."""

    @property
    def name(self) -> str: ...

    @property
    def count(self) -> int: ...


def allocate(
    port_range: tuple[int, int],
    taken: Collection[int],
    demands: Sequence[Demand],
    wished: Iterable[Band] = (),
) -> tuple[Band, ...] | None:
    """Bands for `demands` inside `port_range` (inclusive) clear of `taken`, or None when short.

    A band in `wished` of the same name and width keeps its place while it is free, whatever the
    range says, so that an endpoint does not move. Of the others the widest is placed first, each at
    the lowest gap that holds it; the answer follows the order of `demands`.
    """
    used = set(taken)
    wishes = {(b.name, b.count): b for b in wished}
    placed: dict[str, Band] = {}
    for demand in demands:
        wish = wishes.get((demand.name, demand.count))
        if wish is not None and used.isdisjoint(wish.ports):
            placed[demand.name] = wish
            used.update(wish.ports)
    for demand in sorted(demands, key=lambda d: -d.count):
        if demand.name in placed:
            continue
        band = _lowest(port_range, used, demand)
        if band is None:
            return None
        placed[demand.name] = band
        used.update(band.ports)
    return tuple(placed[d.name] for d in demands)


def merged(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Ranges (inclusive) in order, those that meet or touch made one."""
    out: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if out and first <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(out[-1][1], last))
        else:
            out.append((first, last))
    return tuple(out)


def _lowest(port_range: tuple[int, int], used: set[int], demand: Demand) -> Band | None:
    first, last = port_range
    base = first
    while base + demand.count - 1 <= last:
        clash = next((p for p in range(base, base + demand.count) if p in used), None)
        if clash is None:
            return Band(name=demand.name, base=base, count=demand.count)
        base = clash + 1
    return None


def free_in(port_range: tuple[int, int], taken: Collection[int]) -> int:
    """How many ports of the range nobody holds."""
    first, last = port_range
    return sum(1 for p in range(first, last + 1) if p not in taken)
