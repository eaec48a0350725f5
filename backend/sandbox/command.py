"""One command of an SSH session as a real local process, its pipes and its end."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable
from typing import IO, Any, Protocol

_STDERR = 1
"""SSH's data type of standard error."""


class Channel(Protocol):
    """What a command needs of its SSH channel."""

    def write(self, data: bytes, datatype: int | None = None) -> None:
        """Send output; `datatype` None is stdout."""

    def write_eof(self) -> None:
        """Say that no more output comes."""

    def pause_reading(self) -> None:
        """Stop input."""

    def resume_reading(self) -> None:
        """Let input flow again."""

    def exit(self, status: int) -> None:
        """Report the exit status and close."""

    def exit_with_signal(self, signal: str) -> None:
        """Report the ending signal and close."""


class _Output(asyncio.Protocol):
    def __init__(self, deliver: Callable[[bytes], None], ended: Callable[[], None]) -> None:
        self._deliver, self._ended = deliver, ended

    def data_received(self, data: bytes) -> None:
        self._deliver(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended()


class _Input(asyncio.BaseProtocol):
    def __init__(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        self._pause, self._resume = pause, resume

    def pause_writing(self) -> None:
        self._pause()

    def resume_writing(self) -> None:
        self._resume()


class Command:
    """A process whose pipes are an SSH channel.

    As with sshd, the channel closes once the process has ended *and* nothing holds its output
    pipes, and losing the channel closes the pipes but leaves the process alive.
    `finished` is awaited by its host; `exit_code` is None while it lives.
    """

    def __init__(self, argv: list[str], env: dict[str, str], cwd: str, channel: Channel) -> None:
        self._argv, self._env, self._cwd = argv, env, cwd
        self._channel: Channel | None = channel
        self._popen: subprocess.Popen[bytes] | None = None
        self._stdin: asyncio.WriteTransport | None = None
        self._outputs: list[asyncio.ReadTransport] = []
        self._early: list[bytes] = []
        self._eof = False
        self._open_outputs = 2
        self._paused = False
        self._gone = asyncio.Event()
        self._drained = asyncio.Event()
        self.exit_code: int | None = None
        self.on_output: Callable[[int], bool] = lambda _: True

    @property
    def pid(self) -> int:
        """The process's number; 0 before it was started."""
        return self._popen.pid if self._popen else 0

    async def start(self) -> None:
        """Start the process. Raises OSError when the shell itself is missing."""
        loop = asyncio.get_running_loop()
        popen = subprocess.Popen(  # noqa: ASYNC220 (a fork; nothing is waited for)
            self._argv, cwd=self._cwd, env=self._env, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self._popen = popen
        handle = os.pidfd_open(popen.pid)
        loop.add_reader(handle, self._process_ended, loop, handle)
        assert popen.stdin is not None
        assert popen.stdout is not None
        assert popen.stderr is not None
        for pipe, kind in ((popen.stdout, None), (popen.stderr, _STDERR)):
            await self._read(loop, pipe, kind)
        self._stdin, _ = await loop.connect_write_pipe(
            lambda: _Input(self._pause_input, self._resume_input), popen.stdin
        )
        early, self._early = self._early, []
        for data in early:
            self._stdin.write(data)
        if self._eof:
            self._stdin.close()
        if self._channel is None:
            self._close_pipes()

    async def _read(
        self, loop: asyncio.AbstractEventLoop, pipe: IO[bytes], kind: int | None
    ) -> None:
        transport, _ = await loop.connect_read_pipe(
            lambda: _Output(lambda data: self._send(data, kind), self._output_ended), pipe
        )
        self._outputs.append(transport)
        if self._paused:
            transport.pause_reading()

    def _process_ended(self, loop: asyncio.AbstractEventLoop, handle: int) -> None:
        loop.remove_reader(handle)
        os.close(handle)
        assert self._popen
        self.exit_code = self._popen.wait()
        self._gone.set()

    def _send(self, data: bytes, kind: int | None) -> None:
        if self._channel and self.on_output(len(data)):
            self._channel.write(data, kind)

    def _output_ended(self) -> None:
        self._open_outputs -= 1
        if not self._open_outputs:
            self._drained.set()

    def feed(self, data: bytes) -> None:
        """Pass input on; kept until the process is there."""
        if self._stdin is None:
            self._early.append(data)
        elif not self._stdin.is_closing():
            self._stdin.write(data)

    def feed_eof(self) -> None:
        """Close the process's input."""
        self._eof = True
        if self._stdin is not None and not self._stdin.is_closing():
            self._stdin.close()

    def _pause_input(self) -> None:
        if self._channel:
            self._channel.pause_reading()

    def _resume_input(self) -> None:
        # Not at once: input fed from inside the transport's own callback is lost when it closes.
        if self._channel:
            asyncio.get_running_loop().call_soon(self._resume_channel)

    def _resume_channel(self) -> None:
        if self._channel:
            self._channel.resume_reading()

    def pause(self) -> None:
        """The channel is full: read no more output."""
        self._paused = True
        for transport in self._outputs:
            if not transport.is_closing():
                transport.pause_reading()

    def resume(self) -> None:
        """The channel takes output again."""
        self._paused = False
        for transport in self._outputs:
            if not transport.is_closing():
                transport.resume_reading()

    def signal(self, name: str) -> None:
        """Send a signal by its SSH name (`TERM`) to the command's whole session."""
        number = getattr(signal, f"SIG{name}", None)
        if self._popen and self.exit_code is None and isinstance(number, signal.Signals):
            os.killpg(self._popen.pid, number)

    def detach(self) -> None:
        """The channel is lost: the process keeps living, its pipes close."""
        self._channel = None
        self._close_pipes()

    def _close_pipes(self) -> None:
        transports: list[Any] = [*self._outputs]
        if self._stdin is not None:
            transports.append(self._stdin)
        for transport in transports:
            if not transport.is_closing():
                transport.close()

    async def finished(self) -> int:
        """Wait for the end of the process and of its output; returns `exit_code`."""
        await self._gone.wait()
        await self._drained.wait()
        self._close_pipes()
        assert self.exit_code is not None
        return self.exit_code

    def report(self) -> None:
        """Tell the channel how the process ended."""
        channel, self._channel = self._channel, None
        if channel is None or self.exit_code is None:
            return
        if self.exit_code < 0:
            channel.exit_with_signal(signal.Signals(-self.exit_code).name.removeprefix("SIG"))
        else:
            channel.exit(self.exit_code)
