"""What is published: the same bytes when built again, and it runs without a checkout."""

from __future__ import annotations

import os
import pkgutil
import tarfile
from pathlib import Path

import pytest

import backend
import modes
import pdtui
from tests.e2e import wheel

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]


def clean_environment(home: Path, programs: Path) -> dict[str, str]:
    """Of someone who has just logged in: no trace of the tests' own environment."""
    runtime = os.environ["XDG_RUNTIME_DIR"]
    return {"HOME": str(home), "PATH": f"{programs}:/usr/bin:/bin", "LANG": "C.UTF-8",
            "XDG_RUNTIME_DIR": runtime}  # fmt: skip


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel.build(tmp_path_factory.mktemp("dist"))


def test_it_builds_to_the_same_bytes_also_from_the_sdist(built: Path, tmp_path: Path) -> None:
    again = wheel.build(tmp_path / "again")
    assert again.read_bytes() == built.read_bytes()
    sdist = wheel.build(tmp_path / "sdist", "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    from_sdist = wheel.build(tmp_path / "from-sdist", source=source)
    assert from_sdist.read_bytes() == built.read_bytes()


def test_it_needs_nothing_but_what_it_asks_for(built: Path, tmp_path: Path) -> None:
    """Without extras: every module loads, and commands answer in an empty folder."""
    programs = wheel.install(built, tmp_path / "venv")
    env, empty = clean_environment(tmp_path, programs), tmp_path / "empty"
    empty.mkdir()
    names = [
        m.name for package in (pdtui, backend, modes)
        for m in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        if not m.name.endswith("__main__")
    ]  # fmt: skip
    code = f"import importlib\nfor name in {names!r}: importlib.import_module(name)\n"
    code += "import pdtui; print(pdtui.__file__)"
    found = wheel.run(str(programs / "python"), "-c", code, cwd=empty, env=env)
    assert found.startswith(str(tmp_path / "venv"))
    pdtui_ = str(programs / "pdtui")
    assert wheel.run(pdtui_, "--version", cwd=empty, env=env) == f"pdtui {pdtui.__version__}\n"
    assert "vllm-nixl" in wheel.run(pdtui_, "modes", cwd=empty, env=env)
    chinese = {**env, "PDTUI_LANGUAGE": "zh"}
    assert "示例" in wheel.run(pdtui_, "--help", cwd=empty, env=chinese)
    assert not list(empty.iterdir())


def test_the_demo_runs_from_the_wheel_alone(built: Path, tmp_path: Path) -> None:
    """Embedded hosts, store, migrations, recipes and the router: all from what was installed."""
    programs = wheel.install(built, tmp_path / "venv", "demo")
    empty = tmp_path / "empty"
    empty.mkdir()
    told = wheel.run(str(programs / "pdtui"), "demo", "--headless", cwd=empty,
                     env=clean_environment(tmp_path, programs))  # fmt: skip
    assert "prompt tokens came as KV" in told
    assert "no process and no port is left" in told
