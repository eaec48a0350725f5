"""Waiting for several groups at once by one event stream, telling how far each has come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import aclosing
from typing import TYPE_CHECKING

from backend.domain.errors import Problem, Refused, TimedOut
from backend.domain.views import Change, GroupView
from pdtui.cli.output import clear_line
from pdtui.cli.progress import Progress
from pdtui.cli.waiting import looping, until_gone
from pdtui.i18n import tr

if TYPE_CHECKING:
    from backend.client.http import HttpClient

Done = Callable[[GroupView], bool]


def serves(g: GroupView) -> bool:
    """Whether it serves with every wanted member, or is switched off."""
    return g.paused or (g.status == "Running" and not g.currently and g.phase is None)


class Fleet:
    """Groups waited for together; `last` holds the latest view of each."""

    def __init__(self, client: HttpClient, timeout_s: float) -> None:
        self._client, self._timeout_s = client, timeout_s
        self.last: dict[str, GroupView] = {}

    async def serving(self, names: Iterable[str]) -> dict[str, GroupView]:
        """Wait until each serves. Raises TimedOut and Refused (`life.crash_loop`), naming every
        group that does not."""
        return await self.until(names, serves, "serve")

    async def gone(self, name: str) -> None:
        """Wait until the deployment is forgotten."""
        await until_gone(self._client, name, self._timeout_s, Progress(named=True))

    async def until(self, names: Iterable[str], done: Done, what: str) -> dict[str, GroupView]:
        """Wait until `done` holds of each, as it is now or at some time after."""
        left, stuck = set(names), dict[str, Problem]()
        wanted = sorted(left)
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._follow(left, stuck, done, Progress(named=True))
        except TimeoutError:
            raise TimedOut(*(self._late(n, what) for n in sorted(left))) from None
        finally:
            clear_line()
        if stuck:
            raise Refused(*stuck.values())
        return {n: self.last[n] for n in wanted}

    async def _follow(
        self, left: set[str], stuck: dict[str, Problem], done: Done, progress: Progress
    ) -> None:
        snapshot = await self._client.snapshot()

        def look(views: Iterable[GroupView]) -> bool:
            for g in views:
                if g.name not in left:
                    continue
                self.last[g.name] = g
                progress(g)
                if done(g):
                    left.discard(g.name)
                elif looping(g):
                    left.discard(g.name)
                    stuck[g.name] = _crash_loop(g)
            return not left

        if look(snapshot.groups):
            return
        async with aclosing(self._client.changes(snapshot.seq)) as changes:
            async for change in changes:
                if look(_views(change)):
                    return

    def _late(self, name: str, what: str) -> Problem:
        g = self.last.get(name)
        status = g.status if g else "unknown"
        said = " ".join([*(m.text for m in g.marks), *(m.note for m in g.members if m.note)]) \
            if g else ""  # fmt: skip
        return Problem(
            rule="wait.timeout",
            message=tr("cli.late", name=name, what=tr(f"cli.late.{what}"),
                       seconds=f"{self._timeout_s:.0f}", status=status, said=said).rstrip(),
            values={"name": name, "status": status},
            remedy=tr("cli.late.do", name=name),
        )  # fmt: skip


def _views(change: Change) -> list[GroupView]:
    if change.kind == "group":
        return [GroupView.model_validate(change.body)]
    if change.kind == "snapshot":
        return [GroupView.model_validate(g) for g in change.body.get("groups", [])]
    return []


def _crash_loop(g: GroupView) -> Problem:
    stuck = [m for m in g.members if m.state == "crash_loop"]
    why = "; ".join(f"{m.id} on {m.host}: {m.note}" for m in stuck)
    return Problem(
        rule="life.crash_loop",
        message=tr("cli.crash_loop", name=g.name, why=why),
        values={"name": g.name, "members": [m.id for m in stuck]},
        remedy=tr("cli.crash_loop.do", instance=stuck[0].id),
    )
