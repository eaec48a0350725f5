"""What a shell completes: names from the store, quickly, and nothing where there is none."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from backend.client.names import names

ROOT = Path(__file__).parents[3]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A store with two groups, a host and an instance."""
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    with sqlite3.connect(folder / "store.sqlite3") as store:
        for table in ("groups", "hosts", "caches"):
            store.execute(f"CREATE TABLE {table} (name TEXT, body TEXT)")
        store.execute("CREATE TABLE instances (id TEXT, group_name TEXT, body TEXT)")
        store.execute("INSERT INTO groups VALUES ('chat', ''), ('code', '')")
        store.execute("INSERT INTO hosts VALUES ('gpu-1', '')")
        store.execute("INSERT INTO instances VALUES ('chat-prefill-0', 'chat', '')")
    store.close()
    return folder


def test_names_come_from_the_store(state: Path) -> None:
    assert names(state, "groups") == ["chat", "code"]
    assert names(state, "hosts") == ["gpu-1"]
    assert names(state, "caches") == []
    assert names(state, "instances") == ["chat-prefill-0"]
    assert {"vllm-nixl", "sglang-mooncake", "custom"} <= set(names(state, "modes"))


def test_a_store_that_is_not_there_or_broken_gives_none(tmp_path: Path) -> None:
    assert names(tmp_path / "none", "groups") == []
    assert not (tmp_path / "none").exists()
    (tmp_path / "store.sqlite3").write_text("no database at all")
    assert names(tmp_path, "groups") == []


def completed(state: Path, words: str) -> list[str]:
    """What bash is given after `words`."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PDTUI_")}
    env |= {"PDTUI_STATE_DIR": str(state), "COMP_WORDS": words, "_PDTUI_COMPLETE": "complete_bash",
            "COMP_CWORD": str(len(words.split(" ")) - 1)}  # fmt: skip
    script = "import sys; sys.argv = ['pdtui']; from pdtui.cli import app; app(prog_name='pdtui')"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("pdtui get ", ["chat", "code"]),
        ("pdtui get ch", ["chat"]),
        ("pdtui logs chat-p", ["chat-prefill-0"]),
        ("pdtui hosts test ", ["gpu-1"]),
        ("pdtui scale chat pre", ["prefill="]),
        ("pdtui get -o ", ["table", "wide", "json", "yaml"]),
        ("pdtui comple", ["completion"]),
    ],
)
def test_bash_is_offered_names_and_values(state: Path, words: str, offered: list[str]) -> None:
    assert completed(state, words) == offered


def test_completing_loads_nothing_slow() -> None:
    script = (
        "import json, sys, pathlib\nfrom backend.client.names import names\nimport pdtui.cli\n"
        "names(pathlib.Path('/nowhere'), 'groups')\nnames(None, 'modes')\n"
        "print([m for m in ('pydantic', 'yaml', 'httpx', 'asyncssh') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60,
        check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_one_that_the_shell_reads(shell: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pdtui", "completion", shell],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert "_PDTUI_COMPLETE" in done.stdout
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=done.stdout, text=True, timeout=60, check=True)
