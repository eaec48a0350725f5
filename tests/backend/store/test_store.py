"""The store: what is written stays, all of it or nothing, and memory never shows more than disk."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
from contextlib import closing
from importlib import resources
from pathlib import Path

import pytest

from backend.domain.documents import parse_deployment
from backend.domain.errors import Refused
from backend.domain.group import Group, Instance
from backend.domain.host import Host
from backend.domain.telling import plainly, said
from backend.store import db
from backend.store.store import Intent, Store, Touched


def a_group(name: str = "chat") -> Group:
    document = parse_deployment(
        {
            "apiVersion": "pdtui/v1",
            "kind": "Deployment",
            "metadata": {"name": name},
            "spec": {"model": "/m", "engine": "vllm", "disaggregation": {"mode": "vllm-nixl"}},
        }
    )
    return Group(name=name, version=1, document=document, revision="r1")


def an_instance(key: str = "chat-prefill-1") -> Instance:
    return Instance(id=key, group="chat", role="prefill", host="a", revision="r1")


@pytest.fixture
async def store(tmp_path: Path):  # type: ignore[no-untyped-def]
    store = Store(tmp_path / "store.sqlite3")
    await store.open()
    yield store
    await store.close()


async def test_everything_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    store = Store(path, clock=lambda: 7.0)
    await store.open()
    host = Host(name="a", address="10.0.0.1", labels={"rack": "1"})
    intent = Intent("start:x:1", "start", "chat", {"id": "x"})
    async with store.write() as tx:
        tx.put_host(host)
        tx.put_group(a_group())
        tx.put_instance(an_instance())
        tx.open_intent(intent)
        tx.save_document(a_group(), "ada")
        tx.event("saved", said("saved.first", name="chat"), group="chat", actor="ada")
    name = store.id
    await store.close()

    again = Store(path)
    await again.open()
    assert again.id == name
    assert again.hosts == {"a": host}
    assert again.groups == {"chat": a_group()}
    assert again.instances == {"chat-prefill-1": an_instance()}
    assert again.intents == {intent.key: intent}
    (event,) = await again.events("chat")
    assert (event.seq, event.at, event.actor, event.message) == (1, 7.0, "ada", "chat is saved")
    ((version, at, who, document),) = await again.documents("chat")
    assert (version, at, who) == (1, 7.0, "ada")
    assert document == a_group().document.document()
    await again.close()


async def test_only_the_owner_may_read_the_file(store: Store, tmp_path: Path) -> None:
    mode = stat.S_IMODE((tmp_path / "store.sqlite3").stat().st_mode)
    assert mode == 0o600


async def test_a_failed_block_stores_and_shows_nothing(store: Store) -> None:
    with pytest.raises(RuntimeError):
        async with store.write() as tx:
            tx.put_group(a_group())
            raise RuntimeError("changed my mind")
    assert store.groups == {}


async def test_a_transaction_that_the_database_refuses_shows_nothing(store: Store) -> None:
    """An instance of no group breaks a foreign key; what was beside it goes too."""
    seen: list[Touched] = []
    store.listeners.append(seen.append)
    with pytest.raises(sqlite3.IntegrityError):
        async with store.write() as tx:
            tx.put_host(Host(name="a", address="10.0.0.1"))
            tx.put_instance(an_instance())
    assert store.hosts == {}
    assert store.instances == {}
    assert seen == []


async def test_a_cancelled_writer_does_not_lose_what_is_being_stored(store: Store) -> None:
    async def write() -> None:
        async with store.write() as tx:
            tx.put_group(a_group())

    task = asyncio.create_task(write())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.gather(*store._commits)
    assert store.groups == {"chat": a_group()}


async def test_listeners_hear_what_was_stored_after_it_was(store: Store) -> None:
    heard: list[tuple[Touched, bool]] = []
    store.listeners.append(lambda t: heard.append((t, "chat" in store.groups)))
    async with store.write() as tx:
        tx.put_group(a_group())
        tx.event("saved", plainly("x"), group="chat")
    ((touched, there),) = heard
    assert there
    assert touched.groups == {"chat"}
    assert [e.seq for e in touched.events] == [1]


async def test_dropping(store: Store) -> None:
    async with store.write() as tx:
        tx.put_group(a_group())
        tx.put_instance(an_instance())
    async with store.write() as tx:
        tx.drop_instance(an_instance())
        tx.drop_group("chat")
    assert store.groups == store.instances == {}
    async with store.write() as tx:
        tx.put_group(a_group())
    assert store.of_group("chat") == []


async def test_history_is_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backend.store.store.EVENTS_KEPT", 500)
    for _ in range(3):
        async with store.write() as tx:
            for n in range(500):
                tx.event("tick", plainly(f"{n}"), group="chat")
    kept = await store.events(limit=5000)
    assert len(kept) <= 1000
    assert kept[-1].seq == 1500
    assert [e.seq for e in kept] == sorted(e.seq for e in kept)


async def test_a_store_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    with sqlite3.connect(path) as raw:
        raw.execute("PRAGMA user_version = 999")
    raw.close()
    store = Store(path)
    with pytest.raises(Refused) as caught:
        await store.open()
    assert caught.value.problem.rule == "store.newer"
    assert "999" in caught.value.problem.message
    await store.close()


async def test_a_network_file_system_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(db, "file_system", lambda path: "nfs4")
    with pytest.raises(Refused, match="nfs4"):
        await Store(tmp_path / "store.sqlite3").open()


def test_the_file_system_is_that_of_the_longest_mount() -> None:
    assert db.file_system(Path("/proc/self")) == "proc"
    assert db.file_system(Path("/")) != "proc"


async def test_lines_of_an_earlier_version_keep_their_words(tmp_path: Path) -> None:
    """A store from before lines were kept as data."""
    path = tmp_path / "store.sqlite3"
    steps = sorted(
        (resources.files("backend.store") / "migrations").iterdir(), key=lambda f: f.name
    )
    with closing(sqlite3.connect(path)) as db:
        for step in steps[:2]:
            db.executescript(step.read_text())
        db.execute("PRAGMA user_version = 2")
        db.execute(
            "INSERT INTO events (at, kind, level, group_name, instance, host, actor, message) "
            "VALUES (1, 'saved', 'info', 'chat', '', '', 'ada', 'chat is saved')"
        )
        db.commit()
    store = Store(path)
    await store.open()
    async with store.write() as tx:
        tx.event("saved", said("saved.first", name="chat"), group="chat")
    old, new = await store.events("chat")
    assert (old.message, old.said) == ("chat is saved", None)
    assert (new.message, new.said) == ("chat is saved", said("saved.first", name="chat"))
    await store.close()
