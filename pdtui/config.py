"""The console's own settings on disk: the user's keys, each mistake as a sentence."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pdtui.i18n import tr

MOST_BYTES = 100_000


def folder() -> Path:
    """`$XDG_CONFIG_HOME/pdtui`, or `~/.config/pdtui`."""
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(base).expanduser() / "pdtui"


def state_folder() -> Path:
    """Where the console keeps drafts and saved logs when no place was named."""
    from platformdirs import user_state_path

    return user_state_path("pdtui")


def read_keys(path: Path) -> tuple[dict[str, str], list[str]]:
    """Keys by command id, and a sentence for everything that cannot be read; no file is no keys."""
    from backend.domain import yamlread

    try:
        text = path.read_bytes()[:MOST_BYTES].decode("utf-8")
        found: Any = yamlread.read_one(text)
    except FileNotFoundError:
        return {}, []
    except (OSError, UnicodeDecodeError) as error:
        return {}, [tr("keymap.unreadable", path=path, why=error)]
    except yamlread.Mistake as mistake:
        at = f"{mistake.line}:{mistake.column}"
        return {}, [tr("keymap.yaml", path=path, at=at, why=mistake.why)]
    if found is None:
        return {}, []
    if not isinstance(found, dict):
        return {}, [tr("keymap.no_mapping", path=path)]
    good: dict[str, str] = {}
    bad: list[str] = []
    for name, keys in found.items():
        wanted = keys if isinstance(keys, list) else [keys]
        if all(isinstance(k, str) and k.strip() for k in wanted):
            good[str(name)] = ",".join(wanted)
        else:
            bad.append(tr("keymap.no_key", path=path, id=name, value=keys))
    return good, bad
