"""Opening connections: the ssh configuration, jump hosts, key checks, and how many at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import asyncssh

from backend.adapters.ssh.config import config_files, connect_options, hop_host, route
from backend.adapters.ssh.errors import explain, through_jump
from backend.adapters.ssh.hostkeys import HostKeys, KeyCheck, KeyChecker
from backend.adapters.ssh.link import Connected, shut
from backend.domain.errors import HostError, Invalid
from backend.domain.host import Host

PER_SERVER = 4
"""Handshakes at a time with one server (OpenSSH drops some beyond ten)."""
OVERALL = 20
"""Handshakes at a time in all, as far as possible: see `_turn`."""
OVERALL_WAIT_S = 1.0
MAX_HOPS = 5


class Opener:
    """Opens one connection at a time for whoever asks. `shown` keeps the last refused key."""

    def __init__(
        self,
        keys: HostKeys,
        ssh_config: Path | None,
        inventory: Callable[[str], Host | None] | None,
        *,
        timeout: float,
        keepalive_s: float,
    ) -> None:
        self._keys = keys
        self._ssh_config = ssh_config
        self._inventory = inventory
        self._timeout = timeout
        self._keepalive_s = keepalive_s
        self._servers: dict[tuple[str, int], asyncio.Semaphore] = {}
        self._overall = asyncio.Semaphore(OVERALL)
        self.shown: dict[str, tuple[str, int, asyncssh.SSHKey]] = {}

    async def open(self, host: Host) -> Connected:
        """Connect to `host` through its jump hosts.

        Raises our own errors for keys and jump hosts; what asyncssh and the network raise comes
        as it is, for the caller to decide on another try.
        """
        hops: list[asyncssh.SSHClientConnection] = []
        try:
            conn = await self._open(host, hops, through=(), depth=0)
        except BaseException:
            for hop in reversed(hops):
                hop.abort()
            raise
        return Connected(conn, tuple(hops))

    async def _open(
        self,
        host: Host,
        hops: list[asyncssh.SSHClientConnection],
        through: tuple[str, ...],
        depth: int,
    ) -> asyncssh.SSHClientConnection:
        if depth > MAX_HOPS:
            raise HostError.of(
                "host.jump", f"host {host.name}: more than {MAX_HOPS} jump hosts, or a circle.",
                remedy="Correct jump or ProxyJump.", values={"host": host.name},
            )  # fmt: skip
        files = config_files(self._ssh_config)
        way = await asyncio.to_thread(route, host, files)
        tunnel: asyncssh.SSHClientConnection | None = None
        hop: Host | None = None
        for text in through or way.hops:
            hop = self._hop(host, text)
            tunnel = await self._open_hop(hop, hops, tunnel, depth + 1)
        return await self._connect(host, files, tunnel, hop)

    async def _open_hop(
        self,
        hop: Host,
        hops: list[asyncssh.SSHClientConnection],
        tunnel: asyncssh.SSHClientConnection | None,
        depth: int,
    ) -> asyncssh.SSHClientConnection:
        """Open a jump host, through the hop before it or as its own entry says."""
        try:
            if tunnel is None:
                conn = await self._open(hop, hops, (), depth)
            else:
                conn = await self._connect(hop, config_files(self._ssh_config), tunnel, None)
        except (OSError, asyncssh.Error, ValueError) as exc:
            raise explain(exc, hop, timeout=self._timeout) from exc
        hops.append(conn)
        return conn

    def _hop(self, host: Host, text: str) -> Host:
        entry = self._inventory(text) if self._inventory else None
        if entry:
            return entry
        try:
            return hop_host(text)
        except ValueError as exc:
            raise Invalid.of(
                "host.jump", f"host {host.name}: jump host {text!r} cannot be read ({exc}).",
                remedy="Write it as [user@]host[:port].", values={"host": host.name},
            ) from exc  # fmt: skip

    async def _connect(
        self,
        host: Host,
        files: tuple[Path, ...],
        tunnel: asyncssh.SSHClientConnection | None,
        hop: Host | None,
    ) -> asyncssh.SSHClientConnection:
        way = await asyncio.to_thread(route, host, files)
        known = await asyncio.to_thread(
            self._keys.known, way.alias, "", way.port, way.known_hosts_files
        )
        check = KeyCheck(host, self._keys, way.known_hosts_files)
        options = connect_options(host, way, known)
        async with self._turn(way.hostname, way.port):
            try:
                return await asyncssh.connect(
                    host.address,
                    **options,
                    tunnel=tunnel,
                    known_hosts=check.lookup,
                    client_factory=lambda: KeyChecker(check),
                    connect_timeout=self._timeout,
                    login_timeout=self._timeout,
                    keepalive_interval=self._keepalive_s,
                    keepalive_count_max=3,
                )
            except asyncssh.HostKeyNotVerifiable as exc:
                if check.error is None or check.shown is None:
                    raise
                self.shown[host.name] = (check.name, check.port, check.shown)
                raise check.error from exc
            except asyncssh.ChannelOpenError as exc:
                if hop is None:
                    raise
                raise through_jump(exc, host, hop) from exc

    @asynccontextmanager
    async def _turn(self, name: str, port: int) -> AsyncIterator[None]:
        """Wait for a handshake's turn: strictly per server; overall at most a second, so that
        servers which accept and say nothing never delay the others."""
        server = self._servers.setdefault((name, port), asyncio.Semaphore(PER_SERVER))
        async with server:
            try:
                async with asyncio.timeout(OVERALL_WAIT_S):
                    await self._overall.acquire()
                held = True
            except TimeoutError:
                held = False
            try:
                yield
            finally:
                if held:
                    self._overall.release()


async def handshake_only(opener: Opener, host: Host, timeout: float) -> None:
    """Connect and close again, to see which key the host shows now.

    Raises HostKeyUnknown, HostKeyChanged and the other HostError kinds.
    """
    try:
        async with asyncio.timeout(timeout):
            connected = await opener.open(host)
    except (OSError, asyncssh.Error, ValueError) as exc:
        raise explain(exc, host, timeout=timeout) from exc
    await shut(connected)
