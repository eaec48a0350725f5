"""Names there are, for shells that complete them: read from the store, without a backend."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Literal

from backend.paths import Paths

Listed = Literal["groups", "hosts", "caches", "instances", "modes"]
QUERIES: dict[Listed, str] = {
    "groups": "SELECT name FROM groups ORDER BY name",
    "hosts": "SELECT name FROM hosts ORDER BY name",
    "caches": "SELECT name FROM caches ORDER BY name",
    "instances": "SELECT id FROM instances ORDER BY id",
}
WAIT_S = 0.5
_MODE = re.compile(r"^  ([a-z0-9][\w.-]*):", re.M)


def names(state_dir: Path | None, what: Listed) -> list[str]:
    """Names of one sort; none where the store cannot be read, which nobody can be told here."""
    paths = Paths.default(state_dir)
    if what == "modes":
        return _modes(paths)
    if not paths.store.exists():
        return []
    try:
        store = sqlite3.connect(f"{paths.store.as_uri()}?mode=ro", uri=True, timeout=WAIT_S)
        try:
            return [str(row[0]) for row in store.execute(QUERIES[what])]
        finally:
            store.close()
    except sqlite3.Error:
        return []


def _modes(paths: Paths) -> list[str]:
    """Names under `modes:` of the catalogues, found without reading them as YAML: that is slow."""
    import modes

    found: dict[str, None] = {}
    for file in (Path(modes.__file__).with_name("pd-modes.yaml"), paths.catalogue):
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        section = re.search(r"^modes:\s*\n(.*?)(?=^\S|\Z)", text, re.M | re.S)
        found |= dict.fromkeys(_MODE.findall(section[1]) if section else ())
    return list(found)
