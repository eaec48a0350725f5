"""What a person asks of a deployment: save, scale, restart, pause, delete. Stores, then hints."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from backend.domain.decide import Picture
from backend.domain.deletion import consequences
from backend.domain.deployment import Deployment
from backend.domain.desired import (
    count_changes,
    saved,
    switched,
    waiting,
    with_counts,
    with_revision,
)
from backend.domain.errors import Conflict, NotFound, PdError, Problem, Refused
from backend.domain.group import Group, Restart
from backend.domain.mode import membership
from backend.domain.peers import peers_wanted
from backend.domain.picture import group_view
from backend.domain.precondition import WHATEVER, Expect, etag
from backend.domain.revision import changes, changes_beside
from backend.domain.rules.routing import settled
from backend.domain.rules.structure import scale_refusal
from backend.domain.telling import said, told
from backend.domain.views import Deletion, GroupView, ScaleResult
from backend.reconcile.reconciler import Reconciler
from backend.services.checking import Checking
from backend.services.fencing import fence
from backend.services.pictures import Pictures
from backend.store.store import Transaction

SHOWN_CHANGES = 6
"""Changes that the history names; the others are counted."""


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
            tx.event("saved", said("saved.first", name=new.name), group=new.name, actor=actor)
            return
        lines = changes(old.document, new)
        counts = [*count_changes(old.document, new), *changes_beside(old.document, new)]
        what = "; ".join([*lines[:SHOWN_CHANGES], *counts])
        more = max(len(lines) - SHOWN_CHANGES, 0)
        way = "saved.more" if more else "saved.changes" if what else "saved.beside"
        line = said(way, name=new.name, what=what, more=more)
        tx.event("saved", line, group=new.name, actor=actor)

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
                    # counts are no part of a revision: it stands, also without the mode's recipe
                    group = saved(old, document, old.revision, tx.now)
                    tx.put_group(group)
                    tx.save_document(group, actor)
                    line = said("scaled", name=name, counts=[f"{r} {n}" for r, n in counts.items()])
                    tx.event("scaled", line, group=name, actor=actor)
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
            self._formable(old)
            instances = self._store.of_group(name)
            async with self._store.write() as tx:
                restart = Restart(since=tx.now, force=force, total=len(instances))
                tx.put_group(old.model_copy(update={"restart": restart}))
                way = "restart.forced" if force else "restart.asked"
                tx.event("restart", said(way, name=name), group=name, actor=actor)
                if force:
                    fence(self._world, tx, instances, actor)
        self._reconciler.hint(name)
        self._world.release()
        return self._pictures.group(name)

    def _formable(self, group: Group) -> None:
        """Raises Conflict when the saved mode left the catalogue: what ends would not return."""
        try:
            self._world.catalogue().mode_of(group.document.spec)
        except PdError as error:
            raise Conflict.of(
                "life.mode_gone",
                f"{group.name} runs on by the recipe it was formed with, and a restart could not "
                f"form it again: {error.problem.message}",
                path=error.problem.path,
                values=error.problem.values,
                remedy="Put the mode back into the catalogue, or save the deployment with another.",
            ) from None

    async def pause(
        self,
        name: str,
        paused: bool,
        actor: str,
        *,
        force: bool = False,
        expect: Expect = WHATEVER,
    ) -> GroupView:
        """Stop everything and keep the document, or form again.

        `force` lets a pause pass hosts that do not answer: what they hold is killed once they do.
        """
        async with self._store.lock(name):
            old, mine = self._group(name), self._store.of_group(name)
            _meets(name, old, expect)
            async with self._store.write() as tx:
                if old.document.spec.paused != paused:
                    group = switched(old, paused, mine, tx.now)
                    tx.put_group(group)
                    tx.save_document(group, actor)
                    word = "paused" if paused else "resumed"
                    tx.event(word, said(word, name=name), group=name, actor=actor)
                if paused and force:
                    fence(self._world, tx, mine, actor)
        self._world.release()
        return self._pictures.group(name)

    async def delete(
        self, name: str, actor: str, *, force: bool = False, expect: Expect = WHATEVER
    ) -> None:
        """Stop everything and forget the deployment once nothing of it is left.

        `force` passes hosts that do not answer: what they hold is killed once they do.
        """
        async with self._store.lock(name):
            old = self._group(name)
            _meets(name, old, expect)
            async with self._store.write() as tx:
                if not old.deleting:
                    tx.put_group(old.model_copy(update={"deleting": True}))
                    tx.event("deleting", said("deleting", name=name), group=name, actor=actor)
                if force:
                    fence(self._world, tx, self._store.of_group(name), actor)
        self._reconciler.hint(name)
        self._world.release()

    async def told(self, name: str, actor: str, *, expect: Expect = WHATEVER) -> GroupView:
        """The operator has told a router that is kept up by hand of its present members.

        Raises Conflict when the group keeps its router up itself, or has none that serves.
        """
        async with self._store.lock(name):
            _meets(name, self._group(name), expect)
            picture = self._reconciler.loops[name].picture()
            router = picture.router if picture is not None else None
            if picture is None or router is None or picture.membership != "manual":
                how = picture.membership if picture is not None else "none"
                raise Conflict.of(
                    "life.not_manual",
                    f"{name} has no router that is kept up by hand: its membership is {how}.",
                    values={"name": name, "membership": how},
                    remedy="There is nothing to tell: its members are kept up by themselves.",
                )
            records = peers_wanted(picture.instances, router)
            if set(records) != set(router.snapshot or ()):
                async with self._store.write() as tx:
                    update = {"snapshot": records, "haunted": ()}
                    tx.put_instance(router.model_copy(update=update))
                    knows = [r.instance for r in records]
                    line = said("told", instance=router.id, peers=knows)
                    tx.tell("told", router, line, actor=actor)
        return self._pictures.group(name)

    async def delete_instance(
        self,
        name: str,
        instance: str,
        actor: str,
        *,
        dry_run: bool = False,
        force: bool = False,
        expect: Expect = WHATEVER,
    ) -> Deletion:
        """Take one instance out, and say what that means; `dry_run` only says it.

        A member is replaced by a new one unless changes wait for a restart. `force` does not wait
        for a host that does not answer. Raises NotFound.
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
            silent = self._world.hosts.sight(found.host).up is False
            meant = consequences(picture, found, silent, force) if picture is not None else ()
            if not dry_run:
                way = {"state": "stopping"} if found.role == "router" else {"removing": True}
                async with self._store.write() as tx:
                    line = said("taken_out", instance=instance, meant=meant)
                    tx.tell("deleting", found, line, actor=actor)
                    if force and silent:
                        fence(self._world, tx, [found], actor)
                    else:
                        tx.put_instance(found.model_copy(update=way))
        self._world.release()
        texts = tuple(told(m, "en") for m in meant)
        return Deletion(instance=instance, warnings=texts, said=meant)

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
                    said("recipe_changed", name=group.name),
                    group=group.name,
                    level="warning",
                )


def _meets(name: str, now: Group | None, expect: Expect) -> None:
    tag = None if now is None else etag(now.document, now.version)
    expect.meets(f"the deployment {name}", tag)
