"""Answers to writes that carried an idempotency key: asked again, they are given again."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

from backend.store.db import Database

MOST = 2_000
"""Answers kept; the oldest go first."""
KEEP_S = 24 * 3600.0
LARGEST = 256 * 1024
"""Bytes of an answer that is kept; a larger one is not, and its repetition is a new request."""


@dataclass(frozen=True)
class Answer:
    """One answer; `digest` tells what it was the answer to. Status 0: what was asked for was begun,
    and no answer was kept."""

    digest: str
    status: int
    headers: Mapping[str, str]
    body: bytes


class Answers:
    """The bounded table of answers. Keys of one caller are no other's."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def find(self, caller: str, key: str, now: float) -> Answer | None:
        """The answer that was given to this key, unless it is too old."""

        def read(db: sqlite3.Connection) -> Answer | None:
            row = db.execute(
                "SELECT digest, status, headers, body FROM answers "
                "WHERE caller = ? AND key = ? AND at > ?",
                (caller, key, now - KEEP_S),
            ).fetchone()
            return Answer(row[0], row[1], json.loads(row[2]), row[3]) if row else None

        return await self._db.call(read)

    async def begin(self, caller: str, key: str, digest: str, now: float) -> None:
        """Write down that a request is about to be done: when we die before its answer is kept, its
        repetition must not do it again unseen."""
        await self.keep(caller, key, Answer(digest, 0, {}, b""), now)

    async def drop(self, caller: str, key: str) -> None:
        """Forget a request that was begun: its repetition is a new one."""

        def write(db: sqlite3.Connection) -> None:
            db.execute("DELETE FROM answers WHERE caller = ? AND key = ?", (caller, key))

        await self._db.transaction(write)

    async def keep(self, caller: str, key: str, answer: Answer, now: float) -> None:
        """Keep an answer, and drop what is too old or too much."""
        if len(answer.body) > LARGEST:
            await self.drop(caller, key)
            return

        def write(db: sqlite3.Connection) -> None:
            db.execute(
                "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?)",
                (caller, key, answer.digest, now, answer.status,
                 json.dumps(dict(answer.headers)), answer.body),
            )  # fmt: skip
            db.execute("DELETE FROM answers WHERE at <= ?", (now - KEEP_S,))
            db.execute(
                "DELETE FROM answers WHERE rowid IN "
                "(SELECT rowid FROM answers ORDER BY at DESC LIMIT -1 OFFSET ?)",
                (MOST,),
            )

        await self._db.transaction(write)
