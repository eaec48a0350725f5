"""Starting, stopping and replacing instances on their hosts; every step safe to repeat."""

from __future__ import annotations

from backend.adapters.process import ClaimOrder
from backend.domain import acts, adoption
from backend.domain.bands import HTTP
from backend.domain.errors import Conflict, RemoteFailed
from backend.domain.group import Instance, PeerRecord
from backend.domain.instance import MEMBER_ROLES, LaunchSpec
from backend.domain.mode import membership
from backend.domain.peers import may_send, peers_intent, peers_wanted
from backend.domain.recipes import pinned, pinned_mode
from backend.domain.render import Place, program_of, render_router
from backend.domain.telling import Said, plainly, said
from backend.domain.worker_calls import Peer
from backend.reconcile import crash
from backend.reconcile.reserving import release
from backend.reconcile.world import World, instance_dir
from backend.store.store import Intent, Transaction

ORPHAN_GRACE_S = 2.0
"""Seconds an ended engine's orphaned children get before they are killed."""


async def start(w: World, key: str) -> None:
    """Start the instance's present generation; one whose answer was lost is found, not repeated.

    Raises Conflict when an earlier generation still lives or a port is taken, HostError when the
    host cannot be asked.
    """
    instance = w.store.instances[key]
    host = w.store.hosts[instance.host]
    launch, snapshot = instance.launch, instance.snapshot or ()
    if instance.role == "router":
        launch, snapshot = _router_launch(w, instance)
    async with w.store.lock(instance.group), w.store.write() as tx:
        instance = w.store.instances[key].model_copy(update={"launch": launch})
        intent = _start_of(instance)
        if instance.role == "router":
            asked = intent.key
            instance = acts.router_started(instance, asked in w.store.intents, snapshot)
            intent = _start_of(instance)
            if intent.key != asked:
                tx.close_intent(asked)
        tx.open_intent(intent)
        tx.put_instance(instance)
    crash.reached(f"intent:{intent.key}")
    if instance.launch is None:
        raise AssertionError("only a router is stored without its launch")
    if instance.generation > 1:
        await w.runtime.stop(host, key, ORPHAN_GRACE_S)
    status = await w.runtime.start(
        host,
        key,
        instance.generation,
        instance.launch,
        labels(instance),
        row=adoption.keepsake(w.store.groups[instance.group], instance),
    )
    crash.reached(f"effect:{intent.key}")
    w.hosts.told(host.name, status)
    async with w.store.lock(instance.group), w.store.write() as tx:
        tx.close_intent(intent.key)
        fresh = w.store.instances.get(key)
        if fresh is None:  # fenced while its host was being asked: the janitor ends it
            release(tx, instance.group, [{"host": host.name, "instance": key}])
        row = fresh and acts.started(fresh, instance.generation, status, w.clock())
        if row is not None:
            tx.put_instance(row)
            tx.tell(
                "started",
                instance,
                said(
                    "started",
                    instance=key,
                    host=host.name,
                    port=instance.port,
                    pid=status.pid,
                    generation=instance.generation,
                ),
            )
    if fresh is None:
        w.release()


def _start_of(instance: Instance) -> Intent:
    """The intent to start an instance's present generation."""
    key = f"start:{instance.id}:{instance.generation}"
    at = {"id": instance.id, "host": instance.host}
    return Intent(key, "start", instance.group, at)


def because(note: str) -> Said:
    """Why something is as it is, in brackets; nothing where nobody knows."""
    return said("because", why=note) if note else plainly("")


def labels(instance: Instance) -> dict[str, str]:
    """What the host keeps beside the instance, so that a lost store can be rebuilt from it."""
    return {
        "group": instance.group,
        "role": instance.role,
        "revision": instance.revision,
        "generation": str(instance.generation),
    }


