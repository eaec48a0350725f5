"""The store over time: backups, restores, upgrades, a full disk; and the backend's own log."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import functools
import io
import json
import logging
import os
import sqlite3
import tarfile
import tempfile
from importlib import resources
from pathlib import Path

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.bootstrap import build
from backend.domain.documents import parse_deployment
from backend.domain.errors import Conflict, Invalid, NotFound, PdError, Refused, StoreFull
from backend.keeping import backup, restore
from backend.logsetup import OwnLog, Redacting
from backend.paths import Paths
from backend.redaction import PROCESS
from backend.services.backend import Backend
from backend.store import db as database
from backend.store.store import Store
from backend.takeover import ownership
from tests.backend.api.conftest import backend, http
from tests.backend.api.test_api import DOCUMENT

__all__ = ["backend", "http"]


def paths_in(folder: Path) -> Paths:
    return Paths(folder / "state", folder / "config", folder / "run")


async def save(paths: Paths, *names: str) -> None:
    async with build(paths) as running:
        for name in names:
            document = {**DOCUMENT, "metadata": {"name": name}}
            await running.groups.apply(parse_deployment(document), "me")


async def groups(paths: Paths) -> list[str]:
    async with build(paths) as running:
        return sorted(running.store.groups)


async def test_a_restore_brings_back_what_was_backed_up(tmp_path: Path) -> None:
    paths, file = paths_in(tmp_path), tmp_path / "kept.tar.gz"
    async with build(paths) as running:
        await running.groups.apply(parse_deployment(DOCUMENT), "me")
        paths.known_hosts.write_text("a key\n")
        owner = running.store.id
        kept = await asyncio.to_thread(backup, paths, file, "1.0")  # while it runs
    assert (kept.groups, kept.hosts) == (1, 0)
    assert file.stat().st_mode & 0o077 == 0
    await save(paths, "later")
    paths.known_hosts.write_text("another key\n")
    back = await asyncio.to_thread(restore, paths, file)
    assert back.groups == 1
    assert await groups(paths) == ["chat"]
    assert paths.known_hosts.read_text() == "a key\n"
    assert back.aside is not None
    assert (back.aside / "known_hosts").read_text() == "another key\n"
    with sqlite3.connect(back.aside / "store.sqlite3") as old:
        assert old.execute("SELECT count(*) FROM groups").fetchone() == (2,)
    old.close()
    async with build(paths) as running:
        assert running.store.id == owner  # the hosts know it by this
    for path in (paths.store, paths.known_hosts, back.aside):
        assert path.stat().st_mode & 0o077 == 0
    assert not list(paths.state.glob(".restore-*"))


async def test_a_backup_overwrites_nothing_and_needs_a_store(tmp_path: Path) -> None:
    paths = paths_in(tmp_path)
    paths.make()
    with pytest.raises(NotFound, match="no store"):
        backup(paths, tmp_path / "b", "1")
    await save(paths, "chat")
    (tmp_path / "b").write_text("mine")
    with pytest.raises(Refused, match="overwrites nothing"):
        backup(paths, tmp_path / "b", "1")
    with pytest.raises(Refused, match="could not be written"):
        backup(paths, tmp_path / "nowhere" / "b", "1")
    assert (tmp_path / "b").read_text() == "mine"


async def test_what_is_no_backup_changes_nothing(tmp_path: Path) -> None:
    paths, file = paths_in(tmp_path), tmp_path / "kept.tar.gz"
    await save(paths, "chat")
    backup(paths, file, "1")
    whole = file.read_bytes()
    (tmp_path / "text").write_text("nothing")
    (tmp_path / "half").write_bytes(whole[: len(whole) // 2])
    with tarfile.open(tmp_path / "other", "w:gz") as tar:
        tar.add(tmp_path / "text", "../../etc/passwd")
    with tarfile.open(file) as good, tarfile.open(tmp_path / "changed", "w:gz") as tar:
        for member in good:
            if member.name == "store.sqlite3":
                member.size -= 4096
            tar.addfile(member, good.extractfile(member.name))
    for name in ("text", "half", "other", "changed", "missing"):
        with pytest.raises(Invalid) as caught:
            restore(paths, tmp_path / name)
        assert caught.value.problem.rule == "backup.unreadable"
    assert await groups(paths) == ["chat"]
    assert not list(paths.state.glob("replaced-*"))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_backup_that_lost_bytes_is_restored_or_named(data: st.DataObject) -> None:
    """Whatever became of the file: nothing but our own errors, and nothing half done."""
    whole = _whole_backup()
    at = data.draw(st.integers(0, len(whole) - 1))
    cut = data.draw(st.integers(0, 3))
    changed = whole[:at] + data.draw(st.binary(max_size=3)) + whole[at + cut :]
    with tempfile.TemporaryDirectory() as folder:
        paths, file = paths_in(Path(folder)), Path(folder, "kept.tar.gz")
        file.write_bytes(changed)
        with contextlib.suppress(Invalid):
            assert restore(paths, file).groups == 1
        assert paths.store.exists() == bool(list(paths.state.glob("replaced-*")))
        assert not list(paths.state.glob(".restore-*"))


@functools.cache
def _whole_backup() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        paths, file = paths_in(Path(folder)), Path(folder, "kept.tar.gz")
        asyncio.run(save(paths, "chat"))
        backup(paths, file, "1")
        return file.read_bytes()


@pytest.mark.parametrize(
    "about",
    [[], {}, {"files": []}, {"files": {}, "format": 1, "created": "x"}, {"files": 1}, 7,
     {"files": {"store.sqlite3": 1}, "format": 1, "created": 0}],
)  # fmt: skip
def test_a_manifest_of_another_shape_changes_nothing(tmp_path: Path, about: object) -> None:
    paths, file = paths_in(tmp_path), tmp_path / "kept.tar.gz"
    text = json.dumps(about).encode()
    with tarfile.open(file, "w:gz") as tar:
        member = tarfile.TarInfo("manifest.json")
        member.size = len(text)
        tar.addfile(member, io.BytesIO(text))
    with pytest.raises(Invalid) as caught:
        restore(paths, file)
    assert caught.value.problem.rule == "backup.unreadable"
    assert not list(paths.state.glob("replaced-*"))


async def test_two_restores_in_one_second_keep_both_of_what_was_there(tmp_path: Path) -> None:
    paths, file = paths_in(tmp_path), tmp_path / "kept.tar.gz"
    await save(paths, "chat")
    backup(paths, file, "1")
    asides = {restore(paths, file).aside for _ in range(3)}
    assert len(asides) == 3
    assert all(a is not None and (a / "store.sqlite3").exists() for a in asides)


async def test_a_damaged_store_is_not_backed_up_as_if_it_were_well(tmp_path: Path) -> None:
    paths = paths_in(tmp_path)
    await save(paths, "chat")
    with sqlite3.connect(paths.store) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.execute("DROP TABLE groups")
    db.close()
    with pytest.raises(Refused) as caught:
        backup(paths, tmp_path / "b.tar.gz", "1")
    assert caught.value.problem.rule == "backup.damaged"
    assert not (tmp_path / "b.tar.gz").exists()


async def test_who_could_not_read_the_store_asks_nobody_to_go(tmp_path: Path) -> None:
    paths = paths_in(tmp_path)
    await save(paths, "chat")
    with sqlite3.connect(paths.store) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with ownership(paths):
        with pytest.raises(Refused) as caught, ownership(paths, version="0.1", takeover=True):
            pytest.fail("it took over")
        assert caught.value.problem.rule == "store.newer"


async def test_a_backup_of_a_newer_version_and_a_running_backend_are_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths, file = paths_in(tmp_path), tmp_path / "kept.tar.gz"
    await save(paths, "chat")
    backup(paths, file, "1")
    with ownership(paths), pytest.raises(Conflict, match=str(os.getpid())):
        restore(paths, file)
    with sqlite3.connect(paths.store) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    newer = tmp_path / "newer.tar.gz"
    with pytest.raises(Refused) as caught:
        backup(paths, newer, "9")
    assert caught.value.problem.rule == "store.newer"


async def test_an_upgrade_keeps_a_copy_of_the_store_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    folder = resources.files("backend.store") / "migrations"
    with sqlite3.connect(path) as db:
        db.executescript((folder / "0001_initial.sql").read_text())
        db.execute("INSERT INTO meta VALUES ('id', 'theirs')")
        db.execute("PRAGMA user_version = 1")
    db.close()
    store = Store(path)
    await store.open()
    assert store.id == "theirs"
    await store.close()
    copy_ = tmp_path / "store-schema-1.sqlite3"
    assert copy_.stat().st_mode & 0o777 == 0o600
    with sqlite3.connect(copy_) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
        assert db.execute("SELECT value FROM meta").fetchone() == ("theirs",)
    db.close()
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (database.known_schema(),)
    db.close()


async def _pages(backend: Backend, most: int | None) -> None:
    """Let the store grow no further, or as it likes: SQLite answers as on a full disk."""

    def limit(db: sqlite3.Connection) -> None:
        size = db.execute("PRAGMA page_count").fetchone()[0] if most is not None else 1 << 30
        db.execute(f"PRAGMA max_page_count = {size}")

    await backend.store._db.call(limit)


async def test_a_full_disk_refuses_writes_and_nothing_else(
    http: httpx.AsyncClient, backend: Backend
) -> None:
    assert (await http.put("/deployments/chat", json=DOCUMENT)).status_code == 200
    await _pages(backend, 0)
    large = copy.deepcopy(DOCUMENT)
    large["spec"]["env"] = {f"V{n}": "x" * 20_000 for n in range(20)}
    refused = await http.put("/deployments/chat", json=large)
    assert refused.status_code == 507, refused.text
    problem = refused.json()["problems"][0]
    assert problem["rule"] == "store.full"
    assert problem["values"]["path"] == str(backend.paths.store)
    assert "env" not in (await http.get("/deployments/chat")).json()["spec"]
    health = (await http.get("/health")).json()
    assert (health["status"], "no room" in health["note"]) == ("degraded", True)
    with pytest.raises(StoreFull):
        await backend.groups.apply(parse_deployment(large), "me")
    await _pages(backend, None)
    assert (await http.put("/deployments/chat", json=large)).status_code == 200
    assert (await http.get("/health")).json()["status"] == "ok"


@pytest.mark.parametrize("kind", ["nfs4", "fuse.sshfs", "9p", "lustre"])
async def test_no_store_on_a_network_file_system(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which kinds are refused; that the kind is read rightly is another test's."""
    monkeypatch.setattr(database, "file_system", lambda _: kind)
    with pytest.raises(Refused) as caught:
        await Store(tmp_path / "store.sqlite3").open()
    assert caught.value.problem.rule == "store.network_fs"
    assert not (tmp_path / "store.sqlite3").exists()


