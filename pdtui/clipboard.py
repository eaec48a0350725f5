"""Copying: OSC 52 up to what terminals take, and a file where that may not arrive."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from pdtui.i18n import tr

OSC52_MOST = 74_994
"""Bytes of text that still fit the 100 kB that terminals allow, once encoded."""


def copy(
    text: str,
    emit: Callable[[str], None],
    *,
    folder: Path,
    in_tmux: bool,
    what: str,
) -> str:
    """Copy `text` and say what was done.

    `emit` writes the OSC 52 sequence. Inside tmux, and for long texts, the text also goes to a
    file of mode 0600 in `folder`, because tmux drops the sequence unless told otherwise.
    Raises OSError when that file cannot be written.
    """
    fits = len(text.encode()) <= OSC52_MOST
    if fits:
        emit(text)
    if fits and not in_tmux:
        return tr("copy.done", what=what)
    path = _save(text, folder)
    if fits:
        return tr("copy.tmux", what=what, path=path)
    return tr("copy.long", what=what, path=path)


def _save(text: str, folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / "clipboard.txt"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    return path
