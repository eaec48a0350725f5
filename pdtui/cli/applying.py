"""Saving what a plan says: in order of kinds, some at a time, each document on its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from backend.domain.errors import HostError, PdError, Problem
from backend.domain.kinds import KINDS
from backend.domain.views import GroupView
from pdtui.cli.common import complain, complain_of
from pdtui.cli.planned import Item, complain_all, each, line, plan_all, read_items, worst
from pdtui.i18n import tr

if TYPE_CHECKING:
    from backend.client.http import HttpClient

WAITS = 3


class Run:
    """One `apply`: its items, what it would prune, and how it went."""

    def __init__(
        self,
        files: Sequence[Path],
        *,
        recursive: bool = False,
        labels: Mapping[str, str] | None = None,
        restart: bool = False,
        wait: bool | None = None,
        timeout: float = 900,
    ) -> None:
        self.items = read_items(files, recursive=recursive)
        self.prunes: list[str] = []
        self.restarts: list[str] = []
        self._labels, self._restart, self._wait, self._timeout = labels, restart, wait, timeout
        self._errors: list[PdError] = []
        self._told = 0
        self._codes: list[int] = []

    @property
    def pending(self) -> int:
        """How many documents are to be saved or deleted, and groups restarted as they are saved."""
        return sum(i.changes for i in self.items) + len(self.prunes) + len(self.restarts)

    @property
    def code(self) -> int:
        """The exit code."""
        codes = [*(i.code for i in self.items), *(e.exit_code for e in self._errors), *self._codes]
        return worst(codes)

    async def plan(self, client: HttpClient) -> None:
        """Ask what saving each would do, and what is to be pruned."""
        await plan_all(client, self.items)
        if self._restart:
            same = {i.part.name for i in self.items if i.plan and i.plan.action == "unchanged"}
            groups = await client.groups()
            self.restarts = [g.name for g in groups if g.config_changed and g.name in same]
        if self._labels is None:
            return
        if any(i.code and not i.part.name for i in self.items):
            self._errors.append(
                PdError.of("cli.prune", tr("cli.prune_broken"), remedy=tr("cli.prune_broken.do"))
            )
            return
        held = {i.part.name for i in self.items if i.kind == "Deployment"}
        self.prunes = [
            g.name
            for g in await client.groups()
            if g.name not in held
            and not g.deleting
            and all(g.labels.get(k) == v for k, v in self._labels.items())
        ]

    def show_rest(self) -> None:
        """The deletions and restarts that the plan holds."""
        for name in self.prunes:
            line("delete", "Deployment", name)
        for name in self.restarts:
            line("restart", "Deployment", name)

    async def unchanged(self, client: HttpClient) -> list[GroupView]:
        """The groups of the documents that are saved already."""
        names = [i.part.name for i in self.items if i.kind == "Deployment" and not i.code]
        there = {g.name: g for g in await client.groups()}
        return [there[n] for n in names if n in there]

    async def save(self, client: HttpClient) -> list[GroupView]:
        """Save and prune; the groups of all documents afterwards, waited for where asked."""
        saved: dict[str, GroupView] = {}

        async def one(item: Item) -> None:
            if item.later:
                item.plan = await client.plan(item.data)
            assert item.plan is not None
            tag = item.plan.etag  # what the plan was shown for: a save in between is not undone
            if item.kind == "Deployment":
                saved[item.part.name] = await client.apply(item.data, etag=tag)
            elif item.kind == "CacheService":
                await client.apply_cache(item.data, etag=tag)
                typer.echo(tr("cli.saved", kind=item.kind, name=item.name), err=True)
            else:
                await self._host(client, item, tag)

        for kind in KINDS:
            await each([i for i in self.items if i.kind == kind and i.changes], one)
        for name in self.prunes:
            await self._prune(client, name)
        groups = await self._settle(client, saved)
        return [*groups, *(g for g in await self.unchanged(client) if g.name not in saved)]

    async def _host(self, client: HttpClient, item: Item, tag: str) -> None:
        from backend.domain.kinds import parse_host

        entry = parse_host(item.data).host().model_dump(mode="json")
        view = await client.add_host(entry, etag=tag)
        typer.echo(tr("cli.saved_as", kind="Host", name=item.name, state=view.state), err=True)
        if view.state != "up":
            raise HostError(
                Problem(rule="host.not_up", path="spec.address", values={"state": view.state},
                        message=tr("cli.host_not_up", name=item.name, note=view.note),
                        remedy=tr("cli.host_not_up.do", name=item.name))
            )  # fmt: skip

    async def _prune(self, client: HttpClient, name: str) -> None:
        try:
            await client.delete(name)
            typer.echo(tr("cli.being_deleted", name=name), err=True)
        except PdError as error:
            self._errors.append(error)

    async def _settle(self, client: HttpClient, saved: Mapping[str, GroupView]) -> list[GroupView]:
        from pdtui.cli.fleet import Fleet

        groups = dict(saved)
        fleet = Fleet(client, self._timeout)
        try:
            if self._restart:
                stale = [n for n, g in groups.items() if g.config_changed]
                for name in [*stale, *self.restarts]:
                    groups[name] = await client.restart(name)
            if client.owned if self._wait is None else self._wait:
                groups.update(await fleet.serving(groups))
                for name in self.prunes:
                    await fleet.gone(name)
        except PdError as error:
            self._errors.append(error)
            groups.update(fleet.last)
        for group in groups.values():
            self._tell(group)
        return list(groups.values())

    def _tell(self, group: GroupView) -> None:
        text = tr("cli.saved_as", kind="Deployment", name=group.name, state=group.status)
        if group.config_changed:
            text += f" ({tr('cli.effect.restart_applies')})"
        typer.echo(text, err=True)
        waits = {r: c.pending for r, c in group.roles.items() if c.pending is not None}
        if waits:
            self._codes.append(WAITS)
            said = ", ".join(f"{r} {n}" for r, n in waits.items())
            complain_of(
                Problem(rule="life.stale", message=tr("cli.waits", name=group.name, counts=said),
                        remedy=tr("cli.waits.do", name=group.name))
            )  # fmt: skip

    def complain(self) -> None:
        """What went wrong and was not told yet, on stderr."""
        complain_all(self.items)
        for item in self.items:
            item.problems = ()
        for error in self._errors[self._told :]:
            complain(error)
        self._told = len(self._errors)
