"""What a person asks of cache services: save, list, choose, delete."""

from __future__ import annotations

from typing import Any

from backend.domain.caches import CacheDocument, parse_cache, users, why_not
from backend.domain.deployment import Deployment
from backend.domain.errors import Conflict, Invalid, NotFound
from backend.domain.precondition import WHATEVER, Expect, etag
from backend.domain.secrets import masked
from backend.domain.telling import said
from backend.domain.views import CacheChoice, CacheView
from backend.reconcile.reconciler import Reconciler
from backend.services.groups import Groups


class Caches:
    """Use cases on cache services. They are services that run already: nothing is started here."""

    def __init__(self, reconciler: Reconciler, groups: Groups) -> None:
        self._world, self._groups = reconciler.world, groups
        self._store = reconciler.world.store

    def all(self) -> tuple[CacheView, ...]:
        """All services, by name."""
        return tuple(self.view(n) for n in sorted(self._store.caches))

    def view(self, name: str) -> CacheView:
        """One service and who uses it. Raises NotFound."""
        cache = self._cache(name)
        return CacheView(
            name=name,
            etag=etag(cache),
            provider=cache.spec.provider,
            endpoint=cache.spec.endpoint or "",
            settings=masked(cache.spec.settings),
            used_by=tuple(users(name, self._deployments())),
        )

    def document(self, name: str) -> dict[str, Any]:
        """The saved document. Raises NotFound."""
        return self._cache(name).document()

    def choices(self, mode: str | None, role: str | None) -> tuple[CacheChoice, ...]:
        """Every service, and why a role of a deployment in `mode` may not use it. Raises NotFound
        for a mode that is not there."""
        found = self._world.catalogue().mode(mode) if mode else None
        return tuple(
            CacheChoice(name=n, provider=c.spec.provider, why_not=why_not(found, role, c))
            for n, c in sorted(self._store.caches.items())
        )

    async def put(
        self, name: str, data: object, actor: str, expect: Expect = WHATEVER
    ) -> CacheView:
        """Save a service. What already runs is left alone: its group shows Config changed.

        Raises Invalid, Conflict when its provider would change under groups that use it, and what
        `Expect.meets` raises.
        """
        cache = parse_cache(data)
        if cache.name != name:
            raise Invalid.of(
                "structure.name",
                f"the document is named {cache.name!r}, the address says {name!r}.",
                path="metadata.name",
                values={"document": cache.name, "address": name},
                remedy="Make them the same.",
            )
        async with self._store.lock(f"cache:{name}"):
            old = self._store.caches.get(name)
            expect.meets(f"cache service {name}", etag(old) if old else None)
            if old is not None and old.spec.provider != cache.spec.provider:
                self._refuse_use(name, f"its provider cannot become {cache.spec.provider}")
            if old != cache:
                async with self._store.write() as tx:
                    tx.put_cache(cache)
                    verb = "changed" if old else "added"
                    tx.event(f"cache_{verb}", said(f"cache.{verb}", name=name), actor=actor)
        if old != cache:
            await self._groups.refresh_revisions()
        return self.view(name)

    async def drop(self, name: str, actor: str, expect: Expect = WHATEVER) -> None:
        """Forget a service. Raises NotFound; Conflict while a deployment uses it; Changed."""
        async with self._store.lock(f"cache:{name}"):
            expect.meets(f"cache service {name}", etag(self._cache(name)))
            self._refuse_use(name, "it is not deleted")
            async with self._store.write() as tx:
                tx.drop_cache(name)
                tx.event("cache_removed", said("cache.removed", name=name), actor=actor)

    def _refuse_use(self, name: str, what: str) -> None:
        using = users(name, self._deployments())
        if using:
            raise Conflict.of(
                "cache.in_use",
                f"cache service {name} is used by {', '.join(using[:5])}, so {what}.",
                values={"service": name, "deployments": using},
                remedy="Set extended_kv_cache: {kind: none} there and restart those groups first.",
            )

    def _deployments(self) -> list[Deployment]:
        """What is saved, and what runs of it."""
        groups = self._store.groups.values()
        return [g.document for g in groups] + [g.formed.document for g in groups if g.formed]

    def _cache(self, name: str) -> CacheDocument:
        if name not in self._store.caches:
            raise NotFound.among(
                "cache.unknown",
                "cache service",
                name,
                self._store.caches,
                "pdtui caches list",
                field="service",
            )
        return self._store.caches[name]
