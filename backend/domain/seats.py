"""Dealing seats: members onto hosts, on accelerators of one type, by a bounded search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from backend.domain.deployment import HostSelector, Pin
from backend.domain.host import DEFAULT_PORTS, Accelerator, Vendor
from backend.domain.instance import Band
from backend.domain.ports import Demand, allocate, free_in

SEARCH_LIMIT = 5_000
"""Seats tried before the search gives up on a type. Members of equal width never need more than
one try each; only pins and selectors that exclude each other do."""


@dataclass(frozen=True)
class Room:
    """What one host offers. `why_not` says why it offers nothing (unreachable, key unknown);
    `foreign` are those of the busy accelerators that a stranger uses, and who that is."""

    host: str
    address: str
    accelerators: tuple[Accelerator, ...] = ()
    busy: Mapping[int, str] = field(default_factory=dict)
    port_range: tuple[int, int] = DEFAULT_PORTS
    taken_ports: frozenset[int] = frozenset()
    labels: Mapping[str, str] = field(default_factory=dict)
    members: int = 0
    why_not: str = ""
    foreign: Mapping[int, str] = field(default_factory=dict)

    @property
    def free(self) -> tuple[Accelerator, ...]:
        """Accelerators nobody holds."""
        return tuple(a for a in self.accelerators if a.index not in self.busy)


@dataclass(frozen=True)
class Need:
    """`count` members of one role, each with `width` accelerators and these bands.

    `wished` bands and `wished_host` are kept where they are free; on another host those bands only
    that its range holds. `fixed_port` is the HTTP port that it must have, `within` the hosts
    outside of which it cannot work (null: none).
    """

    role: str
    count: int
    width: int
    demands: tuple[Demand, ...]
    hosts: HostSelector | None = None
    pins: tuple[Pin, ...] = ()
    wished: tuple[Band, ...] = ()
    wished_host: str = ""
    fixed_port: int | None = None
    within: frozenset[str] | None = None

    @property
    def ports(self) -> int:
        """Ports that one member takes."""
        return sum(d.count for d in self.demands)

    def wishes(self, room: Room) -> tuple[Band, ...]:
        """The bands to keep on that host."""
        if room.host == self.wished_host:
            return self.wished
        low, high = room.port_range
        return tuple(
            b
            for b in self.wished
            if b.base == self.fixed_port or (low <= b.base and b.base + b.count - 1 <= high)
        )

    def may_use(self, room: Room) -> bool:
        """Whether a member that is not pinned may be placed there."""
        inside = self.within is None or room.host in self.within
        return inside and not room.why_not and selects(self.hosts, room.host, room.labels)


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


class _Trial:
    """One host while seats are dealt: what is still free of one type."""

    def __init__(self, room: Room, kind: str) -> None:
        self.room = room
        self.free = [a for a in room.free if a.type == kind]
        self.ports = set(room.taken_ports)
        self.members = room.members

    def slots(self, need: Need) -> int:
        """Members of `need` that could be here at most."""
        ports = free_in(self.room.port_range, self.ports) // max(need.ports, 1)
        if need.fixed_port is not None or need.wishes(self.room):
            ports = max(ports, 1)  # these may lie outside the range
        return min(len(self.free) // need.width, ports) if need.width else ports


Want = tuple[Need, Pin | None]


def search(rooms: Sequence[Room], needs: Sequence[Need], kind: str) -> tuple[Seat, ...] | None:
    """Seats for every member of `needs` on accelerators of type `kind`, or None."""
    trials = [_Trial(r, kind) for r in rooms if not r.why_not]
    wants: list[Want] = []
    for need in needs:
        pins: list[Pin | None] = list(need.pins[: need.count])
        wants += [(need, p) for p in pins + [None] * (need.count - len(pins))]
    if not wants or not _could_fit(trials, wants):
        return None if wants else ()
    choice = {id(n): sum(n.may_use(t.room) for t in trials) for n in needs}
    wants.sort(key=lambda w: (_looseness(w[1]), choice[id(w[0])], -w[0].width, -w[0].ports))
    return _Dealer(trials, wants, kind).deal()


def _looseness(pin: Pin | None) -> int:
    """Named accelerators are dealt before somebody else sits there, then named hosts."""
    if pin is None:
        return 2
    return 1 if pin.accelerators is None else 0


def _width(want: Want) -> int:
    need, pin = want
    return need.width if pin is None or pin.accelerators is None else len(pin.accelerators)


def _could_fit(trials: Sequence[_Trial], wants: Sequence[Want]) -> bool:
    """A cheap bound, so that a hopeless search is not begun: members that are as wide or wider
    have a slot each somewhere."""
    loose: dict[int, list[Need]] = {}
    for need, pin in wants:
        if pin is None:
            loose.setdefault(id(need), []).append(need)
    for same in loose.values():
        if sum(t.slots(same[0]) for t in trials if same[0].may_use(t.room)) < len(same):
            return False
    widths = [_width(w) for w in wants]
    for width in set(widths) - {0}:
        slots = sum(len(t.free) // width for t in trials)
        if slots < sum(w >= width for w in widths):
            return False
    return sum(widths) <= sum(len(t.free) for t in trials)


class _Dealer:
    """Depth first over the wants, hosts with most room first; a state once refused is not tried
    again: how many members of which role sit on which host is all that matters."""

    def __init__(self, trials: Sequence[_Trial], wants: Sequence[Want], kind: str) -> None:
        self._trials, self._wants, self._kind = trials, wants, kind
        self._seats: list[tuple[Seat, _Trial, list[Accelerator], set[int]]] = []
        self._counts: dict[tuple[str, str], int] = {}
        self._dead: set[frozenset[tuple[tuple[str, str], int]]] = set()

    def deal(self) -> tuple[Seat, ...] | None:
        """The seats, or None when there are none or the search became too long."""
        open_choices = [iter(_candidates(self._trials, *self._wants[0]))]
        for _ in range(SEARCH_LIMIT + len(self._wants)):
            trial = next(open_choices[-1], None)
            if trial is None:
                self._dead.add(self._state())
                open_choices.pop()
                if not self._seats:
                    return None
                self._rise()
                continue
            need, pin = self._wants[len(self._seats)]
            seat = _sit(trial, need, pin, self._kind)
            if seat is None:
                continue
            self._sit_down(trial, seat)
            if len(self._seats) == len(self._wants):
                return tuple(s for s, *_ in self._seats)
            if self._state() in self._dead:
                self._rise()
                continue
            following = self._wants[len(self._seats)]
            open_choices.append(iter(_candidates(self._trials, *following)))
        return None

    def _state(self) -> frozenset[tuple[tuple[str, str], int]]:
        return frozenset(self._counts.items())

    def _sit_down(self, trial: _Trial, seat: Seat) -> None:
        self._seats.append((seat, trial, trial.free, trial.ports))
        trial.free = [a for a in trial.free if a.index not in seat.accelerators]
        trial.ports = trial.ports | {p for b in seat.bands for p in b.ports}
        trial.members += 1
        at = (seat.host, seat.role)
        self._counts[at] = self._counts.get(at, 0) + 1

    def _rise(self) -> None:
        seat, trial, free, ports = self._seats.pop()
        trial.free, trial.ports = free, ports
        trial.members -= 1
        at = (seat.host, seat.role)
        self._counts[at] -= 1
        if not self._counts[at]:
            del self._counts[at]


def _candidates(trials: Sequence[_Trial], need: Need, pin: Pin | None) -> list[_Trial]:
    if pin is not None:
        return [t for t in trials if t.room.host == pin.host]
    fit = [t for t in trials if need.may_use(t.room)]
    if need.width:
        return sorted(fit, key=lambda t: (-len(t.free), t.members, t.room.host))

    # a router: where it was, else the quietest host, without accelerators first
    def quiet(t: _Trial) -> tuple[bool, bool, int, str]:
        elsewhere = t.room.host != need.wished_host
        return elsewhere, bool(t.room.accelerators), t.members, t.room.host

    return sorted(fit, key=quiet)


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
    bands = allocate(trial.room.port_range, trial.ports, need.demands, need.wishes(trial.room))
    if bands is None:
        return None
    if need.fixed_port is not None and bands[0].base != need.fixed_port:
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
