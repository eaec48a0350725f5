"""HTTP through the host's SSH connection, to real servers on sockets of the loopback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable

import pytest

from backend.adapters.http import HostHttp, MemberUnreachable
from backend.adapters.ssh.pool import SshPool
from backend.domain.errors import HostUnreachable, PdError, Refused, TimedOut
from backend.domain.host import Host
from tests.backend.ssh.conftest import Machine

Head = tuple[str, bytes]


class Site:
    """A small HTTP server: counts its connections, and misbehaves on some paths."""

    def __init__(self) -> None:
        self.connections = 0
        self.requests: list[Head] = []
        self.idle: list[asyncio.StreamWriter] = []
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.idle.append(writer)
        try:
            while line := await reader.readline():
                await self._answer(line.decode().strip(), reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client left
        finally:
            writer.close()

    async def _answer(
        self, line: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        length = 0
        while (header := await reader.readline()) not in (b"\r\n", b""):
            if header.lower().startswith(b"content-length:"):
                length = int(header.split(b":")[1])
        body = await reader.readexactly(length)
        self.requests.append((line, body))
        path = line.split()[1]
        if path == "/hang":
            await asyncio.sleep(5)
        elif path == "/drop":
            writer.close()
        elif path == "/half":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            writer.close()
        elif path == "/noise":
            writer.write(b"\x00\x01 no http\r\n\r\n")
        elif path == "/chunks":
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for part in (b"one", b"two"):
                writer.write(b"3\r\n" + part + b"\r\n")
                await writer.drain()
                await asyncio.sleep(0.01)
            writer.write(b"0\r\n\r\n")
        else:
            status = b"503 Busy" if path == "/busy" else b"200 OK"
            answer = json.dumps({"path": path}).encode()
            head = b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n" % (status, len(answer))
            writer.write(head + answer)
        await writer.drain()


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    made = Site()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    yield made
    server.close()
    for writer in made.idle:
        writer.close()


@pytest.fixture
async def http(pool: SshPool) -> AsyncIterator[HostHttp]:
    made = HostHttp(pool)
    yield made
    await made.close()


@pytest.fixture
def url(site: Site) -> Callable[[str], str]:
    return lambda path: f"http://127.0.0.1:{site.port}{path}"


Url = Callable[[str], str]


async def test_answers_of_any_status(http: HostHttp, host: Host, url: Url, site: Site) -> None:
    ok = await http.request(host, "GET", url("/health"))
    assert (ok.status_code, ok.json()) == (200, {"path": "/health"})
    assert (await http.request(host, "GET", url("/busy"))).status_code == 503
    await http.request(host, "POST", url("/w?x=1"), json={"a": 1}, headers={"X-A": "b"})
    assert site.requests[-1] == ("POST /w?x=1 HTTP/1.1", b'{"a":1}')


async def test_names_resolve_on_the_host_and_the_environment_is_ignored(
    http: HostHttp, host: Host, site: Site, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    answer = await http.request(host, "GET", f"http://localhost:{site.port}/x")
    assert answer.status_code == 200
    assert machine.tcp_dialled == 1


async def test_two_hundred_at_once(http: HostHttp, host: Host, url: Url, machine: Machine) -> None:
    logins = machine.logins
    answers = await asyncio.gather(
        *(http.request(host, "GET", url(f"/{i}"), timeout=30) for i in range(200))
    )
    assert [a.json()["path"] for a in answers] == [f"/{i}" for i in range(200)]
    assert machine.logins <= logins + 1


async def test_probes_keep_their_connection_and_posts_make_one(
    http: HostHttp, host: Host, url: Url, site: Site
) -> None:
    for _ in range(5):
        await http.request(host, "GET", url("/health"))
    assert site.connections == 1
    await http.request(host, "POST", url("/workers"))
    assert site.connections == 2


async def test_a_kept_connection_that_the_member_closed(
    http: HostHttp, host: Host, url: Url, site: Site
) -> None:
    await http.request(host, "GET", url("/health"))
    for writer in site.idle:
        writer.close()
    assert (await http.request(host, "GET", url("/health"))).status_code == 200
    assert site.connections == 2


async def test_a_new_ssh_connection_is_used_after_the_old_one_broke(
    http: HostHttp, host: Host, url: Url, machine: Machine
) -> None:
    await http.request(host, "GET", url("/health"))
    for conn in list(machine.connections):
        conn.abort()
    while machine.connections:
        await asyncio.sleep(0.01)
    assert (await http.request(host, "GET", url("/health"))).status_code == 200


@pytest.mark.parametrize(
    ("path", "kind", "says"),
    [
        ("/drop", MemberUnreachable, "broke the connection"),
        ("/half", MemberUnreachable, "broke the connection"),
        ("/noise", MemberUnreachable, "broke the connection"),
        ("/hang", TimedOut, r"within 0\.3 s"),
    ],
)
async def test_members_that_misbehave(
    http: HostHttp, host: Host, url: Url, path: str, kind: type[PdError], says: str
) -> None:
    with pytest.raises(kind, match=says) as caught:
        await http.request(host, "POST", url(path), timeout=0.3 if path == "/hang" else 10)
    assert caught.value.problem.values["url"] == url(path)


async def test_a_member_that_is_not_there(http: HostHttp, host: Host) -> None:
    with pytest.raises(MemberUnreachable, match="takes no connection") as caught:
        await http.request(host, "GET", "http://127.0.0.1:9/health")
    assert caught.value.problem.rule == "member.refused"
    with pytest.raises(Refused, match="plain http"):
        await http.request(host, "GET", "https://127.0.0.1:9/health")


async def test_the_host_itself_is_the_trouble(
    http: HostHttp, host: Host, url: Url, machine: Machine
) -> None:
    await http.request(host, "GET", url("/health"))
    await machine.stop()
    with pytest.raises(HostUnreachable):
        await http.request(host, "GET", url("/health"))


async def test_streaming(http: HostHttp, host: Host, url: Url) -> None:
    async with http.stream(host, "POST", url("/chunks"), json={}) as response:
        assert [part async for part in response.aiter_bytes()] == [b"one", b"two"]
    with pytest.raises(MemberUnreachable, match="broke"):
        async with http.stream(host, "GET", url("/half")) as response:
            await response.aread()


async def test_forgetting_closes_what_was_kept(
    http: HostHttp, host: Host, url: Url, site: Site
) -> None:
    await http.request(host, "GET", url("/health"))
    http.forget(host.name)
    await http.request(host, "GET", url("/health"))
    assert site.connections == 2
