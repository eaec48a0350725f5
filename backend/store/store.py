"""What is known, in memory, and written through to SQLite before anything acts on it."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from backend.domain.access import Token
from backend.domain.caches import CacheDocument
from backend.domain.errors import Refused
from backend.domain.group import Group, Instance
from backend.domain.host import STORED, Host
from backend.domain.telling import Said, plainly, rewritten, told
from backend.domain.views import EventView
from backend.redaction import PROCESS, secret_values
from backend.store.answers import Answers
from backend.store.db import Database
from backend.store.rows import Instances

EVENTS_KEPT = 20_000
"""History lines kept; older ones are dropped a thousand at a time."""

Statement = tuple[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Intent:
    """An act that was decided and not yet confirmed. `body` is what its repetition needs."""

    key: str
    kind: str
    group: str
    body: dict[str, Any] = field(default_factory=dict)


@dataclass
class Write:
    """One transaction in the making: everything in it is stored together, or nothing is."""

    statements: list[Statement] = field(default_factory=list)
    apply: list[Callable[[], None]] = field(default_factory=list)
    groups: set[str] = field(default_factory=set)
    hosts: set[str] = field(default_factory=set)
    events: list[EventView] = field(default_factory=list)


@dataclass(frozen=True)
class Touched:
    """What a transaction changed: names of groups and hosts, and its new history lines."""

    groups: frozenset[str]
    hosts: frozenset[str]
    events: tuple[EventView, ...]


def _dropper(table: dict[str, Any], key: str) -> Callable[[], None]:
    def drop() -> None:
        table.pop(key, None)

    return drop


class Transaction:
    """The changes a caller puts into one transaction."""

    def __init__(self, store: Store, now: float) -> None:
        self._store, self._write, self.now = store, Write(), now

    def put_host(self, host: Host) -> None:
        """Add or replace an inventory entry."""
        self._put("hosts", "name", host.name, host.model_dump_json())
        self._write.hosts.add(host.name)
        self._write.apply.append(lambda: self._store.hosts.__setitem__(host.name, host))

    def drop_host(self, name: str) -> None:
        """Remove an inventory entry."""
        self._write.statements.append(("DELETE FROM hosts WHERE name = ?", (name,)))
        self._write.hosts.add(name)
        self._write.apply.append(_dropper(self._store.hosts, name))

    def put_cache(self, cache: CacheDocument) -> None:
        """Add or replace a cache service."""
        self._put("caches", "name", cache.name, cache.model_dump_json(by_alias=True))
        self._write.apply.append(lambda: self._store.caches.__setitem__(cache.name, cache))

    def drop_cache(self, name: str) -> None:
        """Remove a cache service."""
        self._write.statements.append(("DELETE FROM caches WHERE name = ?", (name,)))
        self._write.apply.append(_dropper(self._store.caches, name))

    def put_token(self, token: Token) -> None:
        """Add a token."""
        self._put("tokens", "name", token.name, token.model_dump_json())
        self._write.apply.append(lambda: self._store.tokens.__setitem__(token.name, token))

    def drop_token(self, name: str) -> None:
        """Forget a token."""
        self._write.statements.append(("DELETE FROM tokens WHERE name = ?", (name,)))
        self._write.apply.append(_dropper(self._store.tokens, name))

    def put_group(self, group: Group) -> None:
        """Add or replace a group."""
        _remember(group)
        self._put("groups", "name", group.name, group.model_dump_json())
        self._write.groups.add(group.name)
        self._write.apply.append(lambda: self._store.groups.__setitem__(group.name, group))

    def drop_group(self, name: str) -> None:
        """Remove a group that has no instance left."""
        self._write.statements.append(("DELETE FROM groups WHERE name = ?", (name,)))
        self._write.groups.add(name)
        self._write.apply.append(_dropper(self._store.groups, name))

    def save_document(self, group: Group, actor: str) -> None:
        """Keep the group's present document in its history."""
        self._write.statements.append(
            (
                "INSERT INTO documents VALUES (?, ?, ?, ?, ?)",
                (
                    group.name,
                    group.version,
                    self.now,
                    actor,
                    json.dumps(group.document.document()),
                ),
            )
        )

    def put_instance(self, instance: Instance) -> None:
        """Add or replace an instance."""
        self._write.statements.append(
            (
                "INSERT INTO instances VALUES (?, ?, ?) "
                "ON CONFLICT (id) DO UPDATE SET body = excluded.body",
                (instance.id, instance.group, instance.model_dump_json()),
            )
        )
        self._write.groups.add(instance.group)
        self._write.apply.append(lambda: self._store.instances.__setitem__(instance.id, instance))

    def drop_instance(self, instance: Instance) -> None:
        """Remove an instance that is confirmed gone."""
        self._write.statements.append(("DELETE FROM instances WHERE id = ?", (instance.id,)))
        self._write.groups.add(instance.group)
        self._write.apply.append(_dropper(self._store.instances, instance.id))
        for intent in self._store.intents.values():
            if intent.body.get("id") == instance.id:
                self.close_intent(intent.key)

    def open_intent(self, intent: Intent) -> None:
        """Write down what is about to be done; the same key again replaces it."""
        self._write.statements.append(
            (
                "INSERT OR REPLACE INTO intents VALUES (?, ?, ?, ?, ?)",
                (intent.key, intent.kind, intent.group, self.now, json.dumps(intent.body)),
            )
        )
        self._write.apply.append(lambda: self._store.intents.__setitem__(intent.key, intent))

    def close_intent(self, key: str) -> None:
        """The act is confirmed, or given up for good."""
        self._write.statements.append(("DELETE FROM intents WHERE key = ?", (key,)))
        self._write.apply.append(_dropper(self._store.intents, key))

    def event(self, kind: str, what: Said | str, **about: str) -> None:
        """Add a history line; a text is told as it is.

        `about`: group, instance, host, actor, level.
        """
        what = plainly(what) if isinstance(what, str) else what
        what = rewritten(what, PROCESS.hide_values)
        view = EventView(
            seq=0, at=self.now, kind=kind, message=told(what, "en"), said=what, **about
        )
        self._write.events.append(view)

    def tell(self, kind: str, instance: Instance, what: Said, **about: str) -> None:
        """Add a history line about an instance: its group and host go with it."""
        at = {"group": instance.group, "instance": instance.id, "host": instance.host}
        self.event(kind, what, **at, **about)

    def _put(self, table: str, key: str, value: str, body: str) -> None:
        self._write.statements.append(
            (
                f"INSERT INTO {table} ({key}, body) VALUES (?, ?) "  # noqa: S608 names are ours
                f"ON CONFLICT ({key}) DO UPDATE SET body = excluded.body",
                (value, body),
            )
        )


