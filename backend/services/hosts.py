"""What a person asks of the inventory: add, import, look, accept a key, unlock, remove."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from pydantic import ValidationError

from backend.adapters.ports import sitters
from backend.adapters.ssh.importing import aliases, entry_name
from backend.adapters.ssh.pool import SshPool
from backend.domain.doctor import Finding, Needs
from backend.domain.documents import explain
from backend.domain.errors import Conflict, NotFound
from backend.domain.host import Host
from backend.domain.portmap import PortMap, bindable, port_map
from backend.domain.precondition import WHATEVER, Expect, etag
from backend.domain.telling import said
from backend.domain.views import HostView, SshAlias
from backend.reconcile.preflight import needs_of
from backend.reconcile.reconciler import Reconciler
from backend.services.fencing import fence
from backend.services.pictures import Pictures


class Hosts:
    """Use cases on hosts."""

    def __init__(self, reconciler: Reconciler, pictures: Pictures, pool: SshPool) -> None:
        self._world = reconciler.world
        self._store = reconciler.world.store
        self._watch = reconciler.world.hosts
        self._pictures, self._pool = pictures, pool

    async def put(self, data: dict[str, object], actor: str, expect: Expect = WHATEVER) -> HostView:
        """Add or replace an entry and look at it. Never raises for what the host does, but Invalid,
        Conflict while instances of ours are at its place, and what `Expect.meets` raises."""
        try:
            host = Host.model_validate(data)
        except ValidationError as error:
            raise explain(error, Host) from None
        async with self._store.lock(f"host:{host.name}"):
            old = self._store.hosts.get(host.name)
            expect.meets(f"host {host.name}", etag(old) if old else None)
            if old is not None and _place(old) != _place(host):
                self._refuse_in_use(host.name, "leads to another machine or folder")
            if old != host:
                async with self._store.write() as tx:
                    tx.put_host(host)
                    verb = "changed" if old else "added"
                    where = f"{host.address}:{host.port}"
                    line = said(f"host.{verb}", host=host.name, address=where)
                    tx.event(f"host_{verb}", line, host=host.name, actor=actor)
                if old is not None:
                    self._pool.forget(host.name)
        return await self.look(host.name)

    def entry(self, name: str) -> Host:
        """The entry as it was written. Raises NotFound."""
        self._pictures.host(name)
        return self._store.hosts[name]

    async def aliases(self, patterns: Sequence[str] = ()) -> list[SshAlias]:
        """Hosts that the backend's user's ssh configuration names, each under a free entry name."""
        found = await asyncio.to_thread(aliases, None, patterns)
        known = {h.address: h.name for h in self._store.hosts.values()}
        taken = set(self._store.hosts)
        rows = []
        for alias in found:
            there = known.get(alias.alias, "")
            name = there or entry_name(alias.alias, taken)
            taken.add(name)
            rows.append(alias.model_copy(update={"name": name, "entry": there}))
        return rows

    async def unlock(self, file: str, passphrase: str) -> str:
        """Unlock an identity file for as long as this backend lives; its key's fingerprint.

        Raises NotFound, Invalid, HostDenied when the passphrase is wrong. Hosts that waited for the
        key are looked at again.
        """
        fingerprint = await self._pool.unlock(file, passphrase)
        for name in self._store.hosts:
            if self._watch.sight(name).state == "denied":
                self._watch.hint(name)
        return fingerprint

    async def doctor(
        self, names: Sequence[str] = (), deployment: str | None = None
    ) -> tuple[Finding, ...]:
        """Every finding about the hosts (all of them when none is named).

        With a deployment, also whether they have what it needs: programs, model, KV interface.
        Raises NotFound for a host or deployment that is not there.
        """
        for name in names:
            self._pictures.host(name)
        chosen = list(names) or sorted(self._store.hosts)
        needs: dict[str, Needs] = {}
        if deployment is not None:
            group = self._store.groups.get(deployment)
            if group is None:
                raise NotFound.of("group.absent", f"there is no deployment {deployment}.",
                                  values={"name": deployment})  # fmt: skip
            needs = needs_of(self._world, group.document)
            if not names:
                chosen = sorted(needs)
        assert self._world.doctor is not None
        return await self._world.doctor.examine(chosen, needs)

    async def ports(self, name: str) -> PortMap:
        """The host's ports as they are now. Raises NotFound, and what the host met."""
        await self.test(name)
        host, facts = self._store.hosts[name], self._watch.sight(name).facts
        assert facts is not None
        span = host.service_port_range or self._world.defaults.port_range
        ours = tuple(self._store.on_host(name))
        listeners, stuck = await sitters(self._pool, host, bindable(span, facts, ours))
        return port_map(name, span, facts, ours, listeners, stuck)

    async def look(self, name: str) -> HostView:
        """Look at the host now. Raises NotFound."""
        self._pictures.host(name)
        await self._watch.look(name, anew=True)
        self._watch.hint(name)
        return self._pictures.host(name)

    async def test(self, name: str) -> HostView:
        """Look at the host now. Raises NotFound, and the HostError that the look met."""
        view = await self.look(name)
        error = self._watch.sight(name).error
        if error is not None:
            raise error
        return view

    async def accept_key(
        self, name: str, fingerprint: str, actor: str, expect: Expect = WHATEVER
    ) -> HostView:
        """Accept the key that the host shows, if it is the one a person was shown."""
        expect.meets(f"host {name}", self._pictures.host(name).etag)
        await self._pool.accept_key(self._store.hosts[name], fingerprint)
        async with self._store.write() as tx:
            line = said("host.key", host=name, fingerprint=fingerprint)
            tx.event("host_key", line, host=name, actor=actor)
        return await self.look(name)

    async def fence(self, name: str, actor: str, expect: Expect = WHATEVER) -> HostView:
        """Give up all that is on a host that does not answer: it is placed elsewhere, and what
        still lives there is killed the moment the host is back.

        Raises Conflict while the host answers, NotFound, Changed.
        """
        expect.meets(f"host {name}", self._pictures.host(name).etag)
        if (await self._watch.look(name)).up:
            raise Conflict.of(
                "host.answers",
                f"host {name} answers: what is there can be ended in good order.",
                values={"host": name},
                remedy="Delete, pause or scale what runs there instead.",
            )
        for group in sorted({i.group for i in self._store.on_host(name)}):
            async with self._store.lock(group), self._store.write() as tx:
                mine = [i for i in self._store.of_group(group) if i.host == name]
                fence(self._world, tx, mine, actor)
        self._world.release()
        return self._pictures.host(name)

    async def drop(
        self, name: str, actor: str, expect: Expect = WHATEVER, *, force: bool = False
    ) -> None:
        """Remove an entry. Raises Conflict while instances of ours are on the host; Changed.

        `force` removes one that does not answer and gives up what is on it; should the host be
        added again, what still lives there is ended.
        """
        if force:
            await self.fence(name, actor, expect)
        async with self._store.lock(f"host:{name}"):
            expect.meets(f"host {name}", self._pictures.host(name).etag)
            if not force:
                self._refuse_in_use(name, "is to be removed")
            async with self._store.write() as tx:
                tx.drop_host(name)
                for intent in list(self._store.intents.values()):
                    if intent.body.get("host") == name and "haunted" in intent.body:
                        # what was there is said to be gone: it sends nothing to anybody
                        body = {k: v for k, v in intent.body.items() if k != "haunted"}
                        tx.open_intent(replace(intent, body=body))
                tx.event("host_removed", said("host.removed", host=name), host=name, actor=actor)
        self._pool.forget(name)

    def _refuse_in_use(self, name: str, what: str) -> None:
        """Raises Conflict while something of ours is there, or is still to be ended there."""
        held = {i.id for i in self._store.on_host(name)}
        waiting = {
            str(i.body.get("instance") or i.body.get("id"))
            for i in self._store.intents.values()
            if i.body.get("host") == name
        }
        if not held | waiting:
            return
        names = sorted(held | waiting)
        raise Conflict.of(
            "host.in_use",
            f"host {name} {what}, but it carries {len(names)} instances of ours or has yet to "
            f"confirm their end: {', '.join(names[:5])}.",
            values={"host": name, "instances": names},
            remedy="Delete or move those deployments first; a fenced instance ends when the host "
            "answers again. One that is gone for good is removed with force.",
        )


def _place(host: Host) -> tuple[object, ...]:
    """What decides which machine and folder an entry means."""
    return host.address, host.port, host.user, host.jump, host.work_dir, host.runtime
