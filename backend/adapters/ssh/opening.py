"""Opening connections: the ssh configuration, jump hosts, key checks, and how many at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path

import asyncssh

from backend.adapters.ssh.config import Route, config_files, connect_options, hop_host, route
from backend.adapters.ssh.errors import (
    at_jump,
    explain,
    no_keys_taken,
    passphrase_needed,
    through_jump,
)
from backend.adapters.ssh.hostkeys import HostKeys, KeyCheck, KeyChecker
from backend.adapters.ssh.identities import Identities
from backend.adapters.ssh.link import Connected, shut
from backend.adapters.ssh.parsed import Parsed
from backend.domain.errors import HostError, Invalid
from backend.domain.host import Host

PER_SERVER = 4
"""Handshakes at a time with one server (OpenSSH drops some beyond ten)."""
OVERALL = 20
"""Handshakes at a time in all, as far as possible: see `_turn`."""
OVERALL_WAIT_S = 1.0
MAX_HOPS = 5

_chain: ContextVar[tuple[str, ...]] = ContextVar("pdtui_ssh_chain", default=())
"""Names of the hosts whose connections wait for the one being opened: finds circles."""


class Opener:
    """Opens connections for whoever asks. `through` gives the shared connection of a jump host;
    `shown` keeps the last refused key of each host."""

    def __init__(
        self,
        keys: HostKeys,
        ssh_config: Path | None,
        through: Callable[[Host], Awaitable[asyncssh.SSHClientConnection]],
        inventory: Callable[[str], Host | None] | None,
        *,
        timeout: float,
        keepalive_s: float,
    ) -> None:
        self._keys = keys
        self._ssh_config = ssh_config
        self._through = through
        self._inventory = inventory
        self._timeout = timeout
        self._keepalive_s = keepalive_s
        self._servers: dict[tuple[str, int], asyncio.Semaphore] = {}
        self._overall = asyncio.Semaphore(OVERALL)
        self.shown: dict[str, tuple[str, int, asyncssh.SSHKey]] = {}
        self.identities = Identities()
        self._parsed = Parsed()

    async def open(self, host: Host) -> Connected:
        """Connect to `host`, through its jump hosts, whose connections the pool shares.

        Raises our own errors for keys and jump hosts; what asyncssh and the network raise comes
        as it is, for the caller to decide on another try.
        """
        files = config_files(self._ssh_config)
        way = await asyncio.to_thread(route, host, files, self._parsed)
        if not way.hops:
            return Connected(await self._connect(host, way, None, None))
        hop = self._hop(host, way.hops)
        chain = _chain.get()
        if hop.name in (*chain, host.name) or len(chain) >= MAX_HOPS:
            raise HostError.of(
                "host.jump",
                f"host {host.name}: its jump hosts go in a circle: "
                f"{' < '.join((*chain, host.name, hop.name))}.",
                remedy="Correct jump or ProxyJump.",
                values={"host": host.name},
            )
        token = _chain.set((*chain, host.name))
        try:
            tunnel = await self._through(hop)
        except HostError as error:
            listed = self._inventory is not None and self._inventory(hop.name) is not None
            raise at_jump(error, host, hop, listed=listed) from error
        finally:
            _chain.reset(token)
        return Connected(await self._connect(host, way, tunnel, hop), tunnel)

    def _hop(self, host: Host, hops: tuple[str, ...]) -> Host:
        """The last jump host as an entry: the inventory's, or one that leads through the others."""
        *before, text = hops
        entry = self._inventory(text) if self._inventory else None
        if entry and not before:
            return entry
        try:
            return hop_host(text, ",".join(before))
        except ValueError as exc:
            raise Invalid.of(
                "host.jump", f"host {host.name}: jump host {text!r} cannot be read ({exc}).",
                remedy="Write it as [user@]host[:port].", values={"host": host.name},
            ) from exc  # fmt: skip

    async def _connect(
        self,
        host: Host,
        way: Route,
        tunnel: asyncssh.SSHClientConnection | None,
        hop: Host | None,
    ) -> asyncssh.SSHClientConnection:
        known = await asyncio.to_thread(
            self._keys.known, way.alias, "", way.port, way.known_hosts_files
        )
        check = KeyCheck(host, self._keys, way.known_hosts_files)
        identity = await asyncio.to_thread(self.identities.resolve, way.identity_files)
        options = connect_options(host, way, known, identity)
        checker = KeyChecker(check)
        async with self._turn(way.hostname, way.port):
            try:
                return await asyncssh.connect(
                    host.address,
                    **options,
                    tunnel=tunnel,
                    known_hosts=check.lookup,
                    client_factory=lambda: checker,
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
            except asyncssh.PermissionDenied as exc:
                if not checker.takes_keys:
                    raise no_keys_taken(host) from exc
                if not identity.locked:
                    raise
                raise passphrase_needed(host, identity.locked) from exc
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