class Store:
    """Everything known. Reads are of memory and at once; writes are stored before they show.

    `id` names this store to the hosts: what carries another id is another backend's.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._db = Database(path)
        self._clock = clock
        self.id = ""
        self.hosts: dict[str, Host] = {}
        self.caches: dict[str, CacheDocument] = {}
        self.tokens: dict[str, Token] = {}
        self.answers = Answers(self._db)
        self.groups: dict[str, Group] = {}
        self.instances = Instances()
        self.intents: dict[str, Intent] = {}
        self.listeners: list[Callable[[Touched], None]] = []
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._commits: set[asyncio.Future[None]] = set()

    @property
    def ailment(self) -> str:
        """Why nothing can be stored now; empty while it can."""
        return self._db.ailment

    async def open(self) -> None:
        """Open the file and read everything in it."""
        await self._db.open()
        await self._db.transaction(self._load)

    def _load(self, db: sqlite3.Connection) -> None:
        row = db.execute("SELECT value FROM meta WHERE key = 'id'").fetchone()
        if row is None:
            row = (uuid.uuid4().hex[:12],)
            db.execute("INSERT INTO meta VALUES ('id', ?)", row)
        self.id = row[0]
        try:
            self._read(db)
        except ValidationError as error:
            raise Refused.of(
                "store.damaged",
                f"the store holds a row this version cannot read: {error.title}, "
                f"{error.errors()[0]['msg']}.",
                values={"row": error.title},
                remedy="Restore a backup, or move the store away and run `pdtui adopt`.",
            ) from None

    def _read(self, db: sqlite3.Connection) -> None:
        for name, body in db.execute("SELECT name, body FROM hosts"):
            self.hosts[name] = Host.model_validate_json(body, context=STORED)
        for name, body in db.execute("SELECT name, body FROM caches"):
            self.caches[name] = CacheDocument.model_validate_json(body)
        for name, body in db.execute("SELECT name, body FROM tokens"):
            self.tokens[name] = Token.model_validate_json(body)
        for name, body in db.execute("SELECT name, body FROM groups"):
            group = self.groups[name] = Group.model_validate_json(body)
            _remember(group)
        for key, body in db.execute("SELECT id, body FROM instances"):
            self.instances[key] = Instance.model_validate_json(body)
        for key, kind, group, body in db.execute("SELECT key, kind, group_name, body FROM intents"):
            self.intents[key] = Intent(key, kind, group, json.loads(body))

    async def answer(self) -> None:
        """Answers when the store's thread does: for whoever watches that we are alive."""
        await self._db.call(lambda db: db.execute("SELECT 1").fetchone())

    async def close(self) -> None:
        """Finish what is being stored, then close the file."""
        await asyncio.gather(*self._commits, return_exceptions=True)
        await self._db.close()

    def lock(self, group: str) -> asyncio.Lock:
        """Held while a group is read, changed and written back; never across a network call."""
        return self._locks[group]

    def of_group(self, name: str) -> list[Instance]:
        """The group's instances, oldest name first."""
        return self.instances.of_group(name)

    def on_host(self, name: str) -> list[Instance]:
        """Our instances on a host."""
        return self.instances.on_host(name)

    @asynccontextmanager
    async def write(self) -> AsyncIterator[Transaction]:
        """A transaction: stored when the block ends without an error, then shown and announced."""
        tx = Transaction(self, self._clock())
        yield tx
        write = tx._write
        if not write.statements and not write.events:
            return
        commit = asyncio.ensure_future(self._commit(write))
        self._commits.add(commit)
        commit.add_done_callback(self._commits.discard)
        await asyncio.shield(commit)

    async def _commit(self, write: Write) -> None:
        """Store, then show: finished even when the caller is cancelled meanwhile."""
        stored = await self._db.transaction(lambda db: _execute(db, write))
        for change in write.apply:
            change()
        touched = Touched(frozenset(write.groups), frozenset(write.hosts), tuple(stored))
        for listener in self.listeners:
            listener(touched)

    async def events(
        self, group: str | None = None, limit: int = 200, before: int | None = None
    ) -> tuple[EventView, ...]:
        """The newest history lines (with `before`, those older than that number), oldest first."""

        def read(db: sqlite3.Connection) -> tuple[EventView, ...]:
            of_group = "group_name = ? AND " if group else ""
            rows = db.execute(
                f"SELECT * FROM events WHERE {of_group} seq < ? "  # noqa: S608
                "ORDER BY seq DESC LIMIT ?",
                (*([group] if group else []), before or 2**62, limit),
            ).fetchall()
            return tuple(_event(r) for r in reversed(rows))

        return await self._db.call(read)

    async def documents(self, group: str) -> list[tuple[int, float, str, dict[str, Any]]]:
        """Earlier documents of a group, newest first: version, when, who, what."""

        def read(db: sqlite3.Connection) -> list[tuple[int, float, str, dict[str, Any]]]:
            rows = db.execute(
                "SELECT version, saved_at, actor, body FROM documents WHERE group_name = ? "
                "ORDER BY saved_at DESC",
                (group,),
            )
            return [(v, at, who, json.loads(body)) for v, at, who, body in rows]

        return await self._db.call(read)


