"""Imports point one way, and starting a small command does not load what it does not use."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCREEN = {"textual", "plotext"}
"""Not rich: httpx imports it for a command line of its own. The linter keeps it out of ours."""
SERVER = {"fastapi", "starlette", "uvicorn", "asyncssh"}


def modules_after(code: str) -> set[str]:
    """All of `sys.modules` after `code` ran in a fresh interpreter."""
    script = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def loaded_by(code: str) -> set[str]:
    """Top-level names in `sys.modules` after `code` ran in a fresh interpreter."""
    return {name.partition(".")[0] for name in modules_after(code)}


def backend_modules() -> list[str]:
    """Every importable module of the backend; `__main__` files run when imported."""
    paths = (ROOT / "backend").rglob("*.py")
    names = {".".join(p.relative_to(ROOT).with_suffix("").parts) for p in paths}
    return sorted(name.removesuffix(".__init__") for name in names if not name.endswith("__main__"))


def test_the_layers_hold() -> None:
    done = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        cwd=ROOT, capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_backend_draws_nothing_at_run_time() -> None:
    names = backend_modules()
    assert "backend.domain.views" in names
    drawn = loaded_by("".join(f"import {name}\n" for name in names)) & (SCREEN | {"pdtui"})
    assert not drawn


def test_the_domain_loads_no_socket_of_ours() -> None:
    names = [name for name in backend_modules() if name.startswith("backend.domain")]
    heavy = loaded_by("".join(f"import {name}\n" for name in names)) & (SERVER | {"httpx"})
    assert not heavy


def test_the_command_line_starts_light() -> None:
    heavy = loaded_by("import pdtui.cli") & (SERVER | {"textual", "plotext", "httpx"})
    assert not heavy, f"import pdtui.cli loads {heavy}: import inside the command that needs it"


def ran(*words: str) -> set[str]:
    """`sys.modules` after a command ran."""
    call = f"from pdtui.cli import app\napp({list(words)}, standalone_mode=False)"
    return modules_after(call)


def test_a_command_loads_no_module_of_another() -> None:
    ours = {name for name in ran("completion", "bash") if name.startswith("pdtui.cli.")}
    shared = {"common", "examples", "finish", "output", "tree"}
    assert ours == {f"pdtui.cli.{name}" for name in (*shared, "complete")}


def test_the_list_of_commands_waits_for_nothing_they_do() -> None:
    loaded = {name.partition(".")[0] for name in ran("--help")}
    assert not loaded & (SERVER | SCREEN | {"httpx", "asyncio", "ssl", "yaml"})


def test_the_console_paints_before_it_loads_the_backend() -> None:
    heavy = loaded_by("import pdtui.app") & (SERVER | {"httpx", "vllm_router"})
    assert not heavy, f"import pdtui.app loads {heavy}: the first frame would wait for it"
