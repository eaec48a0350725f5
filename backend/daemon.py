"""The backend as a process: headless (`pdtui daemon`), or for as long as one console lives."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
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
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from backend.api.app import create_app
from backend.api.gate import over_tcp
from backend.bootstrap import build
from backend.domain.decide import Timers
from backend.domain.errors import Invalid, PdError, Refused
from backend.domain.host import DEFAULT_PORTS
from backend.listening import Tcp, config, listen, listen_tcp, renew
from backend.logsetup import log_to
from backend.observe.canary import CanaryPace
from backend.observe.health import HealthPace
from backend.observe.metrics import MetricsPace
from backend.paths import Paths
from backend.reconcile.world import Defaults
from backend.services.backend import Backend, Settings
from backend.systemd import Notifier
from backend.takeover import ownership

log = logging.getLogger(__name__)

LEAST_PACE_S = 0.2
"""Seconds of health and metrics that nothing may be set below."""


class _Server(uvicorn.Server):
    """Leaves signals to us: the event streams have to end before it waits for connections."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve(
    paths: Paths, settings: Settings, tcp: Tcp | None = None, notifier: Notifier | None = None
) -> None:
    """Run a backend on the socket (and on `tcp`) until SIGTERM, SIGINT, another backend that takes
    over, or (embedded) until stdin ends. SIGHUP renews certificates."""
    notifier = notifier or Notifier({})
    stop, hurry = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    at_terminal = settings.embedded or sys.stdin.isatty()
    loop.add_signal_handler(signal.SIGHUP, stop.set if at_terminal else hurry.set)
    if settings.embedded:
        loop.add_reader(sys.stdin.fileno(), _on_stdin, loop, stop)
    async with build(paths, settings) as backend:
        backend.stop = stop.set
        app = create_app(backend, version())
        servers = [(_Server(config(app)), listen(paths.socket))]
        side = [notifier.watch(backend.store.answer, lambda: _status(backend))]
        if tcp is not None:
            server, sock = _remote(backend, app, tcp)
            servers.append((server, sock))
            if server.config.ssl is not None:
                side.append(renew(tcp, server.config.ssl, hurry))
        tasks = [asyncio.create_task(s) for s in side]
        serving = [asyncio.create_task(s.serve(sockets=[sock])) for s, sock in servers]
        notifier.tell("READY=1", f"STATUS={_status(backend)}")
        told = asyncio.create_task(stop.wait())
        await asyncio.wait({*serving, told}, return_when=asyncio.FIRST_COMPLETED)
        notifier.tell("STOPPING=1")
        backend.bus.close()
        for task in (told, *tasks):
            task.cancel()
        for server, _ in servers:
            server.should_exit = True
        await asyncio.gather(told, *tasks, return_exceptions=True)
        await asyncio.gather(*serving)
        paths.socket.unlink(missing_ok=True)


def _remote(backend: Backend, app: ASGIApp, tcp: Tcp) -> tuple[_Server, socket.socket]:
    """The server on a TCP address. Raises Refused (`daemon.no_token`) while nobody has a token."""
    if not backend.store.tokens:
        raise Refused.of(
            "daemon.no_token",
            f"nobody could use {tcp.host}:{tcp.port}: over TCP every request carries a token, and "
            "none is given out.",
            values={"listen": f"{tcp.host}:{tcp.port}"},
            remedy="Run `pdtui tokens add NAME` first.",
        )
    server = _Server(config(over_tcp(app, tcp.hosts()), tcp))
    sock = listen_tcp(tcp)
    scheme = "https" if tcp.certificate else "http"
    host, port = tcp.host, sock.getsockname()[1]
    log.info("listening on %s://%s:%d", scheme, host, port)
    print(f"pdtui daemon: listening on {scheme}://{host}:{port}", file=sys.stderr, flush=True)  # noqa: T201
    return server, sock


def _status(backend: Backend) -> str:
    store = backend.store
    return backend.ailment() or f"{len(store.groups)} groups on {len(store.hosts)} hosts"


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

    Raises Invalid for a value that is no number of seconds, or too few.
    """
    return Timers(**_seconds(Timers, env, "PDTUI_"))


def paces(env: Mapping[str, str]) -> tuple[HealthPace, MetricsPace, CanaryPace]:
    """How often health is asked, metrics are read and canaries run, as the environment sets it:
    `PDTUI_HEALTH_TIMEOUT_S=10`, `PDTUI_METRICS_EVERY_S=10`, `PDTUI_CANARY_EVERY_S=0` for never.

    Raises Invalid as `timers` does.
    """
    health = HealthPace(**_seconds(HealthPace, env, "PDTUI_HEALTH_", least=LEAST_PACE_S))
    metrics = MetricsPace(**_seconds(MetricsPace, env, "PDTUI_METRICS_", least=LEAST_PACE_S))
    return health, metrics, CanaryPace(**_seconds(CanaryPace, env, "PDTUI_CANARY_"))


def _seconds(
    kind: type[Any], env: Mapping[str, str], prefix: str, least: float = 0.0
) -> dict[str, float]:
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
        if not least <= seconds < math.inf:
            raise Invalid.of(
                "settings.timer",
                f"{name} is {text!r}; it must be a number of seconds, {least:g} or more.",
                values={"name": name, "value": text, "least": least},
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
    tcp: Tcp | None = None,
    takeover: bool | None = None,
) -> int:
    """Run until told to stop. `takeover`: see `ownership`; one that lives for a console never asks
    another to go. Returns the exit code; errors go to stderr as one JSON line when embedded, in
    words otherwise."""
    paths = Paths.default(state_dir)
    notifier = Notifier(os.environ)
    try:
        with ownership(paths, version=version(), takeover=False if embedded else takeover):
            log_to(paths.log, form=os.environ.get("PDTUI_LOG_FORMAT", ""))
            defaults = Defaults(ports or DEFAULT_PORTS, kv_transfer_ifname)
            health, metrics, canary = paces(os.environ)
            settings = Settings(
                embedded=embedded,
                defaults=defaults,
                timers=timers(os.environ),
                health_pace=health,
                metrics_pace=metrics,
                canary_pace=canary,
                alert_hook=os.environ.get("PDTUI_ALERT_HOOK", ""),
            )
            asyncio.run(serve(paths, settings, tcp, notifier))
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
