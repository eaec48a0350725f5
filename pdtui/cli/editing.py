"""Changing a document inside a file that a person keeps: comments, order and quotes stay."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from backend.domain.errors import Invalid
from backend.domain.secrets import masked
from backend.domain.yamlread import read_all
from pdtui.cli.files import SUFFIXES, Part, read_parts
from pdtui.state.commented import edited
from pdtui.state.secrets import restored
from pdtui.state.yamltext import dump

Document = dict[str, Any]


def place(into: Path, folder: bool, document: Document) -> tuple[Path, Document, bool]:
    """Write a document into a file or folder; the file, the document, and whether nothing changed.

    Raises Invalid (`file.*`) for a file that cannot be read, and leaves it as it is.
    """
    files = sorted(p for p in into.iterdir() if p.suffix in SUFFIXES) if folder else [into]
    for file in files:
        if file.exists():
            number = _position(file, document)
            if number is not None:
                return file, document, _replace(file, number, document)
    file = _fresh(into, document) if folder else into
    old = file.read_text(encoding="utf-8") if file.exists() else ""
    gap = "" if not old.strip() else "---\n" if old.endswith("\n") else "\n---\n"
    _save(file, f"{old}{gap}{dump(document)}", 0o644 if masked(document) == document else 0o600)
    return file, document, False


def _fresh(folder: Path, document: Document) -> Path:
    """A file name of its own: the document's, with its kind where that name is taken."""
    name, kind = document["metadata"]["name"], document["kind"]
    plain = folder / f"{name}.yaml"
    return plain if kind == "Deployment" else folder / f"{kind.lower()}-{name}.yaml"


def _position(file: Path, document: Document) -> int | None:
    """Which document of a file this is, counted from 0; None where it is none of them."""
    for number, part in enumerate(read_parts([file])):
        if part.problem is not None and part.problem.rule != "file.empty":
            raise Invalid(part.problem)
        if part.problem is None and _same(part, document):
            return number
    return None


def _same(part: Part, document: Document) -> bool:
    kind = part.data.get("kind", "Deployment") if isinstance(part.data, dict) else None
    return bool(kind == document["kind"] and part.name == document["metadata"]["name"])


def _replace(file: Path, number: int, document: Document) -> bool:
    text = file.read_text(encoding="utf-8")
    parts = [d.data for d in read_all(text)]
    wanted, _ = restored(document, parts[number])  # a mask leaves what the file says
    if _meant(parts[number]) == _meant(wanted):
        return True
    if file.suffix == ".json":
        parts[number] = wanted
        body = parts[0] if len(parts) == 1 else parts
        _save(file, json.dumps(body, indent=2, ensure_ascii=False) + "\n")
        return False
    _save(file, edited(text, number, wanted))
    return False


def _meant(data: Any) -> Any:
    """What a document says, whether it writes out its defaults or not."""
    from backend.domain.kinds import parse

    try:
        return parse(data).document()
    except Invalid:
        return data


def _save(file: Path, text: str, mode: int = 0o600) -> None:
    """Replace a file at once; one that was there keeps its mode."""
    mode = file.stat().st_mode & 0o777 if file.exists() else mode
    try:
        handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
        os.chmod(name, mode)
        os.replace(name, file)
    except OSError as error:
        raise Invalid.of(
            "file.unwritable",
            f"{file} cannot be written: {error}.",
            values={"file": str(file)},
            remedy="Check the folder and its permissions.",
        ) from None
