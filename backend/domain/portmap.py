"""A host's ports as a map: the service port range run by run, and what nobody can manage beside it.

Source: the user's document, "ports", and "three kinds of ports that cannot be managed".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Literal

from backend.domain.checkup import Listener
from backend.domain.group import Instance
from backend.domain.host import HostFacts
from backend.domain.rules.hosts import ENGINE_WINDOWS
from backend.domain.value import Value

Kind = Literal["ours", "claimed", "foreign", "stuck", "free"]
LISTED = 40


class PortRun(Value):
    """Neighbouring ports with one holder, both ends included.

    `ours`: a band of an instance of ours. `claimed`: of an instance nobody here knows, another
    backend's or one that was lost. `foreign`: a stranger listens. `stuck`: cannot be bound though
    nobody listens. `listening` counts those somebody listens on.
    """

    first: int
    last: int
    kind: Kind
    holder: str = ""
    band: str = ""
    listening: int = 0

    @property
    def size(self) -> int:
        """How many ports."""
        return self.last - self.first + 1


class PortWindow(Value):
    """Ports that others hand out by themselves: `engine` (transports choose there at run time) or
    `ephemeral` (the kernel, for outgoing connections). `overlaps` the service port range;
    `listeners` are the first few that listen there."""

    first: int
    last: int
    kind: Literal["engine", "ephemeral"]
    overlaps: bool
    count: int = 0
    listeners: tuple[Listener, ...] = ()


class PortMap(Value):
    """`free` ports of the range, and the `widest` run of them: a band needs neighbours. `tried` is
    false where nobody could try to bind, so that only listeners are known."""

    host: str
    port_range: tuple[int, int]
    free: int
    widest: int
    tried: bool
    runs: tuple[PortRun, ...] = ()
    windows: tuple[PortWindow, ...] = ()


def bindable(
    port_range: tuple[int, int], facts: HostFacts, instances: Iterable[Instance]
) -> tuple[int, ...]:
    """Ports of the range that are worth a trial: held by nobody, as far as is known."""
    held = set(facts.listening)
    held |= {p for claim in facts.claims for p in claim.ports}
    held |= {p for i in instances for p in i.ports}
    first, last = port_range
    return tuple(p for p in range(first, last + 1) if p not in held)


def port_map(
    host: str,
    port_range: tuple[int, int],
    facts: HostFacts,
    instances: Sequence[Instance],
    listeners: Sequence[Listener],
    unbindable: Collection[int] | None,
) -> PortMap:
    """The map of one host: `instances` are ours there, `listeners` name those that listen."""
    names = {x.port: x for x in listeners}
    listening = facts.listening | set(names)
    first, last = port_range
    held = _held(facts, instances)
    stuck = frozenset(unbindable or ())
    runs: list[PortRun] = []
    for port in range(first, last + 1):
        kind, holder, band = held.get(port) or _unheld(port, listening, names, stuck)
        heard = int(port in listening)
        before = runs[-1] if runs else None
        if before and (before.kind, before.holder, before.band) == (kind, holder, band):
            runs[-1] = before.model_copy(
                update={"last": port, "listening": before.listening + heard}
            )
        else:
            runs.append(PortRun(first=port, last=port, kind=kind, holder=holder, band=band,
                                listening=heard))  # fmt: skip
    free = [r.size for r in runs if r.kind == "free"]
    windows = [_window("engine", w, port_range, listening, names) for w in ENGINE_WINDOWS]
    kernel = _window("ephemeral", facts.ephemeral, port_range, listening, names)
    windows.append(kernel.model_copy(update={"overlaps": facts.outgoing(port_range)}))
    return PortMap(
        host=host, port_range=port_range, free=sum(free), widest=max(free, default=0),
        tried=unbindable is not None, runs=tuple(runs),
        windows=tuple(sorted(windows, key=lambda w: w.first)),
    )  # fmt: skip


def _held(facts: HostFacts, instances: Sequence[Instance]) -> dict[int, tuple[Kind, str, str]]:
    held: dict[int, tuple[Kind, str, str]] = {}
    known = {i.id for i in instances}
    for claim in facts.claims:
        if claim.instance not in known:
            held |= dict.fromkeys(claim.ports, ("claimed", claim.instance, ""))
    for instance in instances:
        for port in instance.ports:
            held[port] = ("ours", instance.id, "")
        for band in instance.bands:
            held |= dict.fromkeys(band.ports, ("ours", instance.id, band.name))
    return held


def _unheld(
    port: int, listening: Collection[int], names: dict[int, Listener], stuck: Collection[int]
) -> tuple[Kind, str, str]:
    if port in listening:
        return "foreign", _who(names.get(port)), ""
    return ("stuck", "", "") if port in stuck else ("free", "", "")


def _who(listener: Listener | None) -> str:
    if listener is None or not listener.pid:
        return ""
    return f"{listener.name} (pid {listener.pid})"


def _window(
    kind: Literal["engine", "ephemeral"],
    window: tuple[int, int],
    port_range: tuple[int, int],
    listening: Collection[int],
    names: dict[int, Listener],
) -> PortWindow:
    first, last = window
    inside = sorted(p for p in listening if first <= p <= last)
    return PortWindow(
        first=first, last=last, kind=kind,
        overlaps=first <= port_range[1] and port_range[0] <= last,
        count=len(inside),
        listeners=tuple(names.get(p) or Listener(port=p) for p in inside[:LISTED]),
    )  # fmt: skip
