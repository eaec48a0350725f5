"""`pdtui check`: on its own, and through a backend that lives."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
GOOD = """\
apiVersion: pdtui/v1
kind: Deployment
metadata: {name: good}
spec:
  model: /m
  engine: vllm
  parameters: [--max-model-len, 32k]
  disaggregation: {mode: vllm-nixl}
"""
BAD = GOOD.replace("good", "bad") + "  roles: {decode: {parameters: ['--max-model-len=16k']}}\n"
DOUBTFUL = GOOD.replace("good", "doubtful") + "  roles: {decode: {parameters: []}}\n"
BROKEN = "apiVersion: [pdtui\n"
UNKNOWN = GOOD.replace("good", "unknown").replace("  model:", "  modle:")


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PDTUI_", "XDG_"))}
    return {**kept, "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(runtime)}


def check(env: dict[str, str], text: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pdtui", "check", "-", *options], cwd=ROOT, env=env, input=text,
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "code", "rules"),
    [
        (GOOD, 0, []),
        (BAD, 1, ["pairing.max_model_len"]),
        (DOUBTFUL, 0, ["pairing.max_model_len"]),
        (UNKNOWN, 2, ["structure.missing_field", "structure.unknown_field"]),
        (BROKEN, 2, ["file.yaml"]),
        ("- 1\n", 2, ["structure.document"]),
        (f"{BAD}---\n{BROKEN}---\n{DOUBTFUL}", 2,
         ["file.yaml", "pairing.max_model_len", "pairing.max_model_len"]),
        (f"---\n{GOOD}--- \n{BAD}...\n", 1, ["pairing.max_model_len"]),
    ],
)  # fmt: skip
def test_alone(env: dict[str, str], text: str, code: int, rules: list[str]) -> None:
    """One broken document does not hide the others' verdicts; 2 outweighs 1."""
    done = check(env, text, "--json")
    assert done.returncode == code, done.stderr
    body = json.loads(done.stdout)
    assert sorted(v["rule"] for v in body["verdicts"]) == rules
    for v in body["verdicts"]:
        assert {"rule", "verdict", "path", "values", "message", "remedy"} <= set(v)
    judged = text not in (UNKNOWN, BROKEN, "- 1\n")
    assert body["skipped"] == (["host.*: no host in the inventory"] if judged else [])


def test_a_broken_document_is_named_by_its_line(env: dict[str, str]) -> None:
    done = check(env, f"{GOOD}---\n{BROKEN}", "--json")
    (verdict,) = json.loads(done.stdout)["verdicts"]
    assert verdict["values"]["line"] == GOOD.count("\n") + 3


def test_a_file_that_cannot_be_read(env: dict[str, str], tmp_path: Path) -> None:
    for path, text in (("gone.yaml", None), ("empty.yaml", "# nothing\n"), ("raw.yaml", b"\xff")):
        file = tmp_path / path
        if text is not None:
            file.write_bytes(text if isinstance(text, bytes) else text.encode())
        done = subprocess.run(
            [sys.executable, "-m", "pdtui", "check", str(file)], cwd=ROOT, env=env,
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (2, "")
        assert path in done.stderr


def test_as_text(env: dict[str, str]) -> None:
    done = check(env, f"{BAD}---\n{DOUBTFUL}")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("refused     bad: spec.roles.decode.parameters[0]: prefill serves")
    assert lines[0].endswith("[pairing.max_model_len]")
    assert lines[1].strip() == "Give both roles the same --max-model-len."
    assert lines[-2] == "skipped     host.*: no host in the inventory"
    assert lines[-1] == "2 documents: 1 refused, 1 unverified"
    fine = check(env, GOOD)
    assert fine.stdout.splitlines()[-1] == "1 document: nothing found"


def test_all_lists_what_is_fine(env: dict[str, str]) -> None:
    body = json.loads(check(env, BAD, "--all", "--json").stdout)
    by_rule = {v["rule"]: v["verdict"] for v in body["verdicts"]}
    assert by_rule["pairing.max_model_len"] == "refused"
    assert by_rule["pairing.dtype"] == "fine"
    assert not any(r.startswith("host.") for r in by_rule)


def test_the_users_own_catalogue_counts(env: dict[str, str], tmp_path: Path) -> None:
    script = "from backend.paths import Paths; print(Paths.default(None).catalogue)"
    where = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=env, capture_output=True, text=True,
        timeout=60, check=True,
    )  # fmt: skip
    catalogue = Path(where.stdout.strip())
    assert catalogue.is_relative_to(tmp_path)
    catalogue.parent.mkdir(parents=True, exist_ok=True)
    catalogue.write_text(
        "version: 1\nmodes:\n  mine:\n    extends: vllm-nixl\n    pairing: {must_agree: []}\n"
    )
    done = check(env, BAD.replace("vllm-nixl", "mine"), "--json")
    assert (done.returncode, json.loads(done.stdout)["verdicts"]) == (0, [])


def test_alone_it_loads_no_server_and_no_screen(env: dict[str, str]) -> None:
    script = (
        "import sys, json\n"
        "from pdtui.cli import app\n"
        "sys.argv = ['pdtui', 'check', '-']\n"
        "try:\n    app()\nexcept SystemExit as done:\n    assert done.code == 0, done.code\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=env, input=GOOD,
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    loaded = {n.partition(".")[0] for n in json.loads(done.stdout.splitlines()[-1])}
    heavy = {"asyncssh", "fastapi", "starlette", "uvicorn", "httpx", "textual", "plotext"}
    assert not loaded & (heavy | {"asyncio", "ssl", "ruamel"})


@pytest.fixture
def daemon(env: dict[str, str], tmp_path: Path) -> Iterator[Path]:
    """A backend that lives, by its state directory."""
    state = tmp_path / "state"
    process = subprocess.Popen(
        [sys.executable, "-m", "pdtui", "--state-dir", str(state), "daemon"], cwd=ROOT, env=env,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield state
    finally:
        process.terminate()
        process.wait(30)


def test_a_living_backend_is_asked(env: dict[str, str], daemon: Path) -> None:
    """It knows its inventory: a host that it lacks is refused, which nobody can tell alone."""
    text = f"{BROKEN}---\n{UNKNOWN}---\n{GOOD}  hosts: {{names: [gpu-9]}}\n"
    alone = json.loads(check(env, text, "--json").stdout)
    assert [v["rule"] for v in alone["verdicts"]] == [
        "file.yaml", "structure.missing_field", "structure.unknown_field",
    ]  # fmt: skip
    body: dict[str, Any] = {}
    for _ in range(300):
        done = subprocess.run(
            [sys.executable, "-m", "pdtui", "--state-dir", str(daemon), "check", "-", "--json"],
            cwd=ROOT, env=env, input=text, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        body = json.loads(done.stdout)
        if any(v["rule"] == "host.unknown" for v in body["verdicts"]):
            break
        time.sleep(0.1)
    assert done.returncode == 2
    assert [v["rule"] for v in body["verdicts"]] == [
        "file.yaml", "structure.missing_field", "structure.unknown_field", "host.unknown",
    ]  # fmt: skip
