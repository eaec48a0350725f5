"""What a person asks of a deployment: save, scale, restart, pause, delete. Stores, then hints."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from backend.domain.decide import Picture
from backend.domain.deletion import consequences
from backend.domain.deployment import Deployment
from backend.domain.desired import count_changes, saved, waiting, with_counts, with_revision
from backend.domain.errors import Conflict, NotFound, PdError, Problem, Refused
from backend.domain.group import Group, Instance, Restart
from backend.domain.mode import membership
from backend.domain.picture import group_view
from backend.domain.precondition import WHATEVER, Expect, etag
from backend.domain.revision import changes
from backend.domain.rules.routing import settled
from backend.domain.rules.structure import scale_refusal
from backend.domain.views import Deletion, GroupView, ScaleResult
from backend.reconcile.reconciler import Reconciler
from backend.services.checking import Checking
from backend.services.pictures import Pictures
from backend.store.store import Intent, Transaction


class Groups:
    """Use cases on deployments. Each checks, writes desired state in one transaction, and lets the
    loop act; none of them touches a host."""

    def __init__(self, reconciler: Reconciler, pictures: Pictures, checking: Checking) -> None:
        self._reconciler, self._pictures, self._checking = reconciler, pictures, checking
        self._world = reconciler.world
        self._store = reconciler.world.store

    async def check(self, document: Deployment, *, every: bool = False) -> tuple[Problem, ...]:
        """Every finding about a document, worst first; with `every` also the rules that are fine.

        It is judged as it would be saved.
        """
        return await self._checking.check(self.settled(document), every=every)

    def settled(self, document: Deployment) -> Deployment:
        """The document as it would be stored."""
        return settled(document, self._world.catalogue())

    async def apply(
        self,
        document: Deployment,
        actor: str,
        *,
        dry_run: bool = False,
        expect: Expect = WHATEVER,
    ) -> GroupView:
        """Save a document. Nothing running is touched: what it changes there waits for a restart.

        Raises Refused with every refusal; Conflict while the deployment is being deleted; what
        `Expect.meets` raises.
        """
        document = self.settled(document)
        found = await self._checking.check(document)
        refused = [p for p in found if p.verdict == "refused"]
        if refused:
            raise Refused(*refused)
        doubts = tuple(p.sentence() for p in found if p.verdict == "unverified")
        name = document.name
        if dry_run:
            digest = self._world.revision(document)
            return self._dry(document, digest)
        async with self._store.lock(name):
            old = self._store.groups.get(name)
            _meets(name, old, expect)
            if old is not None and old.deleting:
                raise Conflict.of(
                    "life.deleting",
                    f"{name} is being deleted.",
                    values={"name": name},
                    remedy="Wait until it is gone, then save it again.",
                )
            if old is None or old.document != document:
                async with self._store.write() as tx:
                    self._save(tx, old, document, actor, doubts)
            elif old.unverified != doubts:
                async with self._store.write() as tx:
                    tx.put_group(old.model_copy(update={"unverified": doubts}))
        return await self._shown(name)

    def _save(
        self,
        tx: Transaction,
        old: Group | None,
        new: Deployment,
        actor: str,
        unverified: tuple[str, ...],
    ) -> None:
        group = self._updated(old, new, tx.now).model_copy(update={"unverified": unverified})
        tx.put_group(group)
        tx.save_document(group, actor)
        if old is None:
            tx.event("saved", f"{new.name} is saved", group=new.name, actor=actor)
            return
        lines = changes(old.document, new)
        counts = count_changes(old.document, new)
        what = "; ".join([*lines[:6], *counts]) or "nothing that a launch depends on"
        more = f" and {len(lines) - 6} more" if len(lines) > 6 else ""
        tx.event("saved", f"{new.name} is saved: {what}{more}", group=new.name, actor=actor)

    def _updated(self, old: Group | None, new: Deployment, now: float) -> Group:
        return saved(old, new, self._world.revision(new), now)

    def _dry(self, document: Deployment, digest: str) -> GroupView:

        old = self._store.groups.get(document.name)
        group = self._updated(old, document, self._world.clock())
        mode = self._world.catalogue().mode_of(document.spec)
        lines = changes(old.document, document) if old else ()
        picture = Picture(
            group=group.model_copy(update={"revision": digest}),
            instances=self._store.of_group(document.name),
            membership=membership(mode, document.spec),
        )
        return group_view(picture, lines)

    async def scale(
        self, name: str, counts: Mapping[str, int], actor: str, *, expect: Expect = WHATEVER
    ) -> ScaleResult:
        """Set wanted members by role; scaling down acts at once.

        Raises Refused for a role or count that cannot be; Conflict `life.stale` for a scale-up
        while the saved configuration is not what runs: the count is stored then and applied by
        the restart.
        """
        async with self._store.lock(name):
            old = self._group(name)
            _meets(name, old, expect)
            problem = scale_refusal(old, counts)
            if problem is not None:
                raise Refused(problem)
            document = with_counts(old.document, counts)
            group = old
            if document != old.document:
                async with self._store.write() as tx:
                    group = self._updated(old, document, tx.now)
                    tx.put_group(group)
                    tx.save_document(group, actor)
                    said = ", ".join(f"{r} {n}" for r, n in counts.items())
                    tx.event("scaled", f"{name} is to have {said}", group=name, actor=actor)
        waits = waiting(group, counts)
        if waits:
            raise Conflict.of(
                "life.stale",
                f"{name} runs an earlier configuration, so "
                f"{' and '.join(f'{r} does not scale up to {n}' for r, n in waits.items())}: "
                "a new member would pair with members of the old one.",
                path=f"spec.roles.{next(iter(waits))}.replicas",
                values={"stored": dict(counts), "running": group.applied, "pending": True},
                remedy="The count is stored and applies at the next restart.",
            )
        return ScaleResult(group=name, wanted=group.applied)

    async def restart(
        self, name: str, actor: str, *, force: bool = False, expect: Expect = WHATEVER
    ) -> GroupView:
        """Stop the whole group, confirm it gone, and form it from the saved document.

        `force` does not wait for hosts that do not answer: what they hold is killed when they are
        back. Raises Conflict while a restart or a deletion is under way.
        """
        async with self._store.lock(name):
            old = self._group(name)
            _meets(name, old, expect)
            running = old.restart is not None and old.restart.step != "start"
            if old.deleting or (running and not force):
                raise Conflict.of(
                    "life.busy",
                    f"{name} is already being {'deleted' if old.deleting else 'restarted'}.",
                    values={"name": name},
                    remedy="Wait for it, or restart with force to pass hosts that do not answer.",
                )
            if old.document.spec.paused:
                raise Conflict.of(
                    "life.paused",
                    f"{name} is paused: there is nothing to restart.",
                    values={"name": name, "paused": True},
                    remedy="Resume it; it forms from the saved configuration.",
                )
            instances = self._store.of_group(name)
            async with self._store.write() as tx:
                restart = Restart(since=tx.now, force=force, total=len(instances))
                tx.put_group(old.model_copy(update={"restart": restart}))
                why = " with force" if force else ""
                tx.event("restart", f"restart of {name} is asked for{why}", group=name, actor=actor)
                if force:
                    self._fence(tx, instances, actor)
        self._reconciler.hint(name)
        self._world.release()
        return self._pictures.group(name)

    def _fence(self, tx: Transaction, instances: list[Instance], actor: str) -> None:
        """Let go of instances on hosts that do not answer: the janitor kills them once they do."""
        for i in instances:
            if self._world.hosts.sight(i.host).up is not False:
                continue
            body = {"host": i.host, "instance": i.id}
            tx.open_intent(Intent(f"release:{i.id}", "release", i.group, body))
            tx.drop_instance(i)
            tx.event(
                "fenced",
                f"{i.id} is fenced: {i.host} does not answer; it is killed the moment it does",
                group=i.group,
                instance=i.id,
                host=i.host,
                actor=actor,
                level="warning",
            )

    async def pause(
        self, name: str, paused: bool, actor: str, *, expect: Expect = WHATEVER
    ) -> GroupView:
        """Stop everything and keep the document, or form again."""
        async with self._store.lock(name):
            old = self._group(name)
            _meets(name, old, expect)
            if old.document.spec.paused != paused:
                spec = old.document.spec.model_copy(update={"paused": paused})
                document = old.document.model_copy(update={"spec": spec})
                async with self._store.write() as tx:
                    group = self._updated(old, document, tx.now)
                    tx.put_group(group)
                    tx.save_document(group, actor)
                    word = "paused" if paused else "resumed"
                    tx.event(word, f"{name} is {word}", group=name, actor=actor)
        return self._pictures.group(name)

    async def delete(self, name: str, actor: str, *, expect: Expect = WHATEVER) -> None:
        """Stop everything and forget the deployment once nothing of it is left."""
        async with self._store.lock(name):
            old = self._group(name)
            _meets(name, old, expect)
            if old.deleting:
                return
            async with self._store.write() as tx:
                tx.put_group(old.model_copy(update={"deleting": True}))
                tx.event("deleting", f"{name} is to be deleted", group=name, actor=actor)

    async def delete_instance(
        self,
        name: str,
        instance: str,
        actor: str,
        *,
        dry_run: bool = False,
        expect: Expect = WHATEVER,
    ) -> Deletion:
        """Take one instance out, and say what that means; `dry_run` only says it.

        A member is replaced by a new one unless changes wait for a restart. Raises NotFound.
        """
        async with self._store.lock(name):
            _meets(name, self._group(name), expect)
            found = self._store.instances.get(instance)
            if found is None or found.group != name:
                raise NotFound.of(
                    "instance.unknown",
                    f"{name} has no instance {instance!r}.",
                    values={"name": name, "instance": instance},
                    remedy=f"List them with `pdtui get {name}`.",
                )
            picture = self._reconciler.loops[name].picture()
            said = consequences(picture, found) if picture is not None else ()
            if not dry_run:
                way = {"state": "stopping"} if found.role == "router" else {"removing": True}
                async with self._store.write() as tx:
                    tx.put_instance(found.model_copy(update=way))
                    tx.event(
                        "deleting",
                        " ".join([f"{instance} is to go.", *said]),
                        group=name,
                        instance=instance,
                        host=found.host,
                        actor=actor,
                    )
        return Deletion(instance=instance, warnings=said)

    def document(self, name: str) -> Deployment:
        """The saved document. Raises NotFound."""
        return self._group(name).document

    def saved(self, name: str) -> tuple[Deployment, str]:
        """The saved document and its entity tag. Raises NotFound."""
        group = self._group(name)
        return group.document, etag(group.document, group.version)

    def _group(self, name: str) -> Group:
        if name not in self._store.groups:
            self._pictures.group(name)  # raises NotFound with the names there are
            raise AssertionError("a loop without a group")
        return self._store.groups[name]

    async def _shown(self, name: str) -> GroupView:
        """The group's view; its loop begins in this same turn of the event loop."""
        await asyncio.sleep(0)
        return self._pictures.group(name)

    async def refresh_revisions(self) -> None:
        """After a start: a changed catalogue makes the groups it touches Config changed."""
        for group in list(self._store.groups.values()):
            try:
                digest = self._world.revision(group.document)
            except PdError:
                continue  # its mode left the catalogue: it runs on by its pinned recipe
            if digest == group.revision:
                continue
            async with self._store.lock(group.name), self._store.write() as tx:
                tx.put_group(with_revision(group, digest))
                tx.event(
                    "recipe_changed",
                    f"the recipe of {group.name} is not the one it runs on; a restart applies it",
                    group=group.name,
                    level="warning",
                )


def _meets(name: str, now: Group | None, expect: Expect) -> None:
    tag = None if now is None else etag(now.document, now.version)
    expect.meets(f"the deployment {name}", tag)
