"""Writing whole logs to a file, piece by piece, from the backend rather than from what is held."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from pdtui.i18n import tr
from pdtui.present.numbers import stamp

if TYPE_CHECKING:
    from pdtui.screens.logs import LogScreen


def save(screen: LogScreen) -> None:
    """Write the log that is shown to a file of its own, and say which."""
    screen.run_worker(_save(screen), name="save", group="call.save", exit_on_error=False)


async def _save(screen: LogScreen) -> None:
    from backend.domain.errors import PdError

    screen.say(tr("log.saving"), "busy")
    at = stamp(screen.console.now()).replace(":", "").replace(" ", "-")
    folder = screen.console.state_dir / "logs"
    written, paths = 0, []
    for instance, generation in screen.sources():
        path = folder / f"{instance}-g{generation or 0}-{at}.log"
        try:
            written += await _copy(screen, instance, generation, path)
        except PdError as error:
            screen.say(error.problem.message, "bad")
            return
        except OSError as error:
            why = error.strerror or error
            screen.say(tr("log.not_saved", path=path, why=why), "bad")
            return
        paths.append(path)
    shown = paths[0] if len(paths) == 1 else folder
    screen.say(tr("log.saved", lines=written, path=shown), "ok")


async def _copy(screen: LogScreen, instance: str, generation: int | None, path: Path) -> int:
    """The lines written. Raises PdError and OSError."""
    session = screen.console.session
    assert session is not None
    await asyncio.to_thread(path.parent.mkdir, mode=0o700, parents=True, exist_ok=True)
    await asyncio.to_thread(path.write_text, "", encoding="utf-8")
    offset, count = 0, 0
    while True:
        chunk = await session.read_log(instance, generation=generation, offset=offset)
        if not chunk.text or chunk.offset <= offset:
            return count
        await asyncio.to_thread(_append, path, chunk.text)
        offset, count = chunk.offset, count + chunk.text.count("\n")


def _append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(text)
