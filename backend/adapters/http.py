"""HTTP to members and routers, made by their own host: every connection is a channel of its SSH
connection, so no port has to be open to us, names resolve there, and no proxy is in the way.

Errors are ours: `MemberUnreachable` when the host is fine but the member does not take or keep the
connection, `TimedOut` when it does not answer in time, and the HostError kinds when the host itself
cannot be reached (then nothing is known of the member).
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import asyncssh
import httpcore
import httpx

from backend.adapters.ssh.errors import DialFailed
from backend.adapters.ssh.link import endpoint
from backend.adapters.ssh.pool import SshPool
from backend.domain.errors import HostError, Refused, TimedOut
from backend.domain.host import Host

IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that reuse an idle connection, and may be sent again when it had just been closed."""
KEEP_IDLE_S = 30.0


class MemberUnreachable(HostError):
    """The host answers, the member's port does not: refused, reset, or no HTTP. `values["url"]`."""


class _Stream(httpcore.AsyncNetworkStream):
    """One channel as httpcore's stream."""

    def __init__(
        self, reader: asyncssh.SSHReader[bytes], writer: asyncssh.SSHWriter[bytes]
    ) -> None:
        self._reader, self._writer = reader, writer

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            async with asyncio.timeout(timeout):
                return await self._reader.read(max_bytes)
        except TimeoutError as exc:
            raise httpcore.ReadTimeout from exc
        except (OSError, asyncssh.Error) as exc:
            raise httpcore.ReadError(str(exc)) from exc

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if not buffer:
            return
        try:
            async with asyncio.timeout(timeout):
                self._writer.write(buffer)
                await self._writer.drain()
        except TimeoutError as exc:
            raise httpcore.WriteTimeout from exc
        except (OSError, asyncssh.Error) as exc:
            raise httpcore.WriteError(str(exc)) from exc

    async def aclose(self) -> None:
        self._writer.close()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.AsyncNetworkStream:
        raise httpcore.UnsupportedProtocol("members speak plain HTTP inside the SSH connection")

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":  # an idle connection that is readable was closed by the member
            return self._reader.at_eof() or self._writer.is_closing()
        return None


