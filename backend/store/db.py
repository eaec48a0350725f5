"""One SQLite connection on one thread: WAL, numbered migrations, short transactions."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TypeVar

from backend.domain.errors import Refused, StoreFull
from backend.store.backups import before_migration

T = TypeVar("T")

NETWORK_FILE_SYSTEMS = frozenset(
    {
        "nfs", "nfs4", "cifs", "smb2", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "gpfs",
        "beegfs", "glusterfs", "ocfs2", "gfs2", "davfs", "fuse.sshfs", "fuse.glusterfs",
        "fuse.ceph-fuse", "fuse.davfs2", "fuse.juicefs", "fuse.s3fs",
    }
)  # fmt: skip
LEAST = 1 << 20
"""Bytes: with less free than this, a failed write is the disk's fullness."""


class Database:
    """A connection that only its own thread touches; calls are queued in order."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")
        self._db: sqlite3.Connection | None = None
        self._inode = 0
        self.ailment = ""
        """Why nothing could be stored last time; empty after a success."""

    async def open(self) -> None:
        """Open the file (mode 0600) and bring its schema up to date.

        Raises Refused (`store.network_fs`, `store.newer`) for a place or a file it cannot trust.
        """
        kind = file_system(self.path.parent)
        if kind in NETWORK_FILE_SYSTEMS:
            raise Refused.of(
                "store.network_fs",
                f"the state directory {self.path.parent} is on {kind}, where SQLite's "
                "write-ahead log is not safe.",
                values={"path": str(self.path.parent), "file system": kind},
                remedy="Point XDG_STATE_HOME or --state-dir at a local disk.",
            )
        try:
            await self.call(self._open)
        except sqlite3.DatabaseError as error:
            raise Refused.of(
                "store.damaged",
                f"{self.path} cannot be used as the store: {error}.",
                values={"path": str(self.path), "error": str(error)},
                remedy="Restore a backup, or move the file away and run `pdtui adopt`.",
            ) from error

    def _open(self, _: sqlite3.Connection | None = None) -> None:
        self.path.touch(mode=0o600, exist_ok=True)
        self._inode = self.path.stat().st_ino
        self._db = sqlite3.connect(self.path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.execute("PRAGMA foreign_keys = ON")
        self._db.execute("PRAGMA busy_timeout = 5000")
        _migrate(self._db, self.path)

    async def call(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work(connection)` on the store's thread, outside any transaction."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, lambda: work(self._db))  # type: ignore[arg-type]

    async def transaction(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work(connection)` in one transaction: all of it is stored, or nothing."""

        def in_transaction(db: sqlite3.Connection) -> T:
            self._still_there()
            try:
                db.execute("BEGIN IMMEDIATE")
                result = work(db)
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:  # a full disk may have ended it already
                    db.execute("ROLLBACK")
                raise
            self.ailment = ""
            return result

        try:
            return await self.call(in_transaction)
        except sqlite3.OperationalError as error:
            full = self._full(error)
            if full is None:
                raise
            self.ailment = full.problem.message
            raise full from error

    def _full(self, error: sqlite3.OperationalError) -> StoreFull | None:
        """What an error means when there is no room; None when it means something else."""
        no_room = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_FULL
        free = shutil.disk_usage(self.path.parent).free
        if not no_room and (error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_IOERR or free > LEAST):
            return None
        return StoreFull.of(
            "store.full",
            f"nothing is stored: there is no room for {self.path} ({free} bytes are free).",
            values={"path": str(self.path), "free_bytes": free},
            remedy="Make room there. What is known is still shown, groups run on, and storing "
            "works again by itself.",
        )

    def _still_there(self) -> None:
        """Raises Refused when the file was removed or replaced: what is written would be lost."""
        try:
            there = self.path.stat().st_ino == self._inode
        except FileNotFoundError:
            there = False
        if not there:
            raise Refused.of(
                "store.gone",
                f"the store {self.path} was removed or replaced while this backend runs; nothing "
                "more can be kept.",
                values={"path": str(self.path)},
                remedy="Put the file back, or restart the backend and run `pdtui adopt`.",
            )

    async def close(self) -> None:
        """Close the connection and end its thread."""
        await self.call(lambda db: db.close() if db is not None else None)
        self._thread.shutdown(wait=True)


def _steps() -> list[Traversable]:
    folder = resources.files("backend.store") / "migrations"
    return sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)


def known_schema() -> int:
    """The schema that this version writes."""
    return len(_steps())


def refuse_newer(store: Path) -> None:
    """Raises Refused (`store.newer`) for a store of a newer version; nothing for one that is not
    there or cannot be read, which is found when it is opened."""
    try:
        db = sqlite3.connect(f"{store.resolve().as_uri()}?mode=ro", uri=True, timeout=5)
    except sqlite3.Error:
        return
    try:
        have: int = db.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.Error:
        return
    finally:
        db.close()
    _refuse_newer(have)


def _refuse_newer(have: int) -> None:
    if have > known_schema():
        raise Refused.of(
            "store.newer",
            f"the store was written by a newer version (schema {have}, this one knows "
            f"{known_schema()}).",
            values={"schema": have, "known": known_schema()},
            remedy="Upgrade pdtui, or restore the backup made before the upgrade.",
        )


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    have: int = db.execute("PRAGMA user_version").fetchone()[0]
    steps = _steps()
    _refuse_newer(have)
    if 0 < have < len(steps):
        before_migration(db, path, have)
    for number, step in enumerate(steps, start=1):
        if number <= have:
            continue
        script = f"BEGIN;\n{step.read_text()}\nPRAGMA user_version = {number};\nCOMMIT;"
        db.executescript(script)


def file_system(path: Path) -> str:
    """Type of the file system that holds `path`, empty where /proc does not say."""
    try:
        mounts = Path("/proc/self/mounts").read_text().splitlines()
    except OSError:
        return ""
    best = ("", "")
    where = str(path.resolve())
    for line in mounts:
        _, point, kind, *_ = line.split()
        point = point.replace("\\040", " ")
        inside = where == point or where.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best[0]):
            best = (point, kind)
    return best[1]