def _remember(group: Group) -> None:
    """Secrets of the saved document are hidden wherever someone repeats them."""
    for env in group.document.spec.environments():
        PROCESS.remember(secret_values(env))


def _execute(db: sqlite3.Connection, write: Write) -> list[EventView]:
    for sql, args in write.statements:
        db.execute(sql, args)
    stored = []
    for e in write.events:
        cursor = db.execute(
            "INSERT INTO events (at, kind, level, group_name, instance, host, actor, message, said)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                e.at,
                e.kind,
                e.level,
                e.group,
                e.instance,
                e.host,
                e.actor,
                e.message,
                e.said.model_dump_json() if e.said is not None else "",
            ),
        )
        seq = cursor.lastrowid or 0
        stored.append(e.model_copy(update={"seq": seq}))
        if seq % 1000 == 0:
            db.execute("DELETE FROM events WHERE seq <= ?", (seq - EVENTS_KEPT,))
    return stored


def _event(row: tuple[Any, ...]) -> EventView:
    seq, at, kind, level, group, instance, host, actor, message, said = row
    return EventView(
        seq=seq, at=at, kind=kind, level=level, group=group, instance=instance, host=host,
        actor=actor, message=message, said=Said.model_validate_json(said) if said else None,
    )  # fmt: skip
