"""Backup and restore: the store, the accepted host keys and the user's own modes in one file.

The file holds what the store holds, secrets of documents included: it is readable by its owner
only. Hosts are not touched: after a restore the backend finds what runs there and goes on.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import sqlite3
import tarfile
import tempfile
import time
import zlib
from dataclasses import dataclass, replace
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
            kept, body = _described(copy, target, version)
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


def _described(copy: Path, target: Path, version: str) -> tuple[Kept, dict[str, object]]:
    """`_describe` of what is to be backed up. Raises Refused for a store that is damaged."""
    try:
        return _describe(copy, target, version)
    except Invalid as error:
        why = error.problem.values["why"]
        raise Refused.of(
            "backup.damaged",
            f"nothing is backed up: {why}.",
            values={"file": str(target), "why": why},
            remedy="Restore an earlier backup, or move the store away and run `pdtui adopt`.",
        ) from None


def restore(paths: Paths, source: Path) -> Kept:
    """Put a backup in the place of what is there, which is moved aside and kept.

    Everything is judged before anything is moved. Raises Conflict (`daemon.owned`) while a backend
    runs, Invalid (`backup.unreadable`), Refused (`store.newer`, `restore.failed`).
    """
    with ownership(paths):
        files = _read(source)
        about = json.loads(files.pop(MANIFEST))
        try:
            kept, aside = _put(paths, source, files, str(about.get("version", "")))
        except OSError as error:
            raise Refused.of(
                "restore.failed",
                f"{source} could not be put in place: {error}.",
                values={"file": str(source), "error": str(error)},
                remedy="Check the state directory, its permissions and its free space; what was "
                f"moved already lies in {paths.state}/replaced-*.",
            ) from error
    return replace(kept, created=float(about["created"]), aside=aside)


def _put(paths: Paths, source: Path, files: dict[str, bytes], version: str) -> tuple[Kept, Path]:
    """Move aside what is there and put the files in its place; what they are and where that is."""
    with tempfile.TemporaryDirectory(dir=paths.state, prefix=".restore-") as folder:
        fresh = {name: Path(folder) / name for name in (STORE, *_others(paths)) if name in files}
        for name, path in fresh.items():
            _write(path, files[name])
        kept, _ = _describe(fresh[STORE], source, version)
        aside = Path(
            tempfile.mkdtemp(dir=paths.state, prefix=time.strftime("replaced-%Y%m%d-%H%M%S-"))
        )
        beside = [paths.store.with_name(paths.store.name + x) for x in ("", "-wal", "-shm")]
        for old in beside:
            if old.exists():
                old.replace(aside / old.name)
        fresh[STORE].replace(paths.store)
        for name, path in _others(paths).items():
            if name in fresh:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                if path.exists():
                    shutil.move(path, aside / name)  # it may lie on another file system
                shutil.move(fresh[name], path)
    return kept, aside


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
        float(about["created"])
        if about["format"] != FORMAT:
            raise _unreadable(source, f"its format is {about['format']}, this reads {FORMAT}")
        for name, digest in wanted.items():
            if hashlib.sha256(files[name]).hexdigest() != digest:
                raise _unreadable(source, f"{name} is not what was backed up")
        return {n: files[n] for n in (MANIFEST, *wanted)} | {STORE: files[STORE]}
    except PdError:
        raise
    except (
        OSError,
        EOFError,
        tarfile.TarError,
        zlib.error,
        LookupError,
        ValueError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
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
