"""Who is watched: a task for each thing, kept by group, and none after the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from backend.bootstrap import build
from backend.domain.documents import parse_deployment
from backend.domain.group import Group
from backend.observe.tasks import Watchers
from backend.paths import Paths
from tests.live.lab import deployment


class Watched:
    """What is watched at the moment."""

    def __init__(self) -> None:
        self.now: set[str] = set()
        self.watchers = Watchers("test", self._watch)

    async def _watch(self, key: str) -> None:
        self.now.add(key)
        try:
            await asyncio.Event().wait()
        finally:
            self.now.discard(key)


@pytest.fixture
async def watched() -> AsyncIterator[Watched]:
    made = Watched()
    yield made
    await made.watchers.close()


async def test_a_groups_change_leaves_the_others_watched(watched: Watched) -> None:
    sync = watched.watchers.sync
    assert sync({"a1", "a2"}, "a") == set()
    assert sync({"b1"}, "b") == set()
    await asyncio.sleep(0)
    assert watched.now == {"a1", "a2", "b1"}
    assert sync({"a2", "a3"}, "a") == {"a1"}
    await asyncio.sleep(0)
    assert watched.now == {"a2", "a3", "b1"}
    assert sync(set(), "a") == {"a2", "a3"}
    await asyncio.sleep(0)
    assert watched.now == {"b1"}
    assert "b1" in watched.watchers
    assert "a2" not in watched.watchers
    await watched.watchers.close()
    assert watched.now == set()


async def test_no_loop_begins_after_the_reconciler_has_ended(tmp_path: Path) -> None:
    """A write that comes last, such as an answer's to a request, finds nobody who acts on it."""
    document = parse_deployment(deployment(tmp_path / "model", "late"))
    async with build(Paths.default(tmp_path / "state")) as backend:
        await backend.reconciler.close()
        async with backend.store.write() as tx:
            tx.put_group(Group(name="late", version=1, document=document, revision="r"))
        assert backend.reconciler.loops == {}
