"""Placing: members of a group all at once, more members of a running one, and its router."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from backend.adapters.process import ClaimOrder
from backend.domain import acts
from backend.domain.bands import HTTP
from backend.domain.caches import attached
from backend.domain.decide import roles_of, wanted_counts
from backend.domain.deployment import Deployment
from backend.domain.group import Formed, Group, Instance
from backend.domain.instance import Band
from backend.domain.mode import Catalogue, Mode
from backend.domain.placement import Need, place, place_most
from backend.domain.recipes import pinned
from backend.reconcile import crash
from backend.reconcile.making import connector_of, member, new_id, told_of
from backend.reconcile.preflight import hosts_ready, router_ready
from backend.reconcile.world import World, group_type, need_of
from backend.store.store import Intent, Transaction

Confirm = Callable[[Transaction, Group | None], bool]

FRESH_S = 2.0
"""A look at a host younger than this is not repeated for the next group in line."""


async def form(w: World, name: str) -> None:
    """Place every member of both roles at once and insert them in one transaction, or nothing.

    Raises Refused (`placement.*`, `host.*`, `doctor.*`, `render.*`) or Conflict (a claim that
    another owner was quicker with); nothing is left on any host then.
    """
    async with w.placing:
        group = w.store.groups[name]
        document = group.document
        catalogue = w.catalogue().pin(document.spec)
        mode = catalogue.mode_of(document.spec)
        counts = wanted_counts(group)
        services = attached(document, w.store.caches)
        needs = [
            w.within_reach(need_of(mode, catalogue, document, r, counts[r]), document, services)
            for r in roles_of(group)
        ]
        await w.hosts.look_at(w.store.hosts, max_age_s=FRESH_S)
        seats = place(w.rooms(), needs, vendor=mode.vendor if mode else None)
        chosen = await connector_of(w, group, catalogue, document, seats)
        members = [
            member(w, group, catalogue, document, seat, group.revision, chosen, services)
            for seat in seats
        ]
        await hosts_ready(w, mode, document, members)
        formed = Formed(
            revision=group.revision,
            document=document,
            recipe=catalogue.model_dump(mode="json"),
            services=services,
        )

        def confirm(tx: Transaction, fresh: Group | None) -> bool:
            row = acts.formed(fresh, formed, chosen)
            if row is None:
                return False
            tx.put_group(row)
            places = ", ".join(f"{m.role} on {m.host}" for m in members)
            tx.event("formed", f"{name} forms: {places}{told_of(mode, chosen)}", group=name)
            return True

        await _insert(w, f"form:{name}:{group.version}", name, members, confirm)


async def add(w: World, name: str, role: str, count: int) -> None:
    """Place `count` more members of `role`, launched from what the group was formed with."""
    async with w.placing:
        group = w.store.groups[name]
        catalogue, formed = pinned(group), group.formed
        if catalogue is None or formed is None:
            return
        mode = catalogue.mode_of(formed.document.spec)
        # the role's own count and place may have been edited since: they are no part of a revision
        document = _with_places(formed.document, group.document)
        need = need_of(mode, catalogue, document, role, count)
        need = replace(need, pins=_unused_pins(w, name, need))
        need = w.within_reach(need, formed.document, formed.services)
        await w.hosts.look_at(w.store.hosts, max_age_s=FRESH_S)
        kind = group_type(w, group)
        seats = place_most(w.rooms(), need, vendor=mode.vendor if mode else None, only_type=kind)
        members = [
            member(
                w,
                group,
                catalogue,
                formed.document,
                seat,
                formed.revision,
                group.connector,
                formed.services,
            )
            for seat in seats
        ]
        await hosts_ready(w, mode, formed.document, members)

        def confirm(tx: Transaction, fresh: Group | None) -> bool:
            row = acts.joined(fresh, formed.revision)
            if row is None:
                return False
            tx.put_group(row)
            for m in members:
                tx.event(
                    "added", f"{m.id} is placed on {m.host}", group=name, instance=m.id, host=m.host
                )
            return True

        there = sum(1 for i in w.store.of_group(name) if i.role == role)
        await _insert(w, f"add:{name}:{role}:{there}", name, members, confirm)


async def create_router(w: World, name: str) -> None:
    """Place the group's router, where it was before if that place is free."""
    async with w.placing:
        group = w.store.groups[name]
        catalogue, formed = pinned(group), group.formed
        if catalogue is None or formed is None:
            return
        mode = catalogue.mode_of(formed.document.spec)
        need = _router_need(group, mode, catalogue, formed.document)
        await w.hosts.look_at(w.store.hosts, max_age_s=FRESH_S)
        if group.router_home is not None:  # its own port may have been open at the last look
            await w.hosts.look_at([group.router_home[0]])
        (seat,) = place(w.rooms(router_of=name), [need])
        await router_ready(w, mode, catalogue, formed.document, seat.host)
        router = Instance(
            id=new_id(name, "router", w.store.instances),
            group=name,
            role="router",
            host=seat.host,
            revision=formed.revision,
            address=seat.address,
            bands=seat.bands,
            since=w.clock(),
        )

        def confirm(tx: Transaction, fresh: Group | None) -> bool:
            row = acts.joined(fresh, formed.revision)
            if row is None:
                return False
            tx.put_group(row.model_copy(update={"router_home": (seat.host, seat.bands)}))
            if group.router_home is not None and group.router_home != (seat.host, seat.bands):
                was, bands = group.router_home
                tx.event(
                    "endpoint_moved",
                    f"the endpoint of {name} moves from {was}:{bands[0].base} to "
                    f"{seat.host}:{router.port}: its old place is taken or cannot be seen",
                    group=name,
                    instance=router.id,
                    level="warning",
                )
            tx.event(
                "added",
                f"{router.id} is placed on {seat.host}:{router.port}",
                group=name,
                instance=router.id,
                host=seat.host,
            )
            return True

        await _insert(w, f"router:{name}:{formed.revision[:12]}", name, [router], confirm)