def _router_launch(w: World, router: Instance) -> tuple[LaunchSpec, tuple[PeerRecord, ...]]:
    group = w.store.groups[router.group]
    catalogue, formed = pinned(group), group.formed
    host, facts = w.store.hosts[router.host], w.hosts.sight(router.host).facts
    if catalogue is None or formed is None:
        raise Conflict.of("life.not_formed", f"{router.group} is not formed; its router waits.")
    if facts is None:
        raise Conflict.of("host.unknown", f"{router.host} has not been looked at yet.")
    mode = catalogue.mode_of(formed.document.spec)
    if mode is None:
        raise AssertionError("only a disaggregated group has a router")
    records = peers(w, router)
    lacking = [r for r in MEMBER_ROLES if not any(p.role == r for p in records)]
    if lacking:
        raise Conflict.of(
            "life.no_peer",
            f"{router.id} waits: no {' and no '.join(lacking)} member is ready any more.",
            values={"group": group.name, "lacking": lacking},
        )
    program = program_of(mode, catalogue, formed.document, "router")
    place = Place(
        host=host.name,
        address=router.address,
        bands=router.bands,
        instance=router.id,
        executable=host.executables.get(program),
        runtime=host.runtime,
        instance_dir=instance_dir(host, facts, router.id),
    )
    told = tuple(as_peer(r) for r in records)
    return render_router(mode, catalogue, formed.document, place, told), records


def peers(w: World, router: Instance) -> tuple[PeerRecord, ...]:
    """The members the router should know now."""
    return peers_wanted(w.store.of_group(router.group), router)


def as_peer(record: PeerRecord) -> Peer:
    """A stored peer in the form that rendering takes."""
    return Peer(
        instance=record.instance,
        role=record.role,
        address=record.address,
        port=record.port,
        bands=tuple(b for b in record.bands if b.name != HTTP),
        generation=record.generation,
    )


async def respawn(w: World, key: str) -> None:
    """The next generation of an ended instance, from its stored launch.

    One whose directory is gone from its host may live on there without it, and lost its claim: what
    is left of it is ended first, and its place is claimed anew.
    """
    instance = w.store.instances[key]
    if instance.process is not None and instance.process.state == "absent":
        host = w.store.hosts[instance.host]
        await w.runtime.end_strays(host, key, instance.process)
        order = ClaimOrder(key, instance.accelerators, instance.ports)
        await w.runtime.claim(host, [order])
    async with w.store.lock(w.store.instances[key].group), w.store.write() as tx:
        instance = w.store.instances[key]
        row = acts.respawned(instance, w.clock())
        if row is None:
            return
        tx.put_instance(row)
        tx.tell(
            "respawn",
            instance,
            said(
                "respawn",
                instance=key,
                why=because(instance.note),
                generation=instance.generation + 1,
            ),
            level="warning",
        )


async def replace_router(w: World, key: str) -> None:
    """End a static router and let its next generation start with the present peers."""
    instance = w.store.instances[key]
    await _end(w, instance, f"replace:{key}:{instance.generation}")
    async with w.store.lock(instance.group), w.store.write() as tx:
        fresh = w.store.instances.get(key)
        tx.close_intent(f"replace:{key}:{instance.generation}")
        row = fresh and acts.replaced(fresh, instance.generation, w.clock())
        if row is None:
            return
        group = w.store.groups[instance.group]
        tx.put_group(group.model_copy(update={"endpoint": None}))
        tx.put_instance(row)
        tx.tell(
            "replaced",
            instance,
            said("replaced", instance=key),
        )


async def kill(w: World, key: str) -> None:
    """End a wedged start with SIGKILL, orphans included; it then counts as one that ended.

    Raises RemoteFailed while something of it still lives, HostError when the host cannot be asked.
    """
    instance = w.store.instances[key]
    waited = w.clock() - instance.since
    async with w.store.lock(instance.group), w.store.write() as tx:
        way = "wedged.start" if instance.state == "starting" else "wedged.later"
        tx.tell(
            "wedged",
            instance,
            said(way, instance=key, seconds=f"{waited:.0f}"),
            level="error",
        )
    host = w.store.hosts[instance.host]
    result = await w.runtime.stop(host, key, 0.0)
    if not result.gone:
        raise _still_alive(instance, result.survivors)
    w.hosts.hint(host.name)


