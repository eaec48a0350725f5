"""Placing: members of a group all at once, more members of a running one, and its router."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

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
from backend.domain.telling import said, several
from backend.reconcile.making import connector_of, member, told_of
from backend.reconcile.preflight import hosts_ready, router_ready
from backend.reconcile.reserving import insert, reserved
from backend.reconcile.world import World, group_type, need_of
from backend.store.store import Transaction


async def form(w: World, name: str) -> None:
    """Place every member of both roles at once and insert them in one transaction, or nothing.

    Raises Refused (`placement.*`, `host.*`, `doctor.*`, `render.*`) or Conflict (a claim that
    another owner was quicker with); nothing is left on any host then.
    """
    group = w.store.groups[name]
    document = group.document
    catalogue = w.catalogue().pin(document.spec)
    mode = catalogue.mode_of(document.spec)
    vendor = mode.vendor if mode else None
    counts = wanted_counts(group)
    services = attached(document, w.store.caches)
    needs = [
        w.within_reach(need_of(mode, catalogue, document, r, counts[r]), document, services)
        for r in roles_of(group)
    ]
    async with reserved(w, name, lambda rooms: place(rooms, needs, vendor=vendor)) as seats:
        chosen = await connector_of(w, group, catalogue, document, list(seats.values()))
        members = [
            member(w, catalogue, document, key, seat, group, group.revision, chosen, services)
            for key, seat in seats.items()
        ]
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
            places = several([said("formed.place", role=m.role, host=m.host) for m in members])
            line = said("formed", name=name, places=places, why=told_of(mode, chosen))
            tx.event("formed", line, group=name)
            return True

        check = partial(hosts_ready, w, mode, document, members)
        await insert(w, f"form:{name}:{group.version}", name, members, confirm, check)


async def add(w: World, name: str, role: str, count: int) -> None:
    """Place `count` more members of `role`, launched from what the group was formed with."""
    group = w.store.groups[name]
    catalogue, formed = pinned(group), group.formed
    if catalogue is None or formed is None:
        return
    mode = catalogue.mode_of(formed.document.spec)
    vendor, kind = mode.vendor if mode else None, group_type(w, group)
    # the role's own count and place may have been edited since: they are no part of a revision
    document = _with_places(formed.document, group.document)
    need = need_of(mode, catalogue, document, role, count)
    need = replace(need, pins=_unused_pins(w, name, need))
    need = w.within_reach(need, formed.document, formed.services)
    async with reserved(
        w, name, lambda rooms: place_most(rooms, need, vendor=vendor, only_type=kind)
    ) as seats:
        members = [
            member(
                w, catalogue, formed.document, key, seat, group, formed.revision,
                group.connector, formed.services,
            )
            for key, seat in seats.items()
        ]  # fmt: skip

        def confirm(tx: Transaction, fresh: Group | None) -> bool:
            row = acts.joined(fresh, formed.revision)
            if row is None:
                return False
            tx.put_group(row)
            for m in members:
                tx.tell("added", m, said("added", instance=m.id, host=m.host))
            return True

        there = sum(1 for i in w.store.of_group(name) if i.role == role)
        check = partial(hosts_ready, w, mode, formed.document, members)
        await insert(w, f"add:{name}:{role}:{there}", name, members, confirm, check)


async def create_router(w: World, name: str) -> None:
    """Place the group's router, where it was before if that place is free."""
    group = w.store.groups[name]
    catalogue, formed = pinned(group), group.formed
    if catalogue is None or formed is None:
        return
    mode = catalogue.mode_of(formed.document.spec)
    need = _router_need(group, mode, catalogue, formed.document)
    if group.router_home is not None:  # its own port may have been open at the last look
        await w.hosts.look_at([group.router_home[0]])
    async with reserved(w, name, lambda rooms: place(rooms, [need]), router_of=name) as seats:
        ((key, seat),) = seats.items()
        router = Instance(
            id=key,
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
                    said(
                        "endpoint_moved",
                        name=name,
                        before=f"{was}:{bands[0].base}",
                        after=f"{seat.host}:{router.port}",
                    ),
                    group=name,
                    instance=router.id,
                    level="warning",
                )
            place_ = said("added.router", instance=router.id, host=seat.host, port=router.port)
            tx.tell("added", router, place_)
            return True

        check = partial(router_ready, w, mode, catalogue, formed.document, seat.host)
        await insert(w, f"router:{name}:{formed.revision[:12]}", name, [router], confirm, check)


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
