"""Earlier documents of a deployment: compared with one another, and saved again."""

from __future__ import annotations

from backend.domain.deployment import Deployment
from backend.domain.desired import count_changes
from backend.domain.documents import parse_deployment
from backend.domain.errors import NotFound
from backend.domain.precondition import WHATEVER, Expect
from backend.domain.revision import changes, changes_beside
from backend.domain.telling import said
from backend.domain.views import Difference, GroupView, VersionView
from backend.services.groups import Groups
from backend.store.store import Store


class History:
    """Use cases on saved documents. A rollback is a save like any other."""

    def __init__(self, store: Store, groups: Groups) -> None:
        self._store, self._groups = store, groups

    async def versions(self, name: str) -> tuple[VersionView, ...]:
        """Every saved document, newest first. Raises NotFound."""
        self._groups.document(name)
        rows = await self._store.documents(name)
        return tuple(VersionView(version=v, at=at, actor=a, document=d) for v, at, a, d in rows)

    async def difference(self, name: str, older: int, newer: int | None) -> Difference:
        """What changed between two versions, a line each; without `newer`, up to the present one.

        Raises NotFound for a version that is not there.
        """
        found = await self.versions(name)
        now = newer if newer is not None else found[0].version
        a, b = self._at(name, found, older), self._at(name, found, now)
        lines = (*changes(a, b), *count_changes(a, b), *changes_beside(a, b))
        return Difference(group=name, older=older, newer=now, changes=lines)

    async def rollback(
        self, name: str, version: int, actor: str, *, expect: Expect = WHATEVER
    ) -> GroupView:
        """Save an earlier document again, judged as any document is: a new version.

        Raises NotFound for a version that is not there, and what a save raises.
        """
        found = await self.versions(name)
        document = self._at(name, found, version)
        saved_by = next(v.actor for v in found if v.version == version)
        view = await self._groups.apply(document, actor, expect=expect)
        async with self._store.write() as tx:
            tx.event(
                "rollback",
                said("rollback", name=name, version=version, who=saved_by),
                group=name,
                actor=actor,
            )
        return view

    def _at(self, name: str, found: tuple[VersionView, ...], version: int) -> Deployment:
        view = next((v for v in found if v.version == version), None)
        if view is None:
            there = sorted({v.version for v in found})
            raise NotFound.of(
                "history.unknown",
                f"{name} has no version {version}; it has {', '.join(map(str, there))}.",
                values={"name": name, "version": version, "known": there},
                remedy=f"List them with `pdtui history {name}`.",
            )
        return parse_deployment(view.document)
