"""Secrets planted in what the tests deploy, and a search for them in all that the product wrote.

Documents of the laboratories carry one secret as a text and one as a reference; the backends of the
tests find the referred one in their environment. What a test's folders hold is searched before they
are deleted, and the command lines of all processes are searched all along. A planted value may
stand where it has to be kept, in a file of the owner's alone (`KEPT`); anywhere else it is a leak:
the test fails, and so does the run (`tests.lanes`), which also fails when nothing planted was seen.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MARK = b"pl4nt" + b"3d"
"""Part of every planted value; written so that this file itself is no finding."""
TEXT = MARK.decode() + "-text-7c1e0b94"
REFERRED = MARK.decode() + "-referred-5fd2a8e3"
SOURCE = "PDT_PLANTED_SOURCE"
"""The variable of the backend's own environment that holds the referred value."""
ENV: dict[str, Any] = {"HF_TOKEN": TEXT, "PDT_DB_PASSWORD": {"from_env": SOURCE}}
"""What a deployment's `env` is given."""

KEPT = re.compile(
    r"(^|/)("
    r"store[^/]*\.sqlite3(-wal|-shm)?|\.[^/]*\.part"  # the store and its copies
    r"|instances/[^/]+/(env|env\.json|row\.json)"  # what an instance is started with
    r"|drafts/[^/]+"  # an unfinished form
    r")$"
)
AUTHORED = re.compile(r"\.ya?ml$|^[^/]*/[^/]*\.json$")
"""Documents that the tests themselves write, secrets included, for the product to read."""
LARGEST = 32 << 20
SAMPLE_S = 0.5
REPORT = "PDTUI_PLANTED"
"""Names the folder that a run's findings go into."""


@dataclass
class Search:
    """What was searched, where planted values lie rightly, and where not."""

    files: int = 0
    kept: int = 0
    samples: int = 0
    leaks: list[str] = field(default_factory=list)
    mark: bytes = MARK
    since: float = 0.0
    """When the searched run began, in seconds of the epoch: a file last written before is not its
    own. pytest deletes the folders of earlier runs, this search's own tests among them."""

    def folder(self, root: Path) -> None:
        """Search every file below."""
        for folder, names, files in os.walk(root):
            if "pyvenv.cfg" in files:
                names.clear()
                continue
            for name in files:
                self.file(Path(folder) / name, root)

    def file(self, path: Path, root: Path) -> None:
        """Search one file, and its name."""
        try:
            seen = path.lstat()
            if not stat.S_ISREG(seen.st_mode) or seen.st_size > LARGEST:
                return
            if seen.st_mtime < self.since:
                return
            content = path.read_bytes()
        except OSError:
            return  # it went away, or nobody may read it
        self.files += 1
        if self.mark in str(path).encode():
            self.leaks.append(f"the name {path}")
        if self.mark not in content or AUTHORED.search(str(path.relative_to(root.parent))):
            return
        private = not seen.st_mode & 0o077
        if private and KEPT.search(str(path)):
            self.kept += 1
            return
        at = content.index(self.mark)
        around = content[max(0, at - 80) : at + 60].decode(errors="replace")
        self.leaks.append(f"{path} (mode {seen.st_mode & 0o777:o}): …{around!r}…")

    def processes(self, root: Path = Path("/proc")) -> None:
        """Search the command line of every process that can be read."""
        self.samples += 1
        for entry in root.iterdir():
            if not entry.name.isdigit():
                continue
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if self.mark in line:
                shown = line.replace(b"\0", b" ")[:300].decode(errors="replace")
                told = f"the command line of process {entry.name}: {shown}"
                if told not in self.leaks:
                    self.leaks.append(told)

    def summary(self) -> dict[str, Any]:
        """As it is reported."""
        return {"files": self.files, "kept": self.kept, "samples": self.samples,
                "leaks": self.leaks}  # fmt: skip


SEARCH = Search(since=time.time() - 1)
"""Of this process of the run; a second allows for coarse clocks of file systems."""
_plain_rmtree = shutil.rmtree


def _searched_rmtree(path: Any, *args: Any, **kwargs: Any) -> Any:
    """Search a folder, then delete it."""
    if isinstance(path, str | os.PathLike) and Path(path).is_dir():
        SEARCH.folder(Path(path))
    return _plain_rmtree(path, *args, **kwargs)


def begin() -> threading.Event:
    """Search from now on; the event ends it."""
    shutil.rmtree = _searched_rmtree  # type: ignore[assignment]
    over = threading.Event()

    def watch() -> None:
        while not over.wait(SAMPLE_S):
            SEARCH.processes()

    threading.Thread(target=watch, name="planted", daemon=True).start()
    return over


def end(over: threading.Event) -> None:
    """Stop searching, and write down what was found where the run asks for it."""
    over.set()
    shutil.rmtree = _plain_rmtree
    folder = os.environ.get(REPORT)
    if folder and (SEARCH.files or SEARCH.leaks):
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / f"{os.getpid()}.json").write_text(json.dumps(SEARCH.summary()))


def leaks_since(count: int) -> list[str]:
    """What leaked after the first `count` leaks."""
    return SEARCH.leaks[count:]


def read_reports(folder: Path) -> Search:
    """The findings of all processes of a run."""
    total = Search()
    for one in _reports(folder):
        total.files += one["files"]
        total.kept += one["kept"]
        total.samples += one["samples"]
        total.leaks += one["leaks"]
    return total


def _reports(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("*.json")):
        yield json.loads(path.read_text())
