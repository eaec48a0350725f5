"""Every SSH connection of the backend: run scripts, move files, follow output, dial TCP ports."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncssh

from backend.adapters.ssh import opening, sessions
from backend.adapters.ssh import relay as relaying
from backend.adapters.ssh.errors import dial_failed, explain, lost
from backend.adapters.ssh.hostkeys import HostKeys
from backend.adapters.ssh.link import Link, endpoint
from backend.adapters.ssh.wire import Payload, payload, stream_payload
from backend.domain.errors import HostDenied, HostKeyUnknown, Refused, RemoteFailed, TimedOut
from backend.domain.host import Host

MAX_OUTPUT = 16 << 20
"""Bytes of output one run may produce before it is stopped."""


@dataclass(frozen=True)
class RawOutput:
    """What a script said, as bytes, and its exit status."""

    stdout: bytes
    stderr: bytes
    exit: int


@dataclass(frozen=True)
class Output:
    """What a script said and its exit status. Bytes that are no UTF-8 became U+FFFD."""

    stdout: str
    stderr: str
    exit: int


class SshPool:
    """One connection per inventory entry, shared by all callers.

    `known_hosts` is our own file of accepted keys; `user_known_hosts` are files only read (default:
    what the ssh configuration names, else `~/.ssh/known_hosts`, and the system's).
    `user_ssh_config` defaults to `~/.ssh/config`. `inventory` resolves jump hosts that are entries.
    Times are in seconds.
    """

    def __init__(
        self,
        known_hosts: Path,
        *,
        user_ssh_config: Path | None = None,
        user_known_hosts: Iterable[Path] | None = None,
        inventory: Callable[[str], Host | None] | None = None,
        connect_timeout: float = 10.0,
        keepalive_s: float = 5.0,
        max_output: int = MAX_OUTPUT,
    ) -> None:
        self.keys = HostKeys(known_hosts, user_known_hosts)
        self._timeout = connect_timeout
        self._max_output = max_output
        self._links: dict[str, Link] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._closed = False
        self._opener = opening.Opener(
            self.keys,
            user_ssh_config,
            self._connection,
            inventory,
            timeout=connect_timeout,
            keepalive_s=keepalive_s,
        )

    # -- connections -----------------------------------------------------------------------

    def _link(self, host: Host) -> Link:
        """The entry's link; a link to where the entry led before its change is closed."""
        if self._closed:
            raise RuntimeError("the SSH pool is closed")
        link = self._links.get(host.name)
        if link and endpoint(link.host) == endpoint(host):
            return link
        if link:
            self._retire(link)
        link = Link(host, self._opener.open, self._timeout)
        self._links[host.name] = link
        return link

    def _retire(self, link: Link) -> None:
        task = asyncio.create_task(link.close(), name=f"close ssh {link.host.name}")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def forget(self, host_name: str) -> None:
        """Close the entry's connection, if there is one."""
        link = self._links.pop(host_name, None)
        if link:
            self._retire(link)

    async def close(self) -> None:
        """Close every connection; the pool is of no use afterwards."""
        self._closed = True
        links, self._links = list(self._links.values()), {}
        await asyncio.gather(*(link.close() for link in links), *self._closing)

    async def _connection(self, host: Host) -> asyncssh.SSHClientConnection:
        return await self._link(host).connection()

    async def connect(self, host: Host) -> str:
        """Make sure of the connection; the IP address it goes to (empty: through a jump host).

        Raises HostUnreachable, HostKeyUnknown, HostKeyChanged, HostDenied, HostError.
        """
        link = self._link(host)
        conn = await link.connection()
        peer = None if link.tunnelled else conn.get_extra_info("peername")
        return str(peer[0]) if isinstance(peer, tuple) and peer else ""

    async def unlock(self, file: str, passphrase: str) -> str:
        """Decrypt an identity file for as long as this process lives; its key's fingerprint.

        Raises NotFound, Invalid, HostDenied (`host.passphrase`) when the passphrase is wrong.
        """
        fingerprint = await asyncio.to_thread(self._opener.identities.unlock, file, passphrase)
        for link in self._links.values():
            link.forget_failure(HostDenied)
        return fingerprint

    async def accept_key(self, host: Host, fingerprint: str) -> None:
        """Accept the host's key, if it still shows the one with that SHA256 fingerprint.

        While a jump host's key is unknown, it is that one which is shown and accepted. Raises
        Refused when another unknown key is shown, HostKeyChanged when another was accepted.
        """
        try:
            await opening.handshake_only(self._opener, host, self._timeout)
        except HostKeyUnknown as exc:
            shown, of = exc.problem.values["fingerprint"], exc.problem.values["host"]
            if shown != fingerprint:
                raise Refused.of(
                    "host.key_differs",
                    f"host {host.name} now shows the key {shown}, not {fingerprint}.",
                    remedy="Look at the host again and compare the new fingerprint.",
                    values={"host": host.name, "fingerprint": shown, "given": fingerprint},
                ) from None
            name, port, key = self._opener.shown[of]
            await asyncio.to_thread(self.keys.add, name, port, key)
        for link in self._links.values():
            link.forget_failure(HostKeyUnknown)

    # -- scripts ---------------------------------------------------------------------------

    async def run(
        self,
        host: Host,
        script: str,
        *,
        args: Sequence[str] = (),
        stdin: bytes = b"",
        timeout: float = 20.0,
        check: bool = True,
        self_bounded: bool = False,
    ) -> Output:
        """Run a POSIX sh script on the host; it sees `args` as `$1`... and `stdin` as its input.

        The script starts only once it has arrived whole. After `timeout` seconds the remote
        process group is killed: by the remote end itself, or from here where the script is
        `self_bounded` (nothing in it can hang, which saves two processes). Raises TimedOut;
        HostUnreachable when the connection was lost (the outcome is then unknown); RemoteFailed for
        a non-zero exit when `check`; HostError kinds when there is no connection; ValueError for a
        NUL character.
        """
        raw = await self.run_raw(
            host, script, args=args, stdin=stdin, timeout=timeout, check=check,
            self_bounded=self_bounded,
        )  # fmt: skip
        return Output(
            raw.stdout.decode("utf-8", "replace"), raw.stderr.decode("utf-8", "replace"), raw.exit
        )

    async def run_raw(
        self,
        host: Host,
        script: str,
        *,
        args: Sequence[str] = (),
        stdin: bytes = b"",
        timeout: float = 20.0,
        check: bool = True,
        self_bounded: bool = False,
    ) -> RawOutput:
        """As `run`, with the output as bytes."""
        sent = payload(script, args, stdin, limit_s=None if self_bounded else timeout)
        link = self._link(host)
        async with link.session(timeout) as conn:
            try:
                reply = await sessions.exchange(conn, sent, timeout, self._max_output, link.narrow)
            except sessions.Unruly as unruly:
                await sessions.kill(conn, unruly.reply)
                if isinstance(unruly, sessions.Overdue):
                    raise _overdue(host, timeout) from None
                raise RemoteFailed.of(
                    "host.output",
                    f"host {host.name}: a command wrote more than {self._max_output} bytes.",
                    values={"host": host.name, "limit": self._max_output},
                ) from None
            except (OSError, asyncssh.Error) as exc:
                if conn.is_closed():
                    await link.broken()
                    raise lost(host, "a command ran") from exc
                raise explain(exc, host) from exc
        exit_ = sessions.verdict(host, reply, timeout)
        if check and exit_ != 0:
            raise _failed(host, exit_, reply.stderr)
        return RawOutput(reply.stdout, reply.stderr, exit_)

    @asynccontextmanager
    async def stream(
        self, host: Host, script: str, args: Sequence[str] = (), *, wait: float = 10.0
    ) -> AsyncIterator[AsyncIterator[str]]:
        """Follow a script's standard output until it ends or the context is left, which ends it.

        `async with pool.stream(...) as chunks: async for text in chunks: ...`. At most three a
        host at a time; TimedOut when none comes free within `wait` seconds. HostUnreachable is
        raised from the iteration when the connection is lost.
        """
        sent: Payload = stream_payload(script, args)
        link = self._link(host)
        async with link.session(wait, stream=True) as conn:
            try:
                process = await sessions.opened(conn, sent.command)
            except (OSError, asyncssh.Error) as exc:
                raise explain(exc, host) from exc
            try:
                process.stdin.write(sent.stdin)
                yield sessions.decoded(sessions.fenced(process, sent.token, host))
            finally:
                await sessions.hang_up(process)

    # -- files -----------------------------------------------------------------------------

    async def read_file(
        self,
        host: Host,
        path: str,
        *,
        offset: int = 0,
        limit: int = 16 << 20,
        timeout: float = 20.0,
    ) -> bytes:
        """At most `limit` bytes of a remote file from `offset` on, over SFTP.

        A relative path counts from the login's home. Raises NotFound, RemoteFailed, TimedOut.
        """
        async with self._sftp(host, timeout, path) as sftp, sftp.open(path, "rb") as file:
            data = await file.read(limit, offset)
        assert isinstance(data, bytes)
        return data

    async def listing(
        self, host: Host, path: str, *, timeout: float = 20.0
    ) -> dict[str, tuple[int, int]]:
        """What a remote folder holds, over SFTP: by name the size in bytes and the time of the last
        change, of a link's target where it is one. At most 20000 names.

        A relative path counts from the login's home. Raises NotFound, RemoteFailed, TimedOut.
        """
        async with self._sftp(host, timeout, path) as sftp:
            return await sessions.listing(sftp, path)

    async def write_file(
        self, host: Host, path: str, data: bytes, mode: int = 0o600, *, timeout: float = 20.0
    ) -> None:
        """Replace a remote file whole, over SFTP: written beside it, synced by rename.

        Raises NotFound when its folder is missing, RemoteFailed, TimedOut.
        """
        async with self._sftp(host, timeout, path) as sftp:
            await sessions.replace_file(sftp, path, data, mode)

    @asynccontextmanager
    async def _sftp(
        self, host: Host, timeout: float, path: str
    ) -> AsyncIterator[asyncssh.SFTPClient]:
        if "\0" in path:
            raise ValueError("a remote path cannot hold a NUL character")
        link = self._link(host)
        async with link.session(timeout) as conn:
            try:
                async with asyncio.timeout(timeout), conn.start_sftp_client() as sftp:
                    yield sftp
            except TimeoutError:
                raise _overdue(host, timeout) from None
            except asyncssh.SFTPNoSuchFile as exc:
                raise sessions.no_such_file(host, path) from exc
            except (OSError, asyncssh.Error) as exc:
                if conn.is_closed():
                    await link.broken()
                    raise lost(host, f"{path} was moved") from exc
                raise explain(exc, host) from exc

    # -- TCP -------------------------------------------------------------------------------

    async def open_tcp(
        self, host: Host, dest: str, port: int, *, timeout: float = 10.0, relay: bool = False
    ) -> tuple[asyncssh.SSHReader[bytes], asyncssh.SSHWriter[bytes]]:
        """A TCP connection made by the host to `dest:port`; names resolve there.

        Forwarded connections do not count as sessions. Where the server forwards none, `relay` lets
        a program there dial, which takes a session for as long. Raises DialFailed when the port
        does not answer the host, TimedOut, HostError kinds when the host itself is the trouble.
        """
        link = self._link(host)
        conn = await link.connection()
        if relay and (dest, port) in link.forbidden:
            return await self._relayed(link, dest, port, timeout)
        try:
            async with asyncio.timeout(timeout):
                return await conn.open_connection(dest, port)
        except TimeoutError:
            raise _no_answer(host, dest, port, timeout) from None
        except asyncssh.ChannelOpenError as exc:
            if conn.is_closed():
                await link.broken()
            error = dial_failed(exc, host, dest, port)
            if error.problem.rule != "host.forwarding":
                raise error from exc
            link.forbidden.add((dest, port))
            if not relay:
                raise error from exc
        except (OSError, asyncssh.Error) as exc:
            raise explain(exc, host) from exc
        return await self._relayed(link, dest, port, timeout)

    def forwards(self, host: Host, dest: str, port: int) -> bool:
        """Whether the server forwards to the address, as far as is known."""
        link = self._links.get(host.name)
        return link is None or (dest, port) not in link.forbidden

    async def _relayed(
        self, link: Link, dest: str, port: int, timeout: float
    ) -> tuple[asyncssh.SSHReader[bytes], asyncssh.SSHWriter[bytes]]:
        host = link.host
        if not link.relay:
            link.relay = (await self.run(host, relaying.FIND)).stdout.strip()
            if not link.relay:
                raise relaying.no_tool(host)
        async with AsyncExitStack() as slots:
            conn = await slots.enter_async_context(link.session(timeout, relay=True))
            try:
                async with asyncio.timeout(timeout):
                    process = await relaying.dial(conn, host, link.relay, dest, port, link.narrow)
            except TimeoutError:
                raise _no_answer(host, dest, port, timeout) from None
            except (OSError, asyncssh.Error, ValueError) as exc:
                raise explain(exc, host) from exc
            task = asyncio.create_task(_hold(process, slots.pop_all()), name=f"relay {host.name}")
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
        return process.stdout, process.stdin


async def _hold(process: asyncssh.SSHClientProcess[bytes], slots: AsyncExitStack) -> None:
    """Keep the slots until the session is over."""
    async with slots:
        await process.wait_closed()


def _no_answer(host: Host, dest: str, port: int, timeout: float) -> TimedOut:
    return TimedOut.of(
        "host.dial",
        f"host {host.name}: {dest}:{port} did not answer it within {timeout:g} s.",
        values={"host": host.name, "dest": dest, "port": port, "seconds": timeout},
    )


def _overdue(host: Host, timeout: float) -> TimedOut:
    return TimedOut.of(
        "host.overdue",
        f"host {host.name}: a command did not end within {timeout:g} s and was killed.",
        remedy="Look whether the host is overloaded or a tool on it hangs.",
        values={"host": host.name, "seconds": timeout},
    )


def _failed(host: Host, exit_: int, stderr: bytes) -> RemoteFailed:
    text = stderr.decode("utf-8", "replace").strip()
    return RemoteFailed.of(
        "host.command",
        f"host {host.name}: a command failed with exit status {exit_}"
        + (f": {text.splitlines()[-1]}" if text else "."),
        values={"host": host.name, "exit": exit_, "stderr": text[-2000:]},
    )
