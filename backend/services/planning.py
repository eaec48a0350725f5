"""What saving a document would do, asked of what is stored; nothing is stored here."""

from __future__ import annotations

from backend.domain.caches import CacheDocument, users
from backend.domain.deployment import Deployment
from backend.domain.kinds import AnyDocument, host_document, parse
from backend.domain.planning import Effect, Plan, effects_on, plan
from backend.domain.precondition import etag
from backend.reconcile.world import World
from backend.services.groups import Groups


class Planning:
    """Judges a document of any kind and compares it with what is saved."""

    def __init__(self, world: World, groups: Groups) -> None:
        self._world, self._store, self._groups = world, world.store, groups

    async def plan(self, data: object) -> Plan:
        """What saving `data` would do. Raises Invalid for what is no document."""
        document: AnyDocument = parse(data)
        if isinstance(document, Deployment):
            return await self._deployment(document)
        if isinstance(document, CacheDocument):
            return self._cache(document)
        old = self._store.hosts.get(document.name)
        effects = (Effect(id="host_looked_at"),)
        wanted = host_document(document.host()).document()
        before = None if old is None else host_document(old).document()
        tag = "" if old is None else etag(old)
        return plan("Host", document.name, wanted, before, effects, etag=tag)

    async def _deployment(self, document: Deployment) -> Plan:
        document = self._groups.settled(document)
        verdicts = await self._groups.check(document)
        old = self._store.groups.get(document.name)
        effects: tuple[Effect, ...] = ()
        if not any(v.verdict == "refused" for v in verdicts):
            effects = effects_on(old, document, self._world.revision(document))
        before = None if old is None else old.document.document()
        tag = "" if old is None else self._groups.saved(document.name)[1]
        body = document.document()
        return plan("Deployment", document.name, body, before, effects, verdicts, tag)

    def _cache(self, document: CacheDocument) -> Plan:
        old = self._store.caches.get(document.name)
        deployments = [g.document for g in self._store.groups.values()]
        using = users(document.name, deployments)
        effects = (Effect(id="groups_change", values={"groups": using}),) if using else ()
        before = None if old is None else old.document()
        tag = "" if old is None else etag(old)
        return plan("CacheService", document.name, document.document(), before, effects, etag=tag)
