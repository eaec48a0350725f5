"""A dynamic router's registry made right, and the endpoint registered by a real request."""

from __future__ import annotations

import asyncio

import httpx

from backend.adapters.keys import Keys
from backend.domain import acts
from backend.domain.canary import served_by
from backend.domain.errors import Conflict, RemoteFailed
from backend.domain.group import Instance, PeerRecord
from backend.domain.host import Host
from backend.domain.mode import Mode
from backend.domain.peers import peers_intent, registry_agrees
from backend.domain.recipes import pinned_mode
from backend.domain.telling import said
from backend.domain.worker_calls import HttpCall, add_call, remove_call, served_name
from backend.reconcile import crash
from backend.reconcile.living import as_peer, close_told, peers
from backend.reconcile.world import World
from backend.store.store import Intent

FIRST_REQUEST_TIMEOUT_S = 60.0
"""A cold engine may compile kernels on its first request."""


async def sync_peers(w: World, key: str) -> None:
    """Add what is missing, then remove what is too much, then read back until it agrees.

    Raises Conflict naming what is still missing when the router does not settle in time.
    """
    router = w.store.instances[key]
    group = w.store.groups[router.group]
    mode, host = pinned_mode(group), w.store.hosts[router.host]
    if mode is None or mode.router.api is None or group.formed is None:
        return
    intent = peers_intent(router)
    async with w.store.write() as tx:
        close_told(w, tx, key)
        tx.open_intent(Intent(intent, "peers", group.name, {"id": key}))
    wanted = {r.url: r for r in peers(w, router)}
    rows = {r.url: r for r in w.registry.rows(group.name)}
    wrong = [r for r in rows.values() if r.url not in wanted or wanted[r.url].role != r.role]
    missing = [r for u, r in wanted.items() if u not in rows or rows[u] in wrong]
    retyped = [r for r in wrong if r.url in wanted]
    crash.reached(f"intent:{intent}:{'+'.join(sorted(wanted))}")
    for row in retyped:
        await _call(w, host, router, remove_call(mode, row))
    for record in missing:
        await _call(w, host, router, add_call(mode, group.formed.document, as_peer(record)))
    for row in wrong:
        if row not in retyped:
            await _call(w, host, router, remove_call(mode, row))
    crash.reached(f"effect:{intent}:{'+'.join(sorted(wanted))}")
    agreed = await _settle(w, router, mode, set(wanted.values()))
    async with w.store.write() as tx:
        tx.close_intent(intent)
        fresh = w.store.instances.get(key)
        if agreed and fresh is not None and fresh.haunted:
            # not those of members that ended meanwhile: they may have been told of in this round
            left = tuple(at for at in fresh.haunted if at not in router.haunted)
            tx.put_instance(fresh.model_copy(update={"haunted": left}))
        if missing or wrong:
            came = [f"+{r.instance}" for r in missing]
            went = [f"-{r.url}" for r in wrong if r not in retyped]
            tx.tell(
                "peers",
                router,
                said("peers", changes=" ".join(came + went)),
            )


async def _call(w: World, host: Host, router: Instance, call: HttpCall) -> None:
    try:
        answer = await w.registry.call(host, router, call)
    except httpx.HTTPError as error:
        raise RemoteFailed.of(
            "router.call",
            f"{router.id} did not answer {call.method} {call.path}: "
            f"{error or type(error).__name__}",
            values={"host": host.name, "router": router.id},
            remedy="It is asked again; look at the router's log if this stays.",
        ) from error
    if answer.status_code not in (*call.accepted, *call.gone):
        raise Conflict.of(
            "router.call",
            f"{router.id} answered {call.method} {call.path} with {answer.status_code}: "
            f"{answer.text[:200]}",
            values={"status": answer.status_code, "router": router.id},
            remedy="The router may be of another version than the mode expects.",
        )


async def _settle(w: World, router: Instance, mode: Mode, told: set[PeerRecord]) -> bool:
    """Read the registry back until it lists exactly the members it was told.

    False when others are wanted meanwhile: this round is over, the next one tells it of those.
    """
    api = mode.router.api
    patience = api.settle_s if api is not None and api.asynchronous else 1.0
    for _ in range(max(int(patience / 0.25), 1)):
        await w.registry.read(router.group)
        found = w.registry.registry(router.group)
        wanted = peers(w, router)
        if set(wanted) != told:
            return False
        if registry_agrees(found, router, wanted):
            return True
        await asyncio.sleep(0.25)
    listed = dict(found.peers or {})
    missing = [r.instance for r in wanted if listed.get(r.url) != r.role]
    extra = [u for u in listed if u not in {r.url for r in wanted}]
    raise Conflict.of(
        "router.registry",
        f"the router's registry is not what it should be: missing {missing or 'none'}, "
        f"too much {extra or 'none'}.",
        values={"missing": missing, "extra": extra},
        remedy="It is corrected again shortly; look at the router's log if this stays.",
    )


async def register(w: World, key: str) -> None:
    """Send one real request through the router; when it is answered, the endpoint stands.

    Raises RemoteFailed with the router's own words when it is not.
    """
    router = w.store.instances[key]
    group = w.store.groups[router.group]
    mode, host = pinned_mode(group), w.store.hosts[router.host]
    if group.formed is None or mode is None:
        return
    pair = ""
    if mode.injects:
        pair = await _ask(w, router, host, served_name(group.formed.document))
    crash.reached(f"effect:register:{key}:{router.generation}")
    async with w.store.lock(group.name), w.store.write() as tx:
        fresh = w.store.groups.get(group.name)
        still = w.store.instances.get(key)
        if fresh is None or still is None:
            return
        row = acts.registered(fresh, still, router.generation)
        if row is None:
            return
        tx.put_group(row)
        tx.put_instance(still.model_copy(update={"note": ""}))
        way, url = "registered.pair" if pair else "registered", f"{router.url}/v1"
        tx.tell("registered", router, said(way, name=group.name, url=url, pair=pair))


async def _ask(w: World, router: Instance, host: Host, model: str) -> str:
    """One short completion. Returns what the answer says of who served it."""
    body = {"model": model, "prompt": "Is prefill handing over to decode?", "max_tokens": 2}
    try:
        answer = await w.http.request(
            host,
            "POST",
            f"{router.url}/v1/completions",
            json=body,
            headers=await Keys().headers((router, *w.store.of_group(router.group))),
            timeout=FIRST_REQUEST_TIMEOUT_S,
        )
    except httpx.HTTPError as error:
        raise _unanswered(router, str(error) or type(error).__name__) from error
    if answer.status_code != httpx.codes.OK:
        raise _unanswered(router, f"HTTP {answer.status_code}: {answer.text[:300]}")
    try:
        data = answer.json()
        return served_by(str(data["id"])) if data["choices"] else ""
    except (ValueError, KeyError, TypeError) as error:
        raise _unanswered(router, f"not a completion: {answer.text[:200]}") from error


def _unanswered(router: Instance, why: str) -> RemoteFailed:
    return RemoteFailed.of(
        "router.first_request",
        f"a request through {router.id} was not answered: {why}",
        values={"router": router.id, "url": router.url},
        remedy="It is tried again; look at the members' logs if this stays.",
    )
