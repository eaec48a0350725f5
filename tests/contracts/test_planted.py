"""The search for planted secrets itself: it finds what leaks, and tells it from what is kept."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import lanes, planted


def write(path: Path, text: str, mode: int = 0o600) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    ("name", "mode", "leaks"),
    [
        ("state/store.sqlite3", 0o600, 0),
        ("state/store.sqlite3", 0o644, 1),
        ("state/store-schema-2.sqlite3", 0o600, 0),
        ("host/.pdtui/instances/a/env", 0o600, 0),
        ("host/.pdtui/instances/a/env", 0o640, 1),
        ("host/.pdtui/instances/a/spec.json", 0o600, 1),
        ("host/.pdtui/instances/a/g1/log", 0o600, 1),
        ("state/backend.log", 0o600, 1),
        ("state/export.txt", 0o600, 1),
        ("state/notes.json", 0o600, 1),
    ],
)
def test_where_a_secret_may_be_and_where_not(
    tmp_path: Path, name: str, mode: int, leaks: int
) -> None:
    search = planted.Search()
    write(tmp_path / "t" / name, f"a {planted.TEXT} b", mode)
    search.folder(tmp_path / "t")
    assert (len(search.leaks), search.kept) == (leaks, 1 - leaks)


def test_a_command_line_is_no_place_for_one() -> None:
    search = planted.Search(mark=b"t0ld-in-argv")  # the run's own search must not see it
    code = "import sys; print('here', flush=True); sys.stdin.read()"
    argv = [sys.executable, "-c", code, "--token", "t0ld-in-argv"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        search.processes()
        process.communicate(b"")
    assert len(search.leaks) == 1


def test_what_a_test_deletes_is_searched_before(tmp_path: Path) -> None:
    files = planted.SEARCH.files
    write(tmp_path / "t" / "x", "nothing")
    shutil.rmtree(tmp_path / "t")
    assert planted.SEARCH.files == files + 1


def test_what_an_earlier_run_left_is_not_this_runs_leak(tmp_path: Path) -> None:
    left = write(tmp_path / "garbage-1" / "state" / "backend.log", f"a {planted.TEXT} b")
    os.utime(left, (left.stat().st_atime, planted.SEARCH.since - 5))
    files, leaks = planted.SEARCH.files, len(planted.SEARCH.leaks)
    shutil.rmtree(tmp_path / "garbage-1")  # as pytest does with what is older than three runs
    assert (planted.SEARCH.files, planted.leaks_since(leaks)) == (files, [])


def test_a_leak_fails_the_run_and_so_does_a_run_that_saw_nothing() -> None:
    assert lanes.tell_secrets(planted.Search(files=9, kept=2, leaks=["x"]), whole=False)
    assert lanes.tell_secrets(planted.Search(files=9), whole=True)
    assert not lanes.tell_secrets(planted.Search(files=9), whole=False)
    assert not lanes.tell_secrets(planted.Search(files=9, kept=2), whole=True)