def _logger(path: Path, most: int) -> tuple[logging.Logger, OwnLog]:
    handler = OwnLog(path, maxBytes=most, backupCount=100)
    handler.setFormatter(Redacting("%(message)s"))
    logger = logging.Logger("own")
    logger.addHandler(handler)
    return logger, handler


def test_the_log_rotates_without_losing_a_line(tmp_path: Path) -> None:
    path = tmp_path / "backend.log"
    logger, handler = _logger(path, 500)
    for n in range(300):
        logger.info("line %03d", n)
        if n == 150:
            path.rename(tmp_path / "moved")  # as logrotate does
        if n == 250:
            path.unlink()  # as a person does
            lost = n
    handler.close()
    files = [*tmp_path.glob("backend.log*"), tmp_path / "moved"]
    lines = sorted(line for f in files for line in f.read_text().splitlines())
    assert len(files) > 3
    assert all(f.stat().st_mode & 0o077 == 0 for f in files)
    assert len(lines) == len(set(lines))
    missing = {f"line {n:03}" for n in range(300)} - set(lines)
    assert all(int(m.split()[1]) <= lost for m in missing)  # only what was deleted itself


def test_the_log_holds_no_secret_in_any_line(tmp_path: Path) -> None:
    logger, handler = _logger(tmp_path / "log", 10**6)
    PROCESS.remember(["correct horse battery"])
    logger.info("started with HF_TOKEN=hf_abcdefgh and %s", "--api-key sk-12345678")
    try:
        raise PdError.of("x", "the host says: correct horse battery")
    except PdError:
        logger.exception("it failed")
    handler.close()
    text = (tmp_path / "log").read_text()
    assert "Traceback" in text
    for secret in ("hf_abcdefgh", "sk-12345678", "correct horse battery"):
        assert secret not in text


async def test_an_event_and_an_error_repeat_no_secret(
    http: httpx.AsyncClient, backend: Backend
) -> None:
    document = copy.deepcopy(DOCUMENT)
    document["spec"]["env"] = {"DB_PASSWORD": "swordfish-77"}
    await http.put("/deployments/chat", json=document)
    async with backend.store.write() as tx:
        tx.event("told", "the engine says: cannot log in with swordfish-77", group="chat")
    assert "swordfish-77" not in (await http.get("/events")).text
    lost = await http.get("/groups/swordfish-77")
    assert lost.status_code == 404
    assert "swordfish-77" not in lost.text
