"""The test run itself: both lanes count, an empty run fails, no tool is missing quietly."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
INI = "[pytest]\nmarkers =\n    slow: x\n    root: x\naddopts = --strict-markers\n"
GOOD = "def test_good():\n    pass\n"
SLOW = "import pytest\n\n\n@pytest.mark.slow\ndef test_slow():\n    assert {outcome}\n"
SKIP = "import pytest\n\n\ndef test_skip():\n    pytest.skip('why not')\n"
BROKEN = "import pytest\n@pytest.fixture\ndef f():\n    raise OSError\ndef test_f(f):\n    pass\n"
MOODY = """
from pathlib import Path

def test_moody():
    seen = Path("seen")
    first = not seen.exists()
    seen.touch()
    assert not first
"""
NEEDY = "import pytest\n\n\n@pytest.mark.needs('sh', 'no-such-tool')\ndef test_needy():\n    pass\n"
BARE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""For runs that need no plug-in: loading them all takes most of a small run's time."""


def python(folder: Path, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Runs Python in `folder` as a test run of its own, whatever run we are part of."""
    (folder / "pytest.ini").write_text(INI)
    outer = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "PDTUI_"))}
    return subprocess.run(
        [sys.executable, *args],
        cwd=folder, env={**outer, "PYTHONPATH": str(ROOT), **env},
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("texts", "code", "closing"),
    [
        ([GOOD, SLOW.format(outcome=True), SKIP], 0, "2 passed, 0 failed, 1 skipped"),
        ([GOOD, SLOW.format(outcome=False)], 1, "1 passed, 1 failed, 0 skipped"),
        ([GOOD, BROKEN], 1, "1 passed, 1 failed, 0 skipped"),
        ([SKIP], 5, "0 passed, 0 failed, 1 skipped"),
        ([GOOD, "import no_such_module\n"], 2, "0 passed, 2 failed, 0 skipped"),
    ],
    ids=["all well", "slow one fails", "fixture fails", "nothing ran", "each lane fails to load"],
)
def test_the_run_says_how_many_ran_and_fails_when_it_should(
    tmp_path: Path, texts: list[str], code: int, closing: str
) -> None:
    for number, text in enumerate(texts):
        (tmp_path / f"test_{number}.py").write_text(text)
    done = python(tmp_path, "-m", "tests.lanes", "--jobs", "1", ".", **BARE)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (code, closing), done.stdout


def test_what_failed_is_tried_once_more_alone_and_named(tmp_path: Path) -> None:
    (tmp_path / "test_0.py").write_text(GOOD)
    (tmp_path / "test_1.py").write_text(MOODY)
    done = python(tmp_path, "-m", "tests.lanes", "--jobs", "1", ".", **BARE)
    assert done.returncode == 0, done.stdout
    assert "unsteady, passed alone: test_1.py::test_moody" in done.stdout
    assert done.stdout.splitlines()[-1] == "2 passed, 0 failed, 0 skipped"


def test_the_fast_lane_may_be_shared_among_workers(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(GOOD)
    done = python(tmp_path, "-m", "tests.lanes", "--jobs", "2", "test_a.py")
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1] == "1 passed, 0 failed, 0 skipped"


@pytest.mark.parametrize(
    ("env", "code", "words"),
    [({}, 0, "1 skipped"), ({"PDTUI_CI": "1"}, 1, "1 error")],
    ids=["elsewhere", "in continuous integration"],
)
def test_a_missing_tool_skips_here_and_fails_in_continuous_integration(
    tmp_path: Path, env: dict[str, str], code: int, words: str
) -> None:
    (tmp_path / "test_needy.py").write_text(NEEDY)
    done = python(tmp_path, "-m", "pytest", "-q", "-rs", "-p", "tests.conftest", **BARE, **env)
    assert done.returncode == code, done.stdout
    assert words in done.stdout
    assert "not installed: no-such-tool" in done.stdout


def test_a_test_has_a_home_of_its_own(own_home: Path) -> None:
    assert Path.home() == own_home
    assert len(os.environ["XDG_RUNTIME_DIR"]) < 40
    assert "SSH_AUTH_SOCK" not in os.environ
