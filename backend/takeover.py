"""One backend owns a state directory; a newer one takes over from it, and the groups run on."""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from packaging.version import InvalidVersion, Version

from backend.client.http import HttpClient
from backend.domain.errors import Conflict, PdError, TimedOut
from backend.domain.views import Health
from backend.paths import Paths
from backend.store.db import refuse_newer

WAIT_S = 30.0
"""Seconds a backend that was asked to go may take to finish what it is doing."""


@contextmanager
def ownership(paths: Paths, *, version: str = "", takeover: bool | None = False) -> Iterator[None]:
    """Hold the state directory.

    `takeover`: ask the backend that holds it to go, always (True), never (False), or if it is an
    older version or lives for a console only (None). Raises Conflict (`daemon.owned`) naming the
    pid that holds it, TimedOut when it does not go, Refused (`store.newer`) before it is asked when
    this version could not read its store: nobody would watch the groups then.
    """
    paths.make()
    with paths.lock.open("a+") as lock:
        if not _try(lock):
            if takeover is not False:
                refuse_newer(paths.store)
            if takeover is False or not asyncio.run(_ask_to_go(paths, version, takeover)):
                raise _owned(lock, paths)
            _wait(lock, paths)
        lock.seek(0)
        lock.truncate()
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield


def gives_way(theirs: Health, ours: str, takeover: bool | None) -> bool:
    """Whether a living backend is to go for one of version `ours`."""
    if takeover is not None:
        return takeover
    try:
        return theirs.embedded or Version(ours) > Version(theirs.version)
    except InvalidVersion:
        return False


async def _ask_to_go(paths: Paths, version: str, takeover: bool | None) -> bool:
    client = HttpClient(paths.socket)
    try:
        if not gives_way(await client.health(), version, takeover):
            return False
        await client.hand_over(version)
        return True
    except PdError:
        return False  # it does not answer, or is too old to know how: it is named instead
    finally:
        await client.aclose()


def _try(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _wait(lock: IO[str], paths: Paths) -> None:
    end = time.monotonic() + WAIT_S
    while not _try(lock):
        if time.monotonic() > end:
            raise TimedOut.of(
                "daemon.takeover",
                f"process {_holder(lock)} was asked to hand over {paths.state} and still holds it "
                f"after {WAIT_S:.0f} s.",
                values={"pid": _holder(lock), "state_dir": str(paths.state)},
                remedy="Look at backend.log; end that process.",
            )
        time.sleep(0.05)


def _holder(lock: IO[str]) -> str:
    lock.seek(0)
    return lock.read().strip() or "unknown"


def _owned(lock: IO[str], paths: Paths) -> Conflict:
    pid = _holder(lock)
    return Conflict.of(
        "daemon.owned",
        f"process {pid} already runs a backend on {paths.state}.",
        values={"pid": pid, "state_dir": str(paths.state)},
        remedy="Use it (pdtui attaches by itself), end it, take over with `pdtui daemon "
        "--takeover`, or choose another --state-dir.",
    )
