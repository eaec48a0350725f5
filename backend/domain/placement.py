"""Where a group's members go: all of them at once on accelerators of one type, or a refusal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from backend.domain.deployment import HostSelector, Pin
from backend.domain.errors import Refused
from backend.domain.host import Accelerator, Vendor
from backend.domain.instance import Band
from backend.domain.ports import Demand, allocate, free_in

SEARCH_LIMIT = 20_000
"""Seats tried before the search gives up on a type; far above any group of powers of two."""


@dataclass(frozen=True)
class Room:
    """What one host offers. `why_not` says why it offers nothing (unreachable, key unknown)."""

    host: str
    address: str
    accelerators: tuple[Accelerator, ...] = ()
    busy: Mapping[int, str] = field(default_factory=dict)
    port_range: tuple[int, int] = (40000, 40063)
    taken_ports: frozenset[int] = frozenset()
    labels: Mapping[str, str] = field(default_factory=dict)
    members: int = 0
    why_not: str = ""

    @property
    def free(self) -> tuple[Accelerator, ...]:
        """Accelerators nobody holds."""
        return tuple(a for a in self.accelerators if a.index not in self.busy)


@dataclass(frozen=True)
class Need:
    """`count` members of one role, each with `width` accelerators and these bands."""

    role: str
    count: int
    width: int
    demands: tuple[Demand, ...]
    hosts: HostSelector | None = None
    pins: tuple[Pin, ...] = ()
    wished: tuple[Band, ...] = ()
    wished_host: str = ""


@dataclass(frozen=True)
class Seat:
    """One member's place."""

    role: str
    host: str
    address: str
    accelerators: tuple[int, ...]
    accelerator_type: str
    vendor: Vendor | None
    bands: tuple[Band, ...]


def selects(selector: HostSelector | None, name: str, labels: Mapping[str, str]) -> bool:
    """Whether a host passes a selector; null passes all."""
    if selector is None:
        return True
    if selector.names is not None and name not in selector.names:
        return False
    wanted = selector.labels or {}
    return all(labels.get(k) == v for k, v in wanted.items())


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
    if not needs or all(n.count == 0 for n in needs):
        return ()
    types = _types(rooms, vendor, only_type)
    if all(n.width == 0 for n in needs):
        types = [""]
    for kind in types:
        seats = _search(rooms, needs, kind)
        if seats is not None:
            return seats
    raise _refusal(rooms, needs, vendor, only_type, types)


def _types(rooms: Sequence[Room], vendor: Vendor | None, only: str | None) -> list[str]:
    """Types that could carry the group, the one with most free accelerators first."""
    free: dict[str, int] = {}
    for room in rooms:
        if room.why_not:
            continue
        for acc in room.free:
            if (vendor is None or acc.vendor == vendor) and only in (None, acc.type):
                free[acc.type] = free.get(acc.type, 0) + 1
    return sorted(free, key=lambda t: (-free[t], t))


class _Trial:
    """One host while seats are dealt: what is still free of one type."""

    def __init__(self, room: Room, kind: str) -> None:
        self.room = room
        self.free = [a for a in room.free if a.type == kind]
        self.ports = set(room.taken_ports)
        self.members = room.members


def _search(rooms: Sequence[Room], needs: Sequence[Need], kind: str) -> tuple[Seat, ...] | None:
    trials = {r.host: _Trial(r, kind) for r in rooms if not r.why_not}
    wants: list[tuple[Need, Pin | None]] = []
    for need in needs:
        pins: list[Pin | None] = list(need.pins[: need.count])
        wants += [(need, p) for p in pins + [None] * (need.count - len(pins))]
    eligible = {
        id(n): sum(selects(n.hosts, t.room.host, t.room.labels) for t in trials.values())
        for n in needs
    }
    wants.sort(key=lambda w: (w[1] is None, eligible[id(w[0])], -w[0].width))
    seats: list[Seat] = []
    budget = iter(range(SEARCH_LIMIT))

    def deal(at: int) -> bool:
        if at == len(wants):
            return True
        need, pin = wants[at]
        for trial in _candidates(trials, need, pin):
            if next(budget, None) is None:
                return False
            seat = _sit(trial, need, pin, kind)
            if seat is None:
                continue
            held = [a for a in trial.free if a.index in seat.accelerators]
            taken = {p for b in seat.bands for p in b.ports}
            trial.free = [a for a in trial.free if a.index not in seat.accelerators]
            trial.ports |= taken
            trial.members += 1
            seats.append(seat)
            if deal(at + 1):
                return True
            seats.pop()
            trial.free = sorted([*trial.free, *held], key=lambda a: a.index)
            trial.ports -= taken
            trial.members -= 1
        return False

    return tuple(seats) if deal(0) else None


def _candidates(trials: Mapping[str, _Trial], need: Need, pin: Pin | None) -> Iterator[_Trial]:
    if pin is not None:
        if pin.host in trials:
            yield trials[pin.host]
        return
    fit = [t for t in trials.values() if selects(need.hosts, t.room.host, t.room.labels)]
    if (
        need.width == 0
    ):  # a router: where it was, else the quietest host, without accelerators first
        fit.sort(
            key=lambda t: (
                t.room.host != need.wished_host,
                bool(t.room.accelerators),
                t.members,
                t.room.host,
            )
        )
    else:
        fit.sort(key=lambda t: (-len(t.free), t.members, t.room.host))
    yield from fit


