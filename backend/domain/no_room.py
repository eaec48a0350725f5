"""Why a group's members cannot be placed: what is asked, what there is, what is missing where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from backend.domain.errors import Refused
from backend.domain.host import Vendor
from backend.domain.instance import PLAIN_ROLE
from backend.domain.ports import free_in
from backend.domain.seats import Need, Room, search

NOTES = 12
"""Hosts described in one refusal; the others are counted."""


def refusal(
    rooms: Sequence[Room],
    needs: Sequence[Need],
    vendor: Vendor | None,
    only: str | None,
    types: Sequence[str],
) -> Refused:
    """The refusal as a person reads it, after no type in `types` could hold all of `needs`."""
    too_wide = _too_wide(rooms, needs, vendor, only)
    if too_wide is not None:
        return too_wide
    fixed = next((n for n in needs if n.fixed_port is not None), None)
    if fixed is not None:
        return _port_taken(rooms, fixed)
    asked = " + ".join(f"{n.count} {n.role} x {n.width}" for n in needs if n.count)
    short = _ports_short(rooms, needs, types)
    if short:
        rule, message = "placement.ports", f"the group needs ports for {asked}; {short}."
        remedy = "Widen service_port_range on the host, or free ports there."
    else:
        rule = "placement.accelerators"
        of_type = f" of type {only}, which the group runs on," if only else ""
        message = (
            f"the group needs accelerators{of_type} for {asked} on one type at once; "
            f"{_have(rooms, needs, types)}{_mixed(rooms, needs, vendor, only)}."
        )
        remedy = "Add a host, free accelerators, lower the replicas, or widen the host selector."
    return Refused.of(
        rule,
        f"{message} {_notes(rooms, needs, vendor, only)}",
        path=_path(needs),
        values={"needed": asked, "available": {t: _free_of(rooms, t) for t in types}},
        remedy=remedy,
    )


def _path(needs: Sequence[Need]) -> str:
    if len(needs) > 1:
        return "spec.roles"
    return "spec" if needs[0].role == PLAIN_ROLE else f"spec.roles.{needs[0].role}"


def _have(rooms: Sequence[Room], needs: Sequence[Need], types: Sequence[str]) -> str:
    """What there is, and how much is missing where that can be counted."""
    if not any(types):
        return "there is no usable accelerator" if rooms else "there is no host"
    free = {t: _free_of(rooms, t) for t in types}
    listed = ", ".join(f"{n} free {t}" for t, n in free.items())
    missing = sum(n.count * n.width for n in needs) - max(free.values())
    if missing > 0:
        return f"available: {listed}; {missing} missing"
    return f"available: {listed}, but not where the members would fit without spanning hosts"


def _mixed(
    rooms: Sequence[Room], needs: Sequence[Need], vendor: Vendor | None, only: str | None
) -> str:
    """That members would fit if types were mixed, and who would sit on which; empty if not."""
    kinds = {
        (r.host, a.index): a.type
        for r in rooms
        for a in r.accelerators
        if vendor in (None, a.vendor)
    }
    if only is not None or len(set(kinds.values())) < 2:
        return ""
    alike = [
        replace(
            r,
            accelerators=tuple(
                a.model_copy(update={"type": "any"})
                for a in r.accelerators
                if (r.host, a.index) in kinds
            ),
        )
        for r in rooms
    ]
    seats = search(alike, needs, "any")
    places: dict[tuple[str, str], str] = {}
    for seat in seats or ():
        types = sorted({kinds[seat.host, i] for i in seat.accelerators})
        if types:
            places[seat.role, seat.host] = f"{seat.role} on {seat.host} ({'/'.join(types)})"
    if not places:
        return ""
    listed = ", ".join(places[key] for key in sorted(places, key=lambda k: (k[1], k[0])))
    return f"; they would fit only on mixed types, which a group never runs on: {listed}"


def _too_wide(
    rooms: Sequence[Room], needs: Sequence[Need], vendor: Vendor | None, only: str | None
) -> Refused | None:
    """A member wider than every host it may use; said only where each of them was seen."""
    for need in needs:
        at = [r for r in rooms if r.why_not or need.may_use(r)]
        if not at or not need.count or any(r.why_not for r in at):
            continue
        widest, host = max((_width(r, vendor, only), r.host) for r in at)
        if need.width <= widest or not widest:
            continue
        return Refused.of(
            "placement.too_wide",
            f"one {need.role} member needs {need.width} accelerators, but the widest host "
            f"({host}) has {widest}; a member does not span hosts.",
            path=f"{_path([need])}.accelerators",
            values={"needed": need.width, "widest": widest, "host": host, "role": need.role},
            remedy=f"Set accelerators to {widest} or less, or add a wider host.",
        )
    return None


def _width(room: Room, vendor: Vendor | None, only: str | None) -> int:
    """Accelerators of the one type the host has most of, among those that may be used."""
    counts: dict[str, int] = {}
    for a in room.accelerators:
        if vendor in (None, a.vendor) and only in (None, a.type):
            counts[a.type] = counts.get(a.type, 0) + 1
    return max(counts.values(), default=0)


def _port_taken(rooms: Sequence[Room], need: Need) -> Refused:
    at = [r for r in rooms if need.may_use(r) and need.fixed_port in r.taken_ports]
    held = ", ".join(r.host for r in at) or "every host it may use"
    return Refused.of(
        "placement.ports",
        f"the {need.role} is to have port {need.fixed_port}, which is taken on {held}. "
        f"{_notes(rooms, [need], None, None)}",
        path=f"{_path([need])}.port",
        values={"port": need.fixed_port, "hosts": [r.host for r in at]},
        remedy="Free the port, choose another one, or leave spec.roles.router.port out.",
    )


def _free_of(rooms: Sequence[Room], kind: str) -> int:
    return sum(1 for r in rooms if not r.why_not for a in r.free if a.type == kind)


def _notes(
    rooms: Sequence[Room], needs: Sequence[Need], vendor: Vendor | None, only: str | None
) -> str:
    if not rooms:
        return "The inventory is empty."
    notes = [_note(r, needs, vendor, only) for r in rooms[:NOTES]]
    if len(rooms) > NOTES:
        notes.append(f"and {len(rooms) - NOTES} more hosts")
    return "; ".join(notes) + "."


def _note(room: Room, needs: Sequence[Need], vendor: Vendor | None, only: str | None) -> str:
    if room.why_not:
        return f"{room.host}: {room.why_not.rstrip('.')}"
    pinned = [p for n in needs for p in n.pins if p.host == room.host]
    if not pinned and not any(n.may_use(room) for n in needs):
        return f"{room.host}: not selected"
    ports = f"{free_in(room.port_range, room.taken_ports)} ports free"
    if not room.accelerators:
        return f"{room.host}: no accelerators, {ports}"
    kinds = sorted({a.type for a in room.accelerators})
    if vendor and all(a.vendor != vendor for a in room.accelerators):
        return f"{room.host}: {kinds[0]} is not {vendor}"
    if only and only not in kinds:
        return f"{room.host}: has {kinds[0]}"
    wished = sorted({i for p in pinned for i in p.accelerators or ()})
    there = {a.index for a in room.accelerators}
    held = [f"{i} held by {room.busy[i]}" for i in wished if i in room.busy]
    held += [f"{i} not there" for i in wished if i not in there]
    asked = f" (asked for by number: {', '.join(held)})" if held else ""
    foreign = [f"{i} by {who}" for i, who in sorted(room.foreign.items()) if i not in wished]
    used = f" ({', '.join(foreign[:4])}{' …' if len(foreign) > 4 else ''})" if foreign else ""
    free = f"{len(room.free)} of {len(room.accelerators)} {'/'.join(kinds)} free"
    return f"{room.host}: {free}{asked}{used}, {ports}"


def _ports_short(rooms: Sequence[Room], needs: Sequence[Need], types: Sequence[str]) -> str:
    """What is missing, when ports alone stand in the way."""
    relaxed = [replace(r, port_range=(1, 65535), taken_ports=frozenset()) for r in rooms]
    seats = next((s for t in types if (s := search(relaxed, needs, t)) is not None), None)
    if seats is None:
        return ""
    wanted: dict[str, int] = {}
    for seat in seats:
        wanted[seat.host] = wanted.get(seat.host, 0) + sum(b.count for b in seat.bands)
    lacking = []
    for room in rooms:
        asked, free = wanted.get(room.host, 0), free_in(room.port_range, room.taken_ports)
        if asked > free:
            lacking.append(f"{room.host} has {free} of {asked} ports free, {asked - free} missing")
    return "; ".join(lacking) or "the free ports are not contiguous"