async def drain(w: World, key: str) -> None:
    """Take an instance out of service; it is stopped once it holds no request any more."""
    async with w.store.lock(w.store.instances[key].group), w.store.write() as tx:
        instance = w.store.instances[key]
        row = acts.draining(instance, w.clock())
        if row is None:
            return
        tx.put_instance(row)
        tx.tell(
            "draining",
            instance,
            said("draining", instance=key),
        )


async def stop(w: World, key: str) -> None:
    """End the instance, confirm that its processes are gone and its ports free, and forget it.

    Raises RemoteFailed while something of it still lives, HostError when the host cannot be asked.
    """
    instance = w.store.instances[key]
    host = w.store.hosts[instance.host]
    intent = f"stop:{key}"
    async with w.store.lock(instance.group), w.store.write() as tx:
        fresh = w.store.instances[key]
        tx.put_instance(acts.stopping(fresh, w.clock()))
    await _end(w, instance, intent)
    await w.runtime.remove(host, key)
    crash.reached(f"removed:{intent}")
    async with w.store.lock(instance.group), w.store.write() as tx:
        tx.close_intent(intent)
        close_told(w, tx, key)
        tx.drop_instance(instance)
        router = next((i for i in w.store.of_group(instance.group) if i.role == "router"), None)
        if router is not None:
            row = acts.bereaved(router, instance, may_still_send(w, router, instance))
            if row is not None:
                tx.put_instance(row)
        tx.tell(
            "gone",
            instance,
            said("gone", instance=key, host=host.name),
        )
    w.hosts.forget(host.name, key)


def close_told(w: World, tx: Transaction, router: str) -> None:
    """Close what a router's generations left open that ended while they were told of peers."""
    for intent in w.store.intents.values():
        if intent.kind == "peers" and intent.body["id"] == router:
            tx.close_intent(intent.key)


def may_still_send(w: World, router: Instance, gone: Instance) -> bool:
    """Whether the router may send requests to a member that ends now."""
    group = w.store.groups[gone.group]
    kind = membership(pinned_mode(group), group.formed.document.spec) if group.formed else "none"
    told = peers_intent(router) in w.store.intents
    return may_send(router, gone, kind, w.registry.registry(group.name), told)


async def _end(w: World, instance: Instance, key: str) -> None:
    host = w.store.hosts[instance.host]
    async with w.store.write() as tx:
        tx.open_intent(Intent(key, key.partition(":")[0], instance.group, {"id": instance.id}))
    crash.reached(f"intent:{key}")
    grace = instance.launch.stop_grace_s if instance.launch else ORPHAN_GRACE_S
    result = await w.runtime.stop(host, instance.id, grace)
    if not result.gone:
        raise _still_alive(instance, result.survivors)
    busy = await w.runtime.ports_free(host, instance.ports)
    if busy and instance.process is not None:  # its directory may be gone, and it not
        await w.runtime.end_strays(host, instance.id, instance.process)
        busy = await w.runtime.ports_free(host, instance.ports)
    if busy:
        raise RemoteFailed.of(
            "life.port_held",
            f"{instance.id} has ended, but its ports {', '.join(map(str, busy))} are still open "
            f"on {host.name}.",
            values={"host": host.name, "ports": list(busy)},
            remedy="Another program took them, or a child escaped: end what listens there.",
        )
    crash.reached(f"effect:{key}")


def _still_alive(instance: Instance, survivors: int) -> RemoteFailed:
    return RemoteFailed.of(
        "life.still_alive",
        f"{survivors} processes of {instance.id} still live on {instance.host}.",
        values={"host": instance.host, "instance": instance.id, "survivors": survivors},
        remedy="Look at them on the host: a process in uninterruptible sleep needs a reboot.",
    )
