"""Waiting for a group to become what was asked, by its event stream."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import TYPE_CHECKING

from backend.domain.errors import NotFound, Refused, TimedOut
from backend.domain.views import GroupView

if TYPE_CHECKING:
    from backend.client.http import HttpClient


Saw = Callable[[GroupView], None]
"""Is called with every view of the group on the way."""


async def until(
    client: HttpClient,
    name: str,
    done: Callable[[GroupView], bool],
    timeout_s: float,
    what: str,
    saw: Saw | None = None,
) -> GroupView:
    """The group once `done` holds; `saw` is called with every view on the way.

    Raises TimedOut naming the group's present status and marks.
    """
    snapshot = await client.snapshot()
    last = await client.group(name)
    try:
        async with asyncio.timeout(timeout_s):
            if saw:
                saw(last)
            if done(last):
                return last
            if looping(last):
                raise _crash_loop(last)
            async with aclosing(client.changes(snapshot.seq)) as changes:
                async for change in changes:
                    views = _views(change.kind, change.body, name)
                    if not views:
                        continue
                    last = views[-1]
                    if saw:
                        saw(last)
                    if done(last):
                        return last
                    if looping(last):
                        raise _crash_loop(last)
    except TimeoutError:
        marks = " ".join(m.text for m in last.marks)
        notes = " ".join(f"{m.id}: {m.note}" for m in last.members if m.note)
        raise TimedOut.of(
            "wait.timeout",
            f"{name} did not {what} within {timeout_s:.0f} s; it is {last.status}. {marks} {notes}",
            values={"name": name, "status": last.status},
            remedy="It goes on: look at it with `pdtui get` or raise --timeout.",
        ) from None
    raise AssertionError("the stream of changes does not end")


def looping(group: GroupView) -> bool:
    """Whether a member is not started again, so that waiting leads nowhere."""
    return any(m.state == "crash_loop" for m in group.members)


def _crash_loop(group: GroupView) -> Refused:
    stuck = [m for m in group.members if m.state == "crash_loop"]
    why = "; ".join(f"{m.id} on {m.host}: {m.note}" for m in stuck)
    return Refused.of(
        "life.crash_loop",
        f"{group.name} does not come up: {why}",
        values={"name": group.name, "members": [m.id for m in stuck]},
        remedy=f"Read `pdtui logs {stuck[0].id}`, correct the deployment, and restart it.",
    )


def _views(kind: str, body: dict[str, object], name: str) -> list[GroupView]:
    if kind == "group" and body.get("name") == name:
        return [GroupView.model_validate(body)]
    if kind == "snapshot":
        groups = body.get("groups")
        found = groups if isinstance(groups, list) else []
        return [GroupView.model_validate(g) for g in found if g["name"] == name]
    return []


async def until_serving(
    client: HttpClient, name: str, timeout_s: float, saw: Saw | None = None
) -> GroupView:
    """Wait until the group serves with every wanted member."""
    return await until(
        client, name, lambda g: g.paused or (g.status == "Running" and not g.currently),
        timeout_s, "serve", saw,
    )  # fmt: skip


async def until_ratio(
    client: HttpClient, name: str, timeout_s: float, saw: Saw | None = None
) -> GroupView:
    """Wait until exactly the wanted members serve and nobody is on the way out."""

    def done(g: GroupView) -> bool:
        exact = all(r.ready == r.wanted == r.present for r in g.roles.values())
        leaving = any(m.state in ("draining", "stopping") for m in g.members)
        return exact and not leaving and g.status == "Running"

    return await until(client, name, done, timeout_s, "reach its ratio", saw)


async def until_restarted(
    client: HttpClient,
    name: str,
    timeout_s: float,
    saw: Saw | None = None,
) -> GroupView:
    """Wait until the restart is over and the group serves."""
    return await until(
        client, name, lambda g: g.phase is None and g.status == "Running",
        timeout_s, "finish its restart", saw,
    )  # fmt: skip


async def until_stopped(
    client: HttpClient, name: str, timeout_s: float, saw: Saw | None = None
) -> GroupView:
    """Wait until nothing of the group is left."""
    return await until(client, name, lambda g: not g.members, timeout_s, "stop", saw)


async def until_gone(
    client: HttpClient, name: str, timeout_s: float, saw: Saw | None = None
) -> None:
    """Wait until the deployment is forgotten."""
    try:
        async with asyncio.timeout(timeout_s):
            while True:
                group = await client.group(name)
                if saw:
                    saw(group)
                await asyncio.sleep(0.1)
    except NotFound:
        return
    except TimeoutError:
        raise TimedOut.of(
            "wait.timeout",
            f"{name} was not gone within {timeout_s:.0f} s.",
            values={"name": name},
            remedy="It goes on: look at it with `pdtui get`.",
        ) from None


async def until_seen(client: HttpClient, timeout_s: float = 12.0) -> None:
    """Wait, for a while, until every host was looked at once."""
    try:
        async with asyncio.timeout(timeout_s):
            while any(h.state == "unknown" for h in await client.hosts()):
                await asyncio.sleep(0.05)
    except TimeoutError:
        return
