"""Documents in files and folders: a broken one is told by file and line, and hides no other."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backend.domain import yamlread
from backend.domain.errors import Invalid, Problem

MOST_BYTES = 4 << 20
SUFFIXES = (".yaml", ".yml", ".json")
STDIN = Path("-")

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


@dataclass(frozen=True)
class Part:
    """One document of a file, or the problem that stands where one should be."""

    file: Path
    document: yamlread.Document = field(default_factory=yamlread.Document)
    problem: Problem | None = None

    @property
    def data(self) -> Any:
        """The document's plain data."""
        return self.document.data

    @property
    def name(self) -> str:
        """`metadata.name`, or empty where there is no such text."""
        metadata = self.data.get("metadata") if isinstance(self.data, dict) else None
        name = metadata.get("name") if isinstance(metadata, dict) else None
        return name if isinstance(name, str) else ""

    def at(self, path: str = "") -> str:
        """Where `path` (`spec.parameters[3]`) is written: `chat.yaml:12`."""
        return f"{self.file}:{self.line(path)}"

    def line(self, path: str = "") -> int:
        """The line of `path`, or of the nearest part that holds it."""
        keys = tuple(int(n) if n else word for word, n in _STEP.findall(path))
        return self.document.line_of(keys)


def read_parts(paths: Sequence[Path], *, recursive: bool = False) -> list[Part]:
    """Every document of files and folders (their `SUFFIXES` files, by name), `-` for stdin.

    What cannot be read is a part with its problem (`file.unreadable`, `file.too_large`,
    `file.empty`, `file.yaml`). Raises nothing.
    """
    return [part for path in paths for part in _of_path(path, recursive)]


def read_documents(path: Path) -> list[Any]:
    """The documents of one file, `-` for stdin. Raises Invalid with every problem of it."""
    parts = read_parts([path])
    problems = [p.problem for p in parts if p.problem is not None]
    if problems:
        raise Invalid(*problems)
    return [p.data for p in parts]


def _of_path(path: Path, recursive: bool) -> Iterator[Part]:
    if path == STDIN or not path.is_dir():
        yield from _of_file(path)
        return
    try:
        found = sorted(path.rglob("*") if recursive else path.iterdir())
    except OSError as error:
        yield Part(path, problem=_cannot(path, _why(error)))
        return
    files = [
        f
        for f in found
        if f.suffix in SUFFIXES
        and not any(p.startswith(".") for p in f.relative_to(path).parts)
        and f.is_file()
    ]
    if not files:
        yield Part(path, problem=Problem(
            rule="file.empty",
            message=f"{path} holds no {', '.join(SUFFIXES)} file.",
            values={"file": str(path)},
            remedy="Name files, or add --recursive for folders in it.",
        ))  # fmt: skip
    for file in files:
        yield from _of_file(file)


def _of_file(path: Path) -> Iterator[Part]:
    try:
        text = read_text(path)
    except Invalid as error:
        yield from (Part(path, problem=p) for p in error.problems)
        return
    found = yamlread.read_all(text)
    if not found:
        yield Part(path, problem=Problem(
            rule="file.empty",
            message=f"{path} holds no document.",
            values={"file": str(path)},
            remedy="Start from the example in the README.",
        ))  # fmt: skip
    for document in found:
        mistake = document.mistake
        yield Part(path, document, None if mistake is None else _no_yaml(path, mistake))


def _no_yaml(path: Path, mistake: yamlread.Mistake) -> Problem:
    return Problem(
        rule="file.yaml",
        message=f"{path} is not readable YAML at line {mistake.line}, column {mistake.column}: "
        f"{mistake.why}.",
        values={"file": str(path), "line": mistake.line},
        remedy="Correct that line; a tab or a missing quote is the usual cause.",
    )


def read_text(path: Path) -> str:
    """The text of a file, `-` for stdin. Raises Invalid (`file.unreadable`, `file.too_large`)."""
    try:
        raw = sys.stdin.buffer.read(MOST_BYTES + 1) if path == STDIN else _bytes(path)
        text = raw.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        raise Invalid(_cannot(path, _why(error))) from None
    if len(raw) > MOST_BYTES:
        raise Invalid.of(
            "file.too_large",
            f"{path} is too large to be a deployment: more than {MOST_BYTES >> 20} MiB.",
            values={"file": str(path)},
            remedy="Split it.",
        )
    return text


def _cannot(path: Path, why: str) -> Problem:
    return Problem(
        rule="file.unreadable",
        message=f"{path} cannot be read: {why}.",
        values={"file": str(path)},
        remedy="Check the path, its permissions, and that it is UTF-8.",
    )


def _why(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def _bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MOST_BYTES + 1)
