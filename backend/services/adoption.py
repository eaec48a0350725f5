"""Taking over groups whose store was lost, from what lies on the hosts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import httpx

from backend.domain import adoption
from backend.domain.adoption import Left
from backend.domain.errors import Conflict, NotFound, PdError
from backend.domain.group import Instance
from backend.domain.telling import said
from backend.domain.views import AdoptableView, AdoptionResult
from backend.reconcile.reconciler import Reconciler
from backend.reconcile.reserving import release


class Adoption:
    """Use cases on instances that no row of this store stands for."""

    def __init__(self, reconciler: Reconciler) -> None:
        self._reconciler, self._world = reconciler, reconciler.world
        self._store = reconciler.world.store

    async def survey(self) -> tuple[tuple[AdoptableView, ...], dict[str, str]]:
        """What could be adopted, by owner and group; and why which hosts could not be asked."""
        found, unasked = await self._look()
        by: dict[tuple[str, str], list[Left]] = {}
        for left in found:
            by.setdefault((left.owner, adoption.group_of(left)), []).append(left)
        views = [
            AdoptableView(
                owner=owner,
                group=group,
                instances=tuple(sorted(x.instance for x in lefts)),
                living=sum(1 for x in lefts if x.process and x.process.state == "running"),
                hosts=tuple(sorted({x.host for x in lefts})),
            )
            for (owner, group), lefts in sorted(by.items())
        ]
        return tuple(views), unasked

    async def adopt(self, owner: str, actor: str) -> AdoptionResult:
        """Take over everything of `owner`: groups with their running members, untouched.

        What has no place in a group is ended. Raises NotFound when nothing of that owner is there,
        Conflict while a host cannot be asked or when a group of that name is here already.
        """
        found, unasked = await self._look()
        if unasked:
            raise Conflict.of(
                "adopt.unasked",
                f"{', '.join(sorted(unasked))} cannot be asked: members there would be missed.",
                values={"hosts": unasked},
                remedy="Bring the host back, or remove it from the inventory.",
            )
        mine = [x for x in found if x.owner == owner]
        if not mine:
            owners = sorted({x.owner for x in found})
            raise NotFound.of(
                "adopt.unknown",
                f"no instance of owner {owner!r} is on any host; there are owners: "
                f"{', '.join(owners) or 'none'}.",
                values={"owner": owner, "known": owners},
                remedy="List them with `pdtui adopt`.",
            )
        groups, rest = adoption.rebuild(mine, self._world.clock())
        for name in [a.group.name for a in groups if a.group.name in self._store.groups]:
            raise Conflict.of(
                "adopt.exists",
                f"a deployment {name!r} is here already.",
                values={"name": name},
                remedy="Delete it, or adopt into another state directory.",
            )
        await asyncio.gather(
            *(self._world.runtime.adopt(self._store.hosts[x.host], x.instance, owner) for x in mine)
        )
        groups = [replace(a, instances=await self._asked(a.instances)) for a in groups]
        ended = [*rest, *(x for a in groups for x in a.rest)]
        await self._write(groups, ended, owner, actor)
        return AdoptionResult(
            groups=tuple(a.group.name for a in groups),
            instances=tuple(i.id for a in groups for i in a.instances),
            ended=tuple(x.instance for x in ended),
        )

    async def _asked(self, instances: Sequence[Instance]) -> tuple[Instance, ...]:
        """The rows with those ready that answer their health path now: a router that knows its
        members must not be replaced because one of them was asked later than another."""
        answers = await asyncio.gather(*(self._answers(i) for i in instances))
        ready = {"state": "ready"}
        return tuple(
            i.model_copy(update={**ready, "served": i.generation}) if answered else i
            for i, answered in zip(instances, answers, strict=True)
        )

    async def _answers(self, instance: Instance) -> bool:
        launch, process = instance.launch, instance.process
        if launch is None or launch.health_path is None or process is None:
            return False
        if process.state != "running":
            return False
        host = self._store.hosts[instance.host]
        url = launch.url + launch.health_path
        try:
            answer = await self._world.http.request(
                host, "GET", url, timeout=launch.health_timeout_s
            )
        except (PdError, httpx.HTTPError):
            return False
        return answer.status_code == httpx.codes.OK

    async def _write(
        self, groups: list[adoption.Adopted], ended: list[Left], owner: str, actor: str
    ) -> None:
        async with self._store.write() as tx:
            for adopted in groups:
                group = adopted.group
                tx.put_group(group)
                tx.save_document(group, actor)
                for instance in adopted.instances:
                    tx.put_instance(instance)
                tx.event(
                    "adopted",
                    said(
                        "adopted",
                        name=group.name,
                        owner=owner,
                        count=len(adopted.instances),
                    ),
                    group=group.name,
                    actor=actor,
                )
            for left in ended:
                body = {"host": left.host, "instance": left.instance}
                release(tx, adoption.group_of(left), [body])
        self._world.release()

    async def _look(self) -> tuple[list[Left], dict[str, str]]:
        """Every instance directory without a row or an intent of ours, on all hosts at once."""
        known = set(self._store.instances)
        for intent in self._store.intents.values():
            known |= {p["instance"] for p in intent.body.get("places", ())}
            known |= {str(intent.body[k]) for k in ("instance", "id") if k in intent.body}
        names = sorted(self._store.hosts)
        answers = await asyncio.gather(*(self._on(n) for n in names), return_exceptions=True)
        found, unasked = [], {}
        for name, answer in zip(names, answers, strict=True):
            if isinstance(answer, PdError):
                unasked[name] = answer.problem.message
            elif isinstance(answer, BaseException):
                raise answer
            else:
                found += [x for x in answer if x.instance not in known]
        return found, unasked

    async def _on(self, name: str) -> list[Left]:
        host, runtime = self._store.hosts[name], self._world.runtime
        told = {x["instance"]: x for x in await runtime.adoptable(host)}
        processes = {s.instance: s for s in await runtime.statuses(host)}
        return [
            Left(
                host=name,
                instance=claim.instance,
                owner=claim.owner,
                row=told.get(claim.instance, {}).get("row", {}),
                launch=told.get(claim.instance, {}).get("launch", {}),
                process=processes.get(claim.instance),
            )
            for claim in await runtime.claims(host)
        ]
