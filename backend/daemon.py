"""The backend as a process: headless (`pdtui daemon`), or for as long as one console lives."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import fcntl
import json
import logging
import math
import os
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from importlib import metadata
from pathlib import Path
from typing import IO, Any

import uvicorn

from backend.api.app import create_app
from backend.bootstrap import build
from backend.domain.decide import Timers
from backend.domain.errors import Conflict, Invalid, PdError
from backend.domain.host import DEFAULT_PORTS
from backend.logsetup import log_to
from backend.observe.metrics import MetricsPace
from backend.paths import Paths
from backend.reconcile.world import Defaults
from backend.services.backend import Backend, Settings

log = logging.getLogger(__name__)

GRACE_S = 2


@contextmanager
def ownership(paths: Paths) -> Iterator[None]:
    """Hold the state directory. Raises Conflict (`daemon.owned`) naming the pid that holds it."""
    paths.make()
    with paths.lock.open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _owned(lock, paths) from None
        lock.seek(0)
        lock.truncate()
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield


def _owned(lock: IO[str], paths: Paths) -> Conflict:
    lock.seek(0)
    pid = lock.read().strip() or "unknown"
    return Conflict.of(
        "daemon.owned",
        f"process {pid} already runs a backend on {paths.state}.",
        values={"pid": pid, "state_dir": str(paths.state)},
        remedy="Use it (pdtui attaches by itself), end it, or choose another --state-dir.",
    )


def listen(path: Path) -> socket.socket:
    """A Unix socket at `path` that only its owner may use. The caller holds the ownership."""
    path.unlink(missing_ok=True)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        sock.bind(str(path))
    finally:
        os.umask(mask)
    sock.listen(128)
    return sock


class _Server(uvicorn.Server):
    """Leaves signals to us: the event streams have to end before it waits for connections."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve(paths: Paths, settings: Settings) -> None:
    """Run a backend on the socket until SIGTERM, SIGINT, or (embedded) until stdin ends."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    if settings.embedded:
        loop.add_reader(sys.stdin.fileno(), _on_stdin, loop, stop)
    async with build(paths, settings) as backend:
        sock = listen(paths.socket)
        server = _Server(_config(backend))
        serving = asyncio.create_task(server.serve(sockets=[sock]), name="http")
        await asyncio.wait(
            {serving, asyncio.ensure_future(stop.wait())}, return_when=asyncio.FIRST_COMPLETED
        )
        backend.bus.close()
        server.should_exit = True
        await serving
        paths.socket.unlink(missing_ok=True)


def _config(backend: Backend) -> uvicorn.Config:
    return uvicorn.Config(
        create_app(backend, version()),
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=GRACE_S,
        timeout_keep_alive=75,
        ws="none",
    )


def _on_stdin(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 4096):
        loop.remove_reader(sys.stdin.fileno())
        stop.set()


def version() -> str:
    """The installed version."""
    try:
        return metadata.version("pdtui")
    except metadata.PackageNotFoundError:
        return "0+unknown"


def timers(env: Mapping[str, str]) -> Timers:
    """Patience as the environment sets it: `PDTUI_<TIMER>`, for example `PDTUI_START_LIMIT_S=900`.

    Raises Invalid for a value that is no positive number of seconds.
    """
    return Timers(**_seconds(Timers, env, "PDTUI_"))


def paces(env: Mapping[str, str]) -> MetricsPace:
    """How often metrics are read, as the environment sets it: `PDTUI_METRICS_EVERY_S=10`.

    Raises Invalid as `timers` does.
    """
    return MetricsPace(**_seconds(MetricsPace, env, "PDTUI_METRICS_"))


def _seconds(kind: type[Any], env: Mapping[str, str], prefix: str) -> dict[str, float]:
    found = {}
    for timer in fields(kind):
        name = f"{prefix}{timer.name.upper()}"
        text = env.get(name)
        if not text:
            continue
        try:
            seconds = float(text)
        except ValueError:
            seconds = math.nan
        if not 0 <= seconds < math.inf:
            raise Invalid.of(
                "settings.timer",
                f"{name} is {text!r}, which is no number of seconds.",
                values={"name": name, "value": text},
                remedy="Give seconds, for example 900, or leave it unset.",
            )
        found[timer.name] = seconds
    return found


def run(
    *,
    state_dir: Path | None = None,
    embedded: bool = False,
    ports: tuple[int, int] | None = None,
    kv_transfer_ifname: str | None = None,
) -> int:
    """Run until told to stop. Returns the exit code; errors go to stderr as one JSON line when
    embedded, in words otherwise."""
    paths = Paths.default(state_dir)
    try:
        with ownership(paths):
            log_to(paths.log)
            defaults = Defaults(ports or DEFAULT_PORTS, kv_transfer_ifname)
            settings = Settings(
                embedded=embedded,
                defaults=defaults,
                timers=timers(os.environ),
                metrics_pace=paces(os.environ),
            )
            asyncio.run(serve(paths, settings))
    except PdError as error:
        if embedded:
            body = {"kind": error.kind, "problems": [p.model_dump() for p in error.problems]}
            print(json.dumps(body), file=sys.stderr)  # noqa: T201
        else:
            print(f"pdtui daemon: {error}", file=sys.stderr)  # noqa: T201
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


def main() -> None:
    """`python -m backend.daemon`: how a console starts a backend of its own."""
    parser = argparse.ArgumentParser(prog="backend.daemon")
    parser.add_argument("--state-dir", type=Path)
    parser.add_argument("--embedded", action="store_true")
    args = parser.parse_args()
    with contextlib.suppress(BrokenPipeError):
        sys.exit(run(state_dir=args.state_dir, embedded=args.embedded))


if __name__ == "__main__":
    main()
