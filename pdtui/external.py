"""Programs of the user's own: the editor, run with the whole terminal while the console waits."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.app import App

KNOWN = ("nano", "vim", "vi")


def editor(environ: Mapping[str, str]) -> list[str]:
    """The editor's argv: $VISUAL, $EDITOR, or one that is installed; empty when there is none."""
    for name in ("VISUAL", "EDITOR"):
        if words := shlex.split(environ.get(name, "")):
            return words
    found = next((k for k in KNOWN if shutil.which(k)), None)
    return [found] if found else []


async def edit(app: App[None], argv: list[str], text: str, suffix: str) -> str:
    """`text` as the user's editor left it.

    The file is the owner's alone and is removed afterwards. Raises OSError when the editor cannot
    be run, or ended with an exit code other than 0.
    """
    with tempfile.TemporaryDirectory(prefix="pdtui-") as folder:
        path = Path(folder) / f"deployment{suffix}"
        await asyncio.to_thread(path.write_text, text, encoding="utf-8")
        path.chmod(0o600)
        with app.batch_update(), nullcontext() if app.is_headless else app.suspend():
            process = await asyncio.create_subprocess_exec(*argv, str(path), env=dict(os.environ))
            code = await process.wait()  # as long as the user likes
        if code:
            raise OSError(f"{argv[0]} ended with exit code {code}")
        return await asyncio.to_thread(path.read_text, encoding="utf-8")