def _sit(trial: _Trial, need: Need, pin: Pin | None, kind: str) -> Seat | None:
    chosen: list[Accelerator]
    if pin is not None and pin.accelerators is not None:
        chosen = [a for a in trial.free if a.index in pin.accelerators]
        if len(chosen) != len(pin.accelerators):
            return None
    else:
        chosen = trial.free[: need.width]
        if len(chosen) < need.width:
            return None
    bands = allocate(trial.room.port_range, trial.ports, need.demands, need.wished)
    if bands is None:
        return None
    return Seat(
        role=need.role,
        host=trial.room.host,
        address=trial.room.address,
        accelerators=tuple(a.index for a in chosen),
        accelerator_type=kind if chosen else "",
        vendor=chosen[0].vendor if chosen else None,
        bands=bands,
    )


def _refusal(
    rooms: Sequence[Room],
    needs: Sequence[Need],
    vendor: Vendor | None,
    only: str | None,
    types: Sequence[str],
) -> Refused:
    widest = max((len(r.accelerators), r.host) for r in rooms) if rooms else (0, "no host")
    for need in needs:
        if rooms and need.width > widest[0]:
            return _too_wide(need, widest)
    notes = [_note(r, needs, vendor, only) for r in rooms]
    asked = " + ".join(f"{n.count} {n.role} x {n.width}" for n in needs if n.count)
    short = _ports_short(rooms, needs)
    rule = "placement.ports" if short else "placement.accelerators"
    room = {t: _free_of(rooms, t) for t in types}
    have = ", ".join(f"{n} free {t}" for t, n in room.items()) or "no usable accelerator"
    of_type = f" of type {only}, which the group runs on," if only else ""
    message = (
        f"the group needs accelerators{of_type} for {asked} on one type at once; there is {have}."
        if not short
        else f"the group needs ports for {asked}; {short}."
    )
    return Refused.of(
        rule,
        message + " " + "; ".join(n for n in notes if n) + ".",
        path="spec.roles" if len(needs) > 1 else f"spec.roles.{needs[0].role}",
        values={"needed": asked, "available": room},
        remedy=(
            "Widen service_port_range on the host, or free ports there."
            if short
            else "Add a host, free accelerators, lower the replicas, or widen the host selector."
        ),
    )


def _too_wide(need: Need, widest: tuple[int, str]) -> Refused:
    return Refused.of(
        "placement.too_wide",
        f"one {need.role} member needs {need.width} accelerators, but the widest host "
        f"({widest[1]}) has {widest[0]}; a member does not span hosts.",
        path=f"spec.roles.{need.role}.accelerators",
        values={"needed": need.width, "widest": widest[0], "host": widest[1]},
        remedy=f"Set accelerators to {widest[0]} or less, or add a wider host.",
    )


def _free_of(rooms: Sequence[Room], kind: str) -> int:
    return sum(1 for r in rooms if not r.why_not for a in r.free if a.type == kind)


def _note(room: Room, needs: Sequence[Need], vendor: Vendor | None, only: str | None) -> str:
    if room.why_not:
        return f"{room.host}: {room.why_not}"
    if not any(selects(n.hosts, room.host, room.labels) for n in needs):
        return f"{room.host}: not selected"
    if not room.accelerators:
        return f"{room.host}: no accelerators"
    kinds = sorted({a.type for a in room.accelerators})
    if vendor and all(a.vendor != vendor for a in room.accelerators):
        return f"{room.host}: {kinds[0]} is not {vendor}"
    if only and only not in kinds:
        return f"{room.host}: has {kinds[0]}"
    ports = free_in(room.port_range, room.taken_ports)
    return (
        f"{room.host}: {len(room.free)} of {len(room.accelerators)} {'/'.join(kinds)} free, "
        f"{ports} ports free"
    )


def _ports_short(rooms: Sequence[Room], needs: Sequence[Need]) -> str:
    """What is missing, when ports alone stand in the way."""
    relaxed = [
        Room(
            host=r.host,
            address=r.address,
            accelerators=r.accelerators,
            busy=r.busy,
            port_range=(1, 65535),
            labels=r.labels,
            members=r.members,
            why_not=r.why_not,
        )
        for r in rooms
    ]
    kinds = sorted({a.type for r in rooms for a in r.free}) or [""]
    seats = next((s for s in (_search(relaxed, needs, k) for k in kinds) if s), None)
    if seats is None:
        return ""
    per_host: dict[str, int] = {}
    for seat in seats:
        per_host[seat.host] = per_host.get(seat.host, 0) + sum(b.count for b in seat.bands)
    lacking = []
    for room in rooms:
        wanted = per_host.get(room.host, 0)
        free = free_in(room.port_range, room.taken_ports)
        if wanted > free:
            lacking.append(
                f"{room.host} has {free} of {wanted} ports free, {wanted - free} missing"
            )
    return "; ".join(lacking) or "the free ports are not contiguous"
