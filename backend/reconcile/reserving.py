"""Places held for instances that are about to be: chosen without a pause, then claimed on hosts.

Choosing takes no lock and asks no host, and what was chosen is counted as taken at once. So groups
are placed side by side, and a host that hangs holds up only those that are to run on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from backend.adapters.process import ClaimOrder
from backend.domain.errors import Conflict, Refused
from backend.domain.group import Group, Instance
from backend.domain.placement import Room, Seat, misfits
from backend.reconcile import crash
from backend.reconcile.making import new_id
from backend.reconcile.world import World
from backend.store.store import Intent, Transaction

Choose = Callable[[Sequence[Room]], Sequence[Seat]]
Confirm = Callable[[Transaction, Group | None], bool]

FRESH_S = 2.0
"""A look at a host younger than this is not repeated."""
FIRST_LOOK_S = 3.0
"""Seconds that hosts nobody has seen yet are waited for, before those that were seen must do."""
CHOICES = 5
"""Times that a choice is made anew because a host was not as it was last seen."""


@asynccontextmanager
async def reserved(
    w: World, group: str, choose: Choose, router_of: str = ""
) -> AsyncIterator[dict[str, Seat]]:
    """Seats by the names of the instances that are to have them, held while the block runs.

    `choose` is asked over what is known of the hosts; those it chose are looked at before the block
    begins, and all hosts before it may refuse. Raises what it raises; Conflict when the hosts keep
    changing.
    """
    held = await _agreed(w, group, choose, router_of)
    try:
        yield held
    finally:
        _let_go(w, held)


async def _agreed(w: World, group: str, choose: Choose, router_of: str) -> dict[str, Seat]:
    await _seen_once(w)
    asked_all, changed = False, ""
    for _ in range(CHOICES):
        try:
            seats = choose(w.rooms(router_of))
        except Refused:
            if asked_all:
                raise
            asked_all = True
            await w.hosts.look_at(w.store.hosts, max_age_s=FRESH_S)
            continue
        held = _hold(w, group, seats)
        try:
            await w.hosts.look_at({s.host for s in seats}, max_age_s=FRESH_S)
        except BaseException:
            _let_go(w, held)
            raise
        changed = misfits(w.rooms(router_of, without=frozenset(held)), seats)
        if not changed:
            return held
        _let_go(w, held)
    raise Conflict.of(
        "placement.changing",
        f"the hosts change faster than {group} is placed: {changed or 'none was as last seen'}.",
        values={"name": group},
        remedy="It is tried again shortly.",
    )


async def _seen_once(w: World) -> None:
    """Wait, for a while, for the first look at hosts that were never seen."""
    new = [h for h in w.store.hosts if w.hosts.sight(h).state == "unknown"]
    try:
        async with asyncio.timeout(FIRST_LOOK_S):
            await w.hosts.look_at(new, max_age_s=FIRST_LOOK_S)
    except TimeoutError:
        return  # they may still answer when the others have no room


def _hold(w: World, group: str, seats: Sequence[Seat]) -> dict[str, Seat]:
    held: dict[str, Seat] = {}
    for seat in seats:
        key = new_id(group, seat.role, {*w.store.instances, *w.reserved})
        held[key] = w.reserved[key] = seat
    return held


def _let_go(w: World, held: dict[str, Seat]) -> None:
    for key in held:
        w.reserved.pop(key, None)


async def insert(
    w: World,
    key: str,
    group: str,
    members: Sequence[Instance],
    confirm: Confirm,
    check: Callable[[], Awaitable[None]],
) -> None:
    """Claim every place on its host while `check` looks at what else is asked of it, then insert
    the rows; on any failure let all claims go.

    `confirm` writes what else the rows change, and says whether the group still wants them.
    """
    wanted = [{"host": m.host, "instance": m.id} for m in members]
    intent = Intent(key, "place", group, {"places": wanted})
    async with w.store.write() as tx:
        tx.open_intent(intent)
    crash.reached(f"intent:{key}")
    try:
        for failure in await asyncio.gather(check(), _claim(w, members), return_exceptions=True):
            if failure is not None:
                raise failure
        crash.reached(f"effect:{key}")
        kept = await _settle(w, key, group, members, wanted, confirm)
    except BaseException:  # also when the group's loop is ended meanwhile
        if key in w.store.intents:
            async with w.store.write() as tx:
                tx.close_intent(key)
                release(tx, group, wanted)
            w.release()
        raise
    if not kept:
        w.release()


async def _settle(
    w: World,
    key: str,
    group: str,
    members: Sequence[Instance],
    wanted: Sequence[dict[str, str]],
    confirm: Confirm,
) -> bool:
    """Insert the rows if the group still wants them, else let the claims go."""
    async with w.store.lock(group):
        fresh = w.store.groups.get(group)
        async with w.store.write() as tx:
            tx.close_intent(key)
            kept = confirm(tx, fresh)
            if kept:
                for member in members:
                    tx.put_instance(member)
            else:
                release(tx, group, wanted)
    return kept


def release(tx: Transaction, group: str, places: Iterable[Mapping[str, Any]]) -> None:
    """Have the janitor end what is left at these places (`host`, `instance`) and let their claims
    go; the caller wakes it when this is stored."""
    for at in places:
        tx.open_intent(Intent(f"release:{at['instance']}", "release", group, dict(at)))


async def _claim(w: World, members: Sequence[Instance]) -> None:
    by_host: dict[str, list[ClaimOrder]] = {}
    for m in members:
        order = ClaimOrder(instance=m.id, accelerators=m.accelerators, ports=m.ports)
        by_host.setdefault(m.host, []).append(order)
    results = await asyncio.gather(
        *(w.runtime.claim(w.store.hosts[h], orders) for h, orders in by_host.items()),
        return_exceptions=True,
    )
    for result in results:
        if isinstance(result, BaseException):
            raise result


async def recover(w: World) -> None:
    """After a start: what was being placed when we died is let go; it is placed anew if wanted.

    So is what was being started and was fenced meanwhile: it may have come to life since.
    """
    for intent in [i for i in w.store.intents.values() if i.kind == "place"]:
        lost = [p for p in intent.body["places"] if p["instance"] not in w.store.instances]
        async with w.store.write() as tx:
            tx.close_intent(intent.key)
            release(tx, intent.group, lost)
    for intent in [i for i in w.store.intents.values() if i.kind == "start"]:
        instance = w.store.instances.get(intent.body["id"])
        if instance is not None and instance.state == "pending":
            continue  # asked for again under the same key
        async with w.store.write() as tx:
            tx.close_intent(intent.key)
            if instance is None and "host" in intent.body:
                at = {"host": intent.body["host"], "instance": intent.body["id"]}
                release(tx, intent.group, [at])
