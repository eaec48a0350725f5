"""Backup and restore: the store, the accepted host keys and the user's own modes in one file.

The file holds what the store holds, secrets of documents included: it is readable by its owner
only. Hosts are not touched: after a restore the backend finds what runs there and goes on.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import sqlite3
import tarfile
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from backend.domain.errors import Invalid, NotFound, PdError, Refused
from backend.paths import Paths
from backend.store.backups import copy_to
from backend.store.db import known_schema
from backend.takeover import ownership

FORMAT = 1
MANIFEST = "manifest.json"
STORE = "store.sqlite3"
MOST_BYTES = 4 << 30


@dataclass(frozen=True)
class Kept:
    """What a backup holds. `aside` is where a restore put what was there before."""

    file: Path
    version: str
    schema: int
    created: float
    groups: int
    hosts: int
    aside: Path | None = None


def backup(paths: Paths, target: Path, version: str) -> Kept:
    """Write a backup to a new file, also while a backend runs on the store.

    Raises NotFound without a store, Refused (`backup.exists`, `backup.failed`).
    """
    if not paths.store.exists():
        raise NotFound.of(
            "backup.nothing",
            f"there is no store in {paths.state}.",
            values={"state_dir": str(paths.state)},
            remedy="Name the state directory with --state-dir.",
        )
    if target.exists():
        raise Refused.of(
            "backup.exists",
            f"{target} is there already; a backup overwrites nothing.",
            values={"file": str(target)},
            remedy="Choose another name.",
        )
    part = target.with_name(f".{target.name}.part")
    try:
        with tempfile.TemporaryDirectory(dir=paths.state, prefix=".backup-") as folder:
            copy = Path(folder) / STORE
            _copy(paths.store, copy)
            kept, body = _describe(copy, target, version)
            files = {STORE: copy.read_bytes()}
            for name, path in _others(paths).items():
                if path.exists():
                    files[name] = path.read_bytes()
        body["files"] = {n: hashlib.sha256(b).hexdigest() for n, b in files.items()}
        part.unlink(missing_ok=True)
        with (
            os.fdopen(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as out,
            tarfile.open(fileobj=out, mode="w:gz") as tar,
        ):
            for name, content in {MANIFEST: json.dumps(body, indent=2).encode(), **files}.items():
                _add(tar, name, content, kept.created)
        part.replace(target)
    except (OSError, sqlite3.Error) as error:
        part.unlink(missing_ok=True)
        raise Refused.of(
            "backup.failed",
            f"the backup {target} could not be written: {error}.",
            values={"file": str(target), "error": str(error)},
            remedy="Check the folder, its permissions and its free space.",
        ) from error
    return kept


def restore(paths: Paths, source: Path) -> Kept:
    """Put a backup in the place of what is there, which is moved aside and kept.

    Everything is judged before anything is moved. Raises Conflict (`daemon.owned`) while a backend
    runs, Invalid (`backup.unreadable`), Refused (`store.newer`).
    """
    with ownership(paths):
        files = _read(source)
        about = json.loads(files.pop(MANIFEST))
        with tempfile.TemporaryDirectory(dir=paths.state, prefix=".restore-") as folder:
            fresh = Path(folder) / STORE
            _write(fresh, files.pop(STORE))
            kept, _ = _describe(fresh, source, str(about.get("version", "")))
            aside = paths.state / time.strftime("replaced-%Y%m%d-%H%M%S")
            aside.mkdir(mode=0o700)
            beside = [paths.store.with_name(paths.store.name + s) for s in ("", "-wal", "-shm")]
            for old in beside:
                if old.exists():
                    old.replace(aside / old.name)
            fresh.replace(paths.store)
        for name, path in _others(paths).items():
            if name in files:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                if path.exists():
                    path.replace(aside / name)
                _write(path, files[name])
        return Kept(
            source, kept.version, kept.schema, float(about.get("created", 0)),
            kept.groups, kept.hosts, aside,
        )  # fmt: skip


def _others(paths: Paths) -> dict[str, Path]:
    return {"known_hosts": paths.known_hosts, "pd-modes.yaml": paths.catalogue}


def _copy(store: Path, target: Path) -> None:
    db = sqlite3.connect(f"{store.resolve().as_uri()}?mode=ro", uri=True)
    try:
        copy_to(db, target)
    finally:
        db.close()


def _describe(store: Path, file: Path, version: str) -> tuple[Kept, dict[str, object]]:
    """What a copy of a store holds. Raises Invalid for a damaged one, Refused for a newer one."""
    db = sqlite3.connect(store)
    try:
        if db.execute("PRAGMA integrity_check").fetchone() != ("ok",):
            raise _unreadable(file, "its store is damaged")
        schema: int = db.execute("PRAGMA user_version").fetchone()[0]
        groups: int = db.execute("SELECT count(*) FROM groups").fetchone()[0]
        hosts: int = db.execute("SELECT count(*) FROM hosts").fetchone()[0]
    except sqlite3.Error as error:
        raise _unreadable(file, f"its store is no store ({error})") from None
    finally:
        db.close()
    if schema > known_schema():
        raise Refused.of(
            "store.newer",
            f"{file} was written by a newer version (schema {schema}, this one knows "
            f"{known_schema()}).",
            values={"schema": schema, "known": known_schema()},
            remedy="Upgrade pdtui first.",
        )
    kept = Kept(file, version, schema, time.time(), groups, hosts)
    return kept, {
        "format": FORMAT, "version": version, "schema": schema, "created": kept.created,
    }  # fmt: skip


def _add(tar: tarfile.TarFile, name: str, content: bytes, at: float) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = len(content), 0o600, int(at)
    tar.addfile(info, io.BytesIO(content))


def _read(source: Path) -> dict[str, bytes]:
    """The files of a backup, each as its manifest has it. Raises Invalid."""
    try:
        files: dict[str, bytes] = {}
        with tarfile.open(source, "r:gz") as tar:
            for member in tar:
                content = tar.extractfile(member) if member.isreg() else None
                if content is None or member.size > MOST_BYTES:
                    raise _unreadable(source, f"{member.name!r} is none of a backup's files")
                files[member.name] = content.read()
        about = json.loads(files[MANIFEST])
        wanted = about["files"]
        if about["format"] != FORMAT:
            raise _unreadable(source, f"its format is {about['format']}, this reads {FORMAT}")
        for name, digest in wanted.items():
            if hashlib.sha256(files[name]).hexdigest() != digest:
                raise _unreadable(source, f"{name} is not what was backed up")
        return {n: files[n] for n in (MANIFEST, *wanted)} | {STORE: files[STORE]}
    except PdError:
        raise
    except (OSError, EOFError, tarfile.TarError, ValueError, KeyError, TypeError) as error:
        raise _unreadable(source, str(error) or type(error).__name__) from None


def _unreadable(file: Path, why: str) -> Invalid:
    return Invalid.of(
        "backup.unreadable",
        f"{file} is no backup that can be restored: {why}.",
        values={"file": str(file), "why": why},
        remedy="Choose a file that `pdtui backup` wrote. Nothing was changed.",
    )


def _write(path: Path, content: bytes) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
