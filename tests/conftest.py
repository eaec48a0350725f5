"""What every test gets: a home of its own, and a plain answer when a tool is missing.

`@pytest.mark.needs("tmux", ...)` or the fixture `needs("tmux")` skips a test whose tool is not
installed, with the reason; in continuous integration (`PDTUI_CI=1`) the same test fails instead.
`@pytest.mark.root` skips where we are not root.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests import planted

IN_CI = bool(os.environ.get("PDTUI_CI"))
# A slow machine is no wrong answer. In CI a change is judged by the same examples each time;
# elsewhere new ones are looked for.
settings.register_profile("ours", deadline=None, derandomize=IN_CI)
settings.load_profile("ours")

XDG = ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")
KEPT = {"PDTUI_CI", planted.REPORT}


def require(*tools: str) -> None:
    """Skips the running test unless all `tools` are on PATH; fails it in continuous integration."""
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if not missing:
        return
    reason = f"not installed: {', '.join(missing)}"
    if IN_CI:
        pytest.fail(f"{reason}; .ci/run must install it", pytrace=False)
    pytest.skip(reason)


@pytest.fixture
def needs() -> Callable[..., None]:
    """`needs("tmux", "ssh")` inside a test or a fixture: see `require`."""
    return require


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marker that this file answers."""
    config.addinivalue_line("markers", "needs(*tools): programs that must be on PATH")
    over = planted.begin()
    config.add_cleanup(lambda: planted.end(over))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Applies `needs` and `root` before any fixture is built."""
    for marker in item.iter_markers("needs"):
        require(*marker.args)
    if item.get_closest_marker("root") and os.geteuid() != 0:
        pytest.skip("needs root")


@pytest.fixture(autouse=True)
def own_home(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """A home, XDG folders and a short run-time folder of the test's own; no SSH agent, no settings.

    The run-time folder lies directly under the temporary folder: a Unix socket's path may have
    107 bytes, and pytest's own folders use up most of them.
    """
    home = tmp_path_factory.mktemp("home")
    runtime = Path(tempfile.mkdtemp(prefix="pdtui-"))
    for name in [n for n in os.environ if n.startswith("PDTUI_") and n not in KEPT]:
        monkeypatch.delenv(name)
    # An agent holds the keys of whoever runs the tests; a worker process is given a size of 80x24,
    # which would overrule that of a terminal a test opens.
    for name in ("SSH_AUTH_SOCK", "COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    for name in XDG:
        monkeypatch.setenv(name, str(home / name.removeprefix("XDG_").lower()))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    monkeypatch.setenv("TEXTUAL_ANIMATIONS", "none")
    monkeypatch.setenv(planted.SOURCE, planted.REFERRED)
    leaks = len(planted.SEARCH.leaks)
    try:
        yield home
    finally:
        planted.SEARCH.folder(home)
        shutil.rmtree(runtime, ignore_errors=True)
    assert planted.leaks_since(leaks) == [], "a planted secret was written down"
