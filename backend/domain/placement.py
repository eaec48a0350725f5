"""Where a group's members go: all of them at once on accelerators of one type, or a refusal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from backend.domain.errors import Refused
from backend.domain.host import Vendor
from backend.domain.no_room import refusal
from backend.domain.seats import Need, Room, Seat, search, selects

__all__ = ["Need", "Room", "Seat", "misfits", "place", "place_most", "selects"]


def place(
    rooms: Sequence[Room],
    needs: Sequence[Need],
    *,
    vendor: Vendor | None = None,
    only_type: str | None = None,
) -> tuple[Seat, ...]:
    """Seats for every member of `needs`, on accelerators of one type.

    `vendor` limits the accelerators to a mode's vendor, `only_type` to the type that the group
    already runs on. Raises Refused (`placement.accelerators`, `placement.ports`,
    `placement.too_wide`) when not all fit; nothing is placed then.
    """
    if all(n.count == 0 for n in needs):
        return ()
    types = _types(rooms, vendor, only_type)
    if all(n.width == 0 for n in needs):
        types = [""]
    for kind in types:
        seats = search(rooms, needs, kind)
        if seats is not None:
            return seats
    raise refusal(rooms, needs, vendor, only_type, types)


def place_most(
    rooms: Sequence[Room],
    need: Need,
    *,
    vendor: Vendor | None = None,
    only_type: str | None = None,
) -> tuple[Seat, ...]:
    """Seats for as many members of `need` as fit: a running group grows one member at a time.

    Raises what `place` raises when not even one fits.
    """
    first: Refused | None = None
    low, high = 0, need.count
    best: tuple[Seat, ...] = ()
    while low < high:  # whether n fit is monotonic: any n members leave room for fewer
        count = high if first is None else (low + high + 1) // 2
        try:
            best = place(rooms, [replace(need, count=count)], vendor=vendor, only_type=only_type)
        except Refused as error:
            first, high = error, count - 1
        else:
            low = count
    if not best and first is not None:
        raise first
    return best


def misfits(rooms: Sequence[Room], seats: Sequence[Seat]) -> str:
    """Why seats chosen earlier no more fit the hosts as they are now; empty while all do."""
    now = {r.host: r for r in rooms}
    for seat in seats:
        room = now.get(seat.host)
        if room is None or room.why_not:
            return f"{seat.host}: {room.why_not if room else 'it is not in the inventory any more'}"
        gone = {*seat.accelerators} - {a.index for a in room.free}
        if gone:
            return f"{seat.host}: accelerators {', '.join(map(str, sorted(gone)))} are in use"
        taken = {p for b in seat.bands for p in b.ports} & room.taken_ports
        if taken:
            return f"{seat.host}: ports {', '.join(map(str, sorted(taken)))} are taken"
        if room.address != seat.address:
            return f"{seat.host}: its address is {room.address} now"
    return ""


def _types(rooms: Sequence[Room], vendor: Vendor | None, only: str | None) -> list[str]:
    """Types that could carry the group, the one with most free accelerators first."""
    free: dict[str, int] = {}
    for room in rooms:
        if room.why_not:
            continue
        for acc in room.free:
            if vendor in (None, acc.vendor) and only in (None, acc.type):
                free[acc.type] = free.get(acc.type, 0) + 1
    return sorted(free, key=lambda t: (-free[t], t))
