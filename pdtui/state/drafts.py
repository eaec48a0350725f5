"""Drafts of the form on disk: what is typed survives the console. One file a form, mode 0600."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = "drafts"
SOURCES = "sources"


@dataclass(frozen=True)
class Draft:
    """A form as it stood. `owner` is the pid of the console that holds it; `saved` epoch seconds;
    `text` is YAML that could not be read yet, kept as it was typed; `source` the last one that
    could, for its comments."""

    path: Path
    document: Mapping[str, Any]
    original: Mapping[str, Any] | None = None
    version: int = 0
    saved: float = 0.0
    owner: int = 0
    text: str = ""
    source: str = ""

    @property
    def name(self) -> str:
        """The deployment's name, as far as it was written."""
        metadata = self.document.get("metadata")
        return str(metadata.get("name") or "") if isinstance(metadata, Mapping) else ""


def new_path(state_dir: Path) -> Path:
    """A name no other form uses."""
    return state_dir / FOLDER / f"{os.getpid()}-{time.time_ns():x}.json"


def save(draft: Draft) -> None:
    """Write a draft whole or not at all. Raises OSError."""
    folder = draft.path.parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    body = {
        "document": draft.document,
        "original": draft.original,
        "version": draft.version,
        "saved": draft.saved,
        "owner": draft.owner,
        "text": draft.text,
        "source": draft.source,
    }
    _write(draft.path, json.dumps(body, ensure_ascii=False))


def keep_source(state_dir: Path, name: str, text: str) -> None:
    """Keep a saved document as it was written, so that its comments come back with the next edit.
    Raises OSError."""
    path = state_dir / SOURCES / f"{name}.yaml"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _write(path, text)


def source(state_dir: Path, name: str) -> str:
    """A document as it was written last on this machine; empty when it was not."""
    try:
        return (state_dir / SOURCES / f"{name}.yaml").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _write(path: Path, text: str) -> None:
    """Whole or not at all, for the owner alone."""
    part = path.with_suffix(".part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with open(os.open(part, flags, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def drop(path: Path) -> None:
    """Forget a draft; it may be gone already. Raises OSError."""
    path.unlink(missing_ok=True)


def left(state_dir: Path) -> Draft | None:
    """The newest draft that no living console holds. Unreadable files are passed over."""
    found = [d for p in (state_dir / FOLDER).glob("*.json") if (d := _load(p)) and not _held(d)]
    return max(found, key=lambda d: d.saved, default=None)


def _load(path: Path) -> Draft | None:
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        known = {k: body[k] for k in ("document", "original", "version", "saved", "owner", "text")}
        known["source"] = str(body.get("source", ""))
        return Draft(path, **known) if isinstance(known["document"], dict) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _held(draft: Draft) -> bool:
    """Whether the console that wrote it still runs, and is another one."""
    if not draft.owner:
        return False
    try:
        os.kill(draft.owner, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
