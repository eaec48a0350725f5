"""One host's connection: shared by its callers, capped in sessions, rebuilt when it breaks."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import asyncssh

from backend.adapters.ssh.errors import explain
from backend.domain.errors import HostUnreachable, PdError, TimedOut
from backend.domain.host import Host

SESSIONS = 8
"""Sessions at a time on one connection: OpenSSH's default MaxSessions is 10."""
STREAMS = 3
"""How many of them long-lived streams may hold."""
RELAYS = 5
"""How many of them TCP connections may hold where the server forwards none."""
BACK_OFF_S = 1.5
"""How long a failed connection's error is the answer, so that callers do not hammer the host."""
ATTEMPTS = 5
"""Handshakes tried while the server drops them (its MaxStartups), within the connect timeout."""


@dataclass(frozen=True)
class Connected:
    """An open connection, and the jump host's that it runs through, which is not its own."""

    conn: asyncssh.SSHClientConnection
    tunnel: asyncssh.SSHClientConnection | None = None

    def alive(self) -> bool:
        """Whether it can still carry a new channel, as far as we know."""
        return not self.conn.is_closed() and not (self.tunnel and self.tunnel.is_closed())


Opener = Callable[[Host], Awaitable[Connected]]


def endpoint(host: Host) -> tuple[object, ...]:
    """The part of an entry that decides where its connection leads and as whom."""
    return (host.address, host.port, host.user, host.jump, host.identity_files)


@dataclass(eq=False)
class Link:
    """The connection to one inventory entry. Owned by the pool, which closes it.

    `forbidden` are addresses that the server does not forward to; `relay` is the program that dials
    them instead, empty until one was looked for.
    """

    host: Host
    opener: Opener
    timeout: float
    sessions: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(SESSIONS))
    streams: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(STREAMS))
    relays: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(RELAYS))
    forbidden: set[tuple[str, int]] = field(default_factory=set)
    relay: str = ""
    closed: bool = False
    _connected: Connected | None = None
    _connecting: asyncio.Task[Connected] | None = None
    _failure: PdError | None = None
    _failed_at: float = 0.0
    _narrowed: int = 0
    _withheld: int = 0

    async def connection(self) -> asyncssh.SSHClientConnection:
        """The open connection, made if there is none.

        All callers share one attempt; a caller that is cancelled does not cancel it for the rest.
        Raises HostError and its kinds.
        """
        if self.closed:
            raise HostUnreachable.of(
                "host.closed", f"host {self.host.name}: its connection was closed by us.",
                values={"host": self.host.name},
            )  # fmt: skip
        if self._connected and self._connected.alive():
            return self._connected.conn
        if self._connecting is None:
            now = asyncio.get_running_loop().time()
            if self._failure and now - self._failed_at < BACK_OFF_S:
                raise type(self._failure)(*self._failure.problems)
            self._connecting = asyncio.create_task(self._connect(), name=f"ssh {self.host.name}")
            self._connecting.add_done_callback(self._settled)
        task = self._connecting
        try:
            return (await asyncio.shield(task)).conn
        except asyncio.CancelledError:
            if task.cancelled() and self.closed:
                raise HostUnreachable.of(
                    "host.closed",
                    f"host {self.host.name}: its connection was closed by us.",
                    values={"host": self.host.name},
                ) from None
            raise
        except PdError as exc:
            raise type(exc)(*exc.problems) from exc

    @property
    def tunnelled(self) -> bool:
        """Whether the present connection runs through a jump host."""
        return self._connected is not None and self._connected.tunnel is not None

    def _settled(self, task: asyncio.Task[Connected]) -> None:
        self._connecting = None
        if task.cancelled():
            return
        exc = task.exception()
        if exc is None:
            self._connected, self._failure = task.result(), None
            self._widen()
        elif isinstance(exc, PdError):
            self._failure, self._failed_at = exc, task.get_loop().time()

    async def _connect(self) -> Connected:
        """Connect, again where the server drops handshakes. Raises only our own errors."""
        await self._drop()
        attempt = 0
        try:
            async with asyncio.timeout(self.timeout):
                while True:
                    attempt += 1
                    try:
                        return await self.opener(self.host)
                    except (ConnectionResetError, asyncssh.ConnectionLost) as exc:
                        if attempt >= ATTEMPTS or "timeout" in str(exc).lower():
                            raise
                        pause = random.uniform(0.05, 0.15) * 2**attempt  # noqa: S311
                        await asyncio.sleep(pause)
        except (OSError, asyncssh.Error, ValueError) as exc:
            raise explain(exc, self.host, timeout=self.timeout) from exc

    def forget_failure(self, kind: type[PdError]) -> None:
        """Let the next caller try at once, since the cause of such a failure is gone."""
        if isinstance(self._failure, kind):
            self._failure = None

    @asynccontextmanager
    async def session(
        self, wait: float, *, stream: bool = False, relay: bool = False
    ) -> AsyncIterator[asyncssh.SSHClientConnection]:
        """The connection, with one of its session slots held.

        Raises TimedOut when none comes free within `wait` seconds.
        """
        slots = [self.sessions]
        most, what = SESSIONS, "sessions"
        if stream or relay:
            slots.insert(0, self.streams if stream else self.relays)
            most, what = (STREAMS, "streams") if stream else (RELAYS, "connections")
        held: list[asyncio.Semaphore] = []
        try:
            try:
                async with asyncio.timeout(wait):
                    for slot in slots:
                        await slot.acquire()
                        held.append(slot)
            except TimeoutError:
                raise TimedOut.of(
                    "host.busy",
                    f"host {self.host.name}: all {most} {what} stayed in use for {wait:g} s.",
                    remedy="Wait for other operations there to end.",
                    values={"host": self.host.name, "seconds": wait},
                ) from None
            yield await self.connection()
        finally:
            for slot in reversed(held):
                if slot is self.sessions and self._withheld < self._narrowed:
                    self._withheld += 1
                else:
                    slot.release()

    def narrow(self) -> None:
        """The server refused a session: use one less at a time on this connection, so that callers
        wait for their turn here rather than try their luck there."""
        if self._narrowed < SESSIONS - 1:
            self._narrowed += 1

    def _widen(self) -> None:
        """A new connection may lead to a server that was told to allow more."""
        self.forbidden.clear()
        self.relay = ""
        for _ in range(self._withheld):
            self.sessions.release()
        self._narrowed = self._withheld = 0

    async def broken(self) -> None:
        """Throw the present connection away; the next caller makes a new one."""
        await self._drop()

    async def _drop(self) -> None:
        connected, self._connected = self._connected, None
        if connected:
            await shut(connected)

    async def close(self) -> None:
        """End the connection and any attempt at one; later callers are refused."""
        self.closed = True
        task = self._connecting
        if task:
            task.cancel()
            outcome = (await asyncio.gather(task, return_exceptions=True))[0]
            if isinstance(outcome, Connected):
                await shut(outcome)
        await self._drop()


async def shut(connected: Connected) -> None:
    """Close a connection, without waiting long for a peer that is gone."""
    conn = connected.conn
    conn.close()
    try:
        async with asyncio.timeout(1.0):
            await conn.wait_closed()
    except TimeoutError:
        conn.abort()
    except (OSError, asyncssh.Error):
        return  # it was broken already, which is no news while closing it
