"""Copies of the store: one before each migration."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

KEPT = 3
"""Copies of earlier schemas that stay beside the store."""


def copy_to(db: sqlite3.Connection, target: Path) -> None:
    """A consistent copy, readable by the owner only, under its name only once it is whole."""
    part = target.with_name(f".{target.name}.part")
    part.unlink(missing_ok=True)
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    copy = sqlite3.connect(part)
    try:
        db.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")
    finally:
        copy.close()
    with part.open("rb") as file:
        os.fsync(file.fileno())
    part.replace(target)


def before_migration(db: sqlite3.Connection, store: Path, schema: int) -> Path:
    """Copy the store as it was written by an earlier version; the newest few copies are kept."""
    target = store.with_name(f"{store.stem}-schema-{schema}.sqlite3")
    copy_to(db, target)
    copies = sorted(
        store.parent.glob(f"{store.stem}-schema-*.sqlite3"), key=lambda p: p.stat().st_mtime_ns
    )
    for old in copies[:-KEPT]:
        old.unlink(missing_ok=True)
    return target