class _Network(httpcore.AsyncNetworkBackend):
    """Dials from the host instead of from here; `relay`, also where its server forwards nothing."""

    def __init__(self, pool: SshPool, host: Host, *, relay: bool) -> None:
        self._pool, self._host, self._relay = pool, host, relay

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        try:
            reader, writer = await self._pool.open_tcp(
                self._host, host, port,
                timeout=10.0 if timeout is None else timeout, relay=self._relay,
            )  # fmt: skip
        except DialFailed as exc:
            raise httpcore.ConnectError(str(exc.problem.values.get("cause", exc))) from exc
        return _Stream(reader, writer)

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.AsyncNetworkStream:
        raise httpcore.UnsupportedProtocol("no Unix sockets")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _Body(httpx.AsyncByteStream):
    """A response body whose transport errors are ours as well."""

    def __init__(self, host: Host, url: str, stream: Any) -> None:
        self._host, self._url, self._stream = host, url, stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for part in self._stream:
                yield part
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException) as exc:
            raise _explain(exc, self._host, self._url) from exc

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Transport(httpx.AsyncBaseTransport):
    """httpx on top of httpcore's pool over the host's channels."""

    def __init__(self, pool: SshPool, host: Host, *, keep: bool) -> None:
        self._host = host
        self._core = httpcore.AsyncConnectionPool(
            max_connections=None,
            max_keepalive_connections=None if keep else 0,
            keepalive_expiry=KEEP_IDLE_S,
            network_backend=_Network(pool, host, relay=not keep),
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.scheme != "http":
            problem = httpcore.UnsupportedProtocol(f"{request.url.scheme}:// is not spoken there")
            raise _explain(problem, self._host, str(request.url))
        sent = httpcore.Request(
            method=request.method,
            url=httpcore.URL(
                scheme=request.url.raw_scheme,
                host=request.url.raw_host,
                port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        try:
            answer = await self._core.handle_async_request(sent)
        except (
            httpcore.NetworkError,
            httpcore.ProtocolError,
            httpcore.TimeoutException,
            httpcore.UnsupportedProtocol,
        ) as exc:
            raise _explain(exc, self._host, str(request.url)) from exc
        return httpx.Response(
            status_code=answer.status,
            headers=answer.headers,
            stream=_Body(self._host, str(request.url), answer.stream),
            extensions=answer.extensions,
        )

    async def aclose(self) -> None:
        await self._core.aclose()


class _Clients:
    """The two clients of one inventory entry: one keeps connections, one makes a new one a call."""

    def __init__(self, pool: SshPool, host: Host) -> None:
        self.host = host
        self.kept, self.fresh = (
            httpx.AsyncClient(
                transport=_Transport(pool, host, keep=keep), trust_env=False, follow_redirects=False
            )
            for keep in (True, False)
        )

    async def close(self) -> None:
        await self.kept.aclose()
        await self.fresh.aclose()


class HostHttp:
    """HTTP clients by host, kept while the entry leads to the same place. Close it at the end."""

    def __init__(self, pool: SshPool) -> None:
        self._pool = pool
        self._clients: dict[str, _Clients] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def request(
        self,
        host: Host,
        method: str,
        url: str,
        *,
        json: Any = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 10.0,
    ) -> httpx.Response:
        """One request, its response read whole within `timeout` seconds; any status is an answer.

        Raises MemberUnreachable, TimedOut, HostError kinds.
        """
        kept = method.upper() in IDEMPOTENT and self._may_keep(host, url)
        try:
            async with asyncio.timeout(timeout):
                try:
                    return await self._send(host, method, url, json, headers, timeout, kept=kept)
                except HostError as exc:
                    closed = isinstance(exc, MemberUnreachable) and exc.problem.values["closed"]
                    if not kept or not (closed or exc.problem.rule == "host.forwarding"):
                        raise
                    return await self._send(host, method, url, json, headers, timeout, kept=False)
        except TimeoutError as exc:
            raise _timed_out(host, url, timeout) from exc

    def _may_keep(self, host: Host, url: str) -> bool:
        """An idle connection costs nothing where it is forwarded, else one of few sessions."""
        parsed = httpx.URL(url)
        return self._pool.forwards(host, parsed.host, parsed.port or 80)

    async def _send(
        self,
        host: Host,
        method: str,
        url: str,
        json: Any,
        headers: Mapping[str, str] | None,
        timeout: float,
        *,
        kept: bool,
    ) -> httpx.Response:
        clients = self._of(host)
        client = clients.kept if kept else clients.fresh
        return await client.request(method, url, json=json, headers=headers, timeout=timeout)

    @asynccontextmanager
    async def stream(
        self,
        host: Host,
        method: str,
        url: str,
        *,
        json: Any = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 30.0,
    ) -> AsyncIterator[httpx.Response]:
        """One request whose body is read as it comes; `timeout` is for each wait, not for all.

        Raises as `request`, from the iteration of the body too.
        """
        client = self._of(host).fresh
        async with client.stream(
            method, url, json=json, headers=headers, timeout=timeout
        ) as response:
            yield response

    def _of(self, host: Host) -> _Clients:
        clients = self._clients.get(host.name)
        if clients and endpoint(clients.host) == endpoint(host):
            return clients
        if clients:
            self._retire(clients)
        clients = self._clients[host.name] = _Clients(self._pool, host)
        return clients

    def _retire(self, clients: _Clients) -> None:
        task = asyncio.create_task(clients.close(), name=f"close http {clients.host.name}")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def forget(self, host_name: str) -> None:
        """Close a host's idle connections."""
        clients = self._clients.pop(host_name, None)
        if clients:
            self._retire(clients)

    async def close(self) -> None:
        """Close every connection."""
        clients, self._clients = list(self._clients.values()), {}
        await asyncio.gather(*(c.close() for c in clients), *self._closing)


def _timed_out(host: Host, url: str, seconds: float) -> TimedOut:
    return TimedOut.of(
        "member.timeout",
        f"{url} on host {host.name} did not answer within {seconds:g} s.",
        remedy="Look at its log: it may still be loading, or hang.",
        values={"host": host.name, "url": url, "seconds": seconds},
    )


def _explain(exc: Exception, host: Host, url: str) -> HostError | TimedOut | Refused:
    """What httpcore raised, as one of our errors."""
    if isinstance(exc, httpcore.TimeoutException):
        return TimedOut.of(
            "member.timeout",
            f"{url} on host {host.name} did not answer in time.",
            remedy="Look at its log: it may still be loading, or hang.",
            values={"host": host.name, "url": url},
        )
    if isinstance(exc, httpcore.UnsupportedProtocol):
        return Refused.of(
            "member.protocol", f"{url} cannot be asked through host {host.name}: {exc}.",
            remedy="Use a plain http:// URL.", values={"host": host.name, "url": url},
        )  # fmt: skip
    refused = isinstance(exc, httpcore.ConnectError)
    cause = str(exc) or type(exc).__name__
    return MemberUnreachable.of(
        "member.refused" if refused else "member.broken",
        f"{url} on host {host.name} "
        + (f"takes no connection ({cause})." if refused else f"broke the connection ({cause})."),
        remedy="Look whether its process lives, and at its log.",
        values={"host": host.name, "url": url, "cause": cause, "closed": not refused},
    )
