"""What a demo in a terminal has around it: its environment, its folders, its processes."""

from __future__ import annotations

import os
import re
from pathlib import Path


def environment() -> dict[str, str]:
    """Of a person's settings only the paths; English."""
    kept = ("PATH", "HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "PYTHONPATH")
    return {k: os.environ[k] for k in kept if k in os.environ} | {"LANG": "C.UTF-8"}


def cursor_line(screen: str) -> str:
    """The line of a table under its cursor; empty when there is none."""
    return next((line for line in screen.splitlines() if line.startswith("▌")), "")


def roots() -> set[str]:
    """Folders of demos that run now, read from the command lines of their processes."""
    return {m for line in commands() for m in re.findall(r"/tmp/pdtui-demo-\w+", line)}


def processes(folders: set[str]) -> list[str]:
    """Command lines of processes that still name a demo's folder."""
    return [line for line in commands() if any(folder in line for folder in folders)]


def commands() -> list[str]:
    """The command line of every process."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except (OSError, UnicodeDecodeError):
                continue
    return found
