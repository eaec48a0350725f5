"""Finding a backend: attach to the one that lives, or start one that lives as long as we do."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

from backend.client.door import url_door
from backend.client.http import BackendGone, HttpClient
from backend.domain.errors import KINDS, Conflict, PdError, Problem, TimedOut
from backend.paths import Paths

START_S = 20.0
END_S = 10.0


class Embedded:
    """A backend process of our own: it ends when its standard input does, so also when we die."""

    def __init__(self, state_dir: Path | None, socket: Path) -> None:
        self._state_dir, self._socket = state_dir, socket
        self._process: asyncio.subprocess.Process | None = None
        self._starting = asyncio.Lock()

    @property
    def running(self) -> bool:
        """Whether our own process lives."""
        return self._process is not None and self._process.returncode is None

    async def ensure(self) -> None:
        """Start it unless a backend answers. Raises what it said when it could not start."""
        async with self._starting:
            if await answers(self._socket):
                return
            await self._start()

    async def _start(self) -> None:
        argv = [sys.executable, "-m", "backend.daemon", "--embedded"]
        if self._state_dir is not None:
            argv += ["--state-dir", str(self._state_dir)]
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._process = process
        try:
            async with asyncio.timeout(START_S):
                while not await answers(self._socket):
                    if process.returncode is not None:
                        raise await _said(process)
                    await asyncio.sleep(0.03)
        except TimeoutError:
            await self.end()
            raise TimedOut.of(
                "backend.start",
                f"the backend did not answer on {self._socket} within {START_S:.0f} s.",
                remedy="Look at backend.log in the state directory.",
            ) from None
        except Conflict:
            if not await answers(self._socket):  # another console was quicker: use its backend
                raise

    async def end(self) -> None:
        """End our backend, if we have one."""
        process = self._process
        if process is None or not self.running:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), END_S)
        except TimeoutError:
            process.kill()
            await process.wait()


async def answers(socket: Path) -> bool:
    """Whether a backend answers on the socket."""
    client = HttpClient(socket)
    try:
        await client.health()
    except (BackendGone, TimedOut):
        return False
    finally:
        await client.aclose()
    return True


async def open_client(
    state_dir: Path | None = None, *, embed: bool = True, revive: bool = True
) -> HttpClient:
    """A client of the living backend, or (with `embed`) of one started for us.

    `PDTUI_URL` names one elsewhere (see `url_door`), unless a state directory is asked for: no
    other is started then. With `revive` it starts one too when the living one goes away: for a
    console that stays.

    Raises BackendGone without `embed` when none lives; what a starting backend said otherwise.
    """
    remote = url_door(os.environ) if state_dir is None else None
    if remote is not None:
        return await _attached(HttpClient(remote))
    paths = Paths.default(state_dir)
    if not embed:
        return await _attached(HttpClient(paths.socket))
    embedded = Embedded(state_dir, paths.socket)
    await embedded.ensure()
    again = embedded.ensure if revive else None
    client = HttpClient(paths.socket, revive=again, on_close=embedded.end)
    client.owned = embedded.running
    return client


async def _attached(client: HttpClient) -> HttpClient:
    """The client, once a backend answered it. Raises BackendGone, Unknown for a wrong token."""
    try:
        await client.health()
    except PdError:
        await client.aclose()
        raise
    return client


async def _said(process: asyncio.subprocess.Process) -> PdError:
    text = (await process.stderr.read()).decode(errors="replace") if process.stderr else ""
    for line in reversed(text.splitlines()):
        try:
            body = json.loads(line)
            problems = [Problem.model_validate(p) for p in body["problems"]]
            return KINDS.get(body["kind"], PdError)(*problems)
        except (ValueError, KeyError, TypeError):
            continue
    return PdError.of(
        "backend.start",
        f"the backend ended with exit code {process.returncode}: {text.strip()[-400:]}",
        remedy="Look at backend.log in the state directory.",
    )
