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
from pdtui.cli.files import SUFFIXES, Part, read_parts, read_text
from pdtui.state.commented import edited
from pdtui.state.secrets import restored
from pdtui.state.yamltext import dump

Document = dict[str, Any]


def place(into: Path, folder: bool, document: Document) -> tuple[Path, Document, bool]:
    """Write a document into a file or folder; the file, the document, and whether nothing changed.

    Raises Invalid (`file.*`) for a file that cannot be read, and leaves it as it is.
    """
    files = _files_in(into) if folder else [into]
    for file in files:
        if file.exists():
            number = _position(file, document)
            if number is not None:
                return file, document, _replace(file, number, document)
    file = _fresh(into, document) if folder else into
    old = read_text(file) if file.exists() else ""
    if file.suffix == ".json":
        text = _json([*(d.data for d in read_all(old)), document])
    else:
        gap = "" if not old.strip() else "---\n" if old.endswith("\n") else "\n---\n"
        text = f"{old}{gap}{dump(document)}"
    _save(file, text, private=_secret(document))
    return file, document, False


def _files_in(folder: Path) -> list[Path]:
    """The files of documents in a folder, made where there is none. Raises Invalid."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        found = sorted(folder.iterdir())
    except OSError as error:
        raise _unwritable(folder, error) from None
    return [p for p in found if p.suffix in SUFFIXES and not p.name.startswith(".") and p.is_file()]


def _json(documents: list[Any]) -> str:
    body = documents[0] if len(documents) == 1 else documents
    return json.dumps(body, indent=2, ensure_ascii=False) + "\n"


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
    text = read_text(file).replace("\r\n", "\n")  # `_save` puts the file's own line ends back
    parts = [d.data for d in read_all(text)]
    wanted, _ = restored(document, parts[number])  # a mask leaves what the file says
    if _meant(parts[number]) == _meant(wanted):
        return True
    private = _secret(document) and not _secret(parts[number])
    if file.suffix == ".json":
        parts[number] = wanted
        _save(file, _json(parts), private=private)
        return False
    _save(file, edited(text, number, wanted), private=private)
    return False


def _secret(document: Any) -> bool:
    """Whether a document writes a secret out."""
    return bool(masked(document) != document)


def _meant(data: Any) -> Any:
    """What a document says, whether it writes out its defaults or not."""
    from backend.domain.kinds import parse

    try:
        return parse(data).document()
    except Invalid:
        return data


def _save(file: Path, text: str, *, private: bool) -> None:
    """Replace a file at once, also behind a link; one that was there keeps its line ends and its
    mode, unless what is new in it is `private`: for the owner's eyes."""
    file = file.resolve()
    name = ""
    try:
        mode = 0o644
        if file.exists():
            mode = file.stat().st_mode & 0o777
            if b"\r\n" in file.read_bytes():
                text = text.replace("\r\n", "\n").replace("\n", "\r\n")
        handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.chmod(name, mode & 0o700 if private else mode)
        os.replace(name, file)
    except OSError as error:
        if name:
            Path(name).unlink(missing_ok=True)
        raise _unwritable(file, error) from None


def _unwritable(path: Path, error: OSError) -> Invalid:
    return Invalid.of(
        "file.unwritable",
        f"{path} cannot be written: {error.strerror or error}.",
        values={"file": str(path)},
        remedy="Check the folder and its permissions.",
    )