def _router_need(
    group: Group, mode: Mode | None, catalogue: Catalogue, document: Deployment
) -> Need:
    need = need_of(mode, catalogue, document, "router", 1)
    host, bands = group.router_home or ("", ())
    roles = document.spec.roles
    if roles is not None and roles.router.port is not None:
        pinned_http = Band(name=HTTP, base=roles.router.port)
        bands = (pinned_http, *(b for b in bands if b.name != HTTP))
        need = replace(need, fixed_port=roles.router.port)
    return replace(need, wished_host=host, wished=tuple(bands))


def _with_places(formed: Deployment, saved: Deployment) -> Deployment:
    """The formed document with the saved selectors, which decide only where the next goes."""
    if formed.spec.roles is None or saved.spec.roles is None:
        return formed
    roles = formed.spec.roles
    update = {}
    for role in ("prefill", "decode", "router"):
        own = getattr(saved.spec.roles, role)
        update[role] = getattr(roles, role).model_copy(
            update={"hosts": own.hosts, "placement": own.placement}
        )
    spec = formed.spec.model_copy(
        update={
            "roles": roles.model_copy(update=update),
            "hosts": saved.spec.hosts,
            "placement": saved.spec.placement,
        }
    )
    return formed.model_copy(update={"spec": spec})


def _unused_pins(w: World, name: str, need: Need) -> tuple:  # type: ignore[type-arg]
    used = [(i.host, tuple(i.accelerators)) for i in w.store.of_group(name) if i.role == need.role]
    free = []
    for pin in need.pins:
        at = next(
            (
                u
                for u in used
                if u[0] == pin.host
                and (pin.accelerators is None or tuple(pin.accelerators) == u[1])
            ),
            None,
        )
        if at is None:
            free.append(pin)
        else:
            used.remove(at)
    return tuple(free)


async def _insert(
    w: World,
    key: str,
    group: str,
    members: Sequence[Instance],
    confirm: Confirm,
) -> None:
    """Claim every place on its host, then insert the rows; on any failure let all claims go.

    `confirm` writes what else the rows change, and says whether the group still wants them.
    """
    wanted = [{"host": m.host, "instance": m.id} for m in members]
    intent = Intent(key, "place", group, {"places": wanted})
    async with w.store.write() as tx:
        tx.open_intent(intent)
    crash.reached(f"intent:{key}")
    try:
        await _claim(w, members)
        crash.reached(f"effect:{key}")
        kept = await _settle(w, key, group, members, wanted, confirm)
    except BaseException:  # also when the group's loop is ended meanwhile
        if key in w.store.intents:
            async with w.store.write() as tx:
                tx.close_intent(key)
                _release(tx, group, wanted)
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
                _release(tx, group, wanted)
    return kept


def _release(tx: Transaction, group: str, places: Sequence[dict[str, str]]) -> None:
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
            _release(tx, intent.group, lost)
    for intent in [i for i in w.store.intents.values() if i.kind == "start"]:
        instance = w.store.instances.get(intent.body["id"])
        if instance is not None and instance.state == "pending":
            continue  # asked for again under the same key
        async with w.store.write() as tx:
            tx.close_intent(intent.key)
            if instance is None and "host" in intent.body:
                at = {"host": intent.body["host"], "instance": intent.body["id"]}
                _release(tx, intent.group, [at])
