"""The API process: start the core, serve HTTP, stop as vLLM stops."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import socket
import sys
from collections.abc import Iterator

import uvicorn

from backend.sandbox.engine import failures
from backend.sandbox.engine.app import App
from backend.sandbox.engine.config import EngineConfig
from backend.sandbox.engine.link import AsyncLink
from backend.sandbox.engine.log import Log, raw
from backend.sandbox.engine.serving import Engine
from backend.sandbox.engine.sglang_app import SglangApp
from backend.sandbox.engine.switches import Switches

_TICK_S = 0.1
_CORE_GRACE_S = 0.2
_DEAD_GRACE_S = 0.5


class _Server(uvicorn.Server):
    """uvicorn without its own signal handling: the engine decides when to stop."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Process:
    """One engine's API process."""

    def __init__(
        self,
        config: EngineConfig,
        switches: Switches,
        http: socket.socket,
        core: tuple[int, socket.socket],
    ) -> None:
        self._config, self._switches, self._http = config, switches, http
        self._core_pid, self._core_socket = core
        self._log = Log("APIServer")
        self._stopping = asyncio.Event()
        self._code = 0
        self._told_early = False

    async def run(self) -> int:
        """Serve until told to stop or the core is gone; returns the exit code.

        Raises StartFailure when the core never gets ready.
        """
        loop = asyncio.get_running_loop()
        engine = Engine(self._config, self._switches, self._log)
        listening = asyncio.create_task(engine.listen(await AsyncLink.over(self._core_socket)))
        try:
            stops = (signal.SIGTERM, signal.SIGINT)
            for number in stops:
                loop.add_signal_handler(number, self._told_to_stop, loop, engine)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, stops)
            await self._wait_ready(engine)
            if self._told_early:
                self._told_to_stop(loop, engine)
            app = SglangApp if self._config.flavor == "sglang" else App
            config = uvicorn.Config(
                app(engine), loop="asyncio", http="h11", ws="none", lifespan="off",
                interface="asgi3", log_config=None, access_log=False, proxy_headers=False,
            )  # fmt: skip
            await self._serve(engine, _Server(config))
        finally:
            self._end_core()
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
        return self._code

    async def _wait_ready(self, engine: Engine) -> None:
        """Wait for the core. As in vLLM, an engine whose core is wedged is deaf to SIGTERM."""
        events = (engine.ready, engine.dead)
        waits = [asyncio.create_task(e.wait()) for e in events]
        await asyncio.wait(
            waits, timeout=self._config.ready_timeout_s, return_when=asyncio.FIRST_COMPLETED
        )
        for task in waits:
            task.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
        if engine.dead.is_set():
            raise failures.CORE_FAILED
        if not engine.ready.is_set():
            raise failures.core_timeout(self._config.ready_timeout_s)

    def _told_to_stop(self, loop: asyncio.AbstractEventLoop, engine: Engine) -> None:
        if not engine.ready.is_set():
            self._told_early = True
            return
        loop.call_later(self._switches.slow_stop, self._stopping.set)

    async def _serve(self, engine: Engine, server: _Server) -> None:
        with contextlib.suppress(TimeoutError):
            if self._switches.start_delay:
                await asyncio.wait_for(self._stopping.wait(), self._switches.start_delay)
        if self._stopping.is_set():
            return
        url = f"http://{self._config.host}:{self._config.port}"
        if self._config.flavor == "vllm":
            self._log.info("entry.py:136", "Supported tasks: ['generate']")
            self._log.info("entry.py:140", f"Starting vLLM server on {url}")
        serving = asyncio.create_task(server.serve(sockets=[self._http]))
        await server.up.wait()
        raw(
            f"INFO:     Started server process [{os.getpid()}]\n"
            "INFO:     Waiting for application startup.\n"
            "INFO:     Application startup complete.\n"
        )
        if self._config.flavor == "sglang":
            self._log.info("", "The server is fired up and ready to roll!")
        helpers = [
            asyncio.create_task(engine.report()),
            asyncio.create_task(self._die_later()),
            asyncio.create_task(self._stop(engine, server)),
            asyncio.create_task(self._watch_core(engine, server)),
        ]
        try:
            await serving
        finally:
            for helper in helpers:
                helper.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)

    async def _die_later(self) -> None:
        """The `die_after` switch, also when it is set while the engine serves."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        while not 0 < self._switches.die_after <= loop.time() - began:
            await asyncio.sleep(_TICK_S)
        if self._switches.die_message:
            sys.stderr.write(self._switches.die_message + "\n")
            sys.stderr.flush()
        os.kill(self._core_pid, signal.SIGKILL)
        os._exit(self._switches.die if self._switches.die > 0 else 1)

    async def _watch_core(self, engine: Engine, server: _Server) -> None:
        await engine.dead.wait()
        await asyncio.sleep(_TICK_S)  # a signal to the whole group ends the core first
        if self._stopping.is_set():
            return
        self._log.error(
            "core_client.py:640",
            "Engine core proc EngineCore died unexpectedly, shutting down client.",
        )
        self._code = 1
        await asyncio.sleep(_DEAD_GRACE_S)
        server.should_exit = True

    async def _stop(self, engine: Engine, server: _Server) -> None:
        """Once told: wait for requests in flight (`--shutdown-timeout`) or abort them, then end.

        An aborted client is not told: uvicorn waits until it leaves, as under vLLM.
        """
        await self._stopping.wait()
        patience = self._config.shutdown_timeout
        mode = "wait" if patience else "abort"
        log = self._log
        log.info("launcher.py:254", "[shutdown] API server: shutdown triggered")
        log.info(
            "launcher.py:270",
            f"[shutdown] API server: stopping engine client mode={mode} timeout={patience}s",
        )
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(engine.idle.wait(), patience)
        engine.aborted.set()
        self._end_core()
        log.info("launcher.py:282", "[shutdown] API server: signalling HTTP server shutdown")
        if engine.in_flight:
            raw("INFO:     Waiting for connections to close. (CTRL+C to force quit)\n")
        server.should_exit = True

    def _end_core(self) -> None:
        """End the core: TERM, then KILL; with the `orphan` switch leave it."""
        if not self._core_pid or self._switches.orphan:
            return
        pid, self._core_pid = self._core_pid, 0
        self._log.info("utils.py:628", "[shutdown] Process manager: send sigterm to EngineCore")
        handle = os.pidfd_open(pid)
        try:
            signal.pidfd_send_signal(handle, signal.SIGTERM)
            if not _ended(handle, _CORE_GRACE_S):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        except ProcessLookupError:
            pass
        finally:
            os.close(handle)
            os.waitpid(pid, 0)


def _ended(handle: int, timeout_s: float) -> bool:
    """Whether the process of a pidfd ends in time. The wait is short and only at the very end."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(timeout_s * 1000))
