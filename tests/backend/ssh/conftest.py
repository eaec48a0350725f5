"""A real asyncssh server on a free port, which really runs commands as local processes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh
import pytest

from backend.adapters.ssh.pool import SshPool
from backend.domain.host import Host


@dataclass
class Machine:
    """One embedded SSH host. `shell` is its login shell, `sessions_cap` its MaxSessions."""

    home: Path
    key: asyncssh.SSHKey
    client_key: Path
    shell: tuple[str, ...] = ("bash", "-c")
    sessions_cap: int = 1000
    open_sessions: int = 0
    channels: set[asyncssh.SSHServerProcess[bytes]] = field(default_factory=set)
    most_sessions: int = 0
    granted_sessions: int = 0
    refused_sessions: int = 0
    logins: int = 0
    forwarding: bool = True
    drop_first: int = 0
    tcp_dialled: int = 0
    file_sessions: int = 0
    more_keys: list[asyncssh.SSHKey] = field(default_factory=list)
    port: int = 0
    path: str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    connections: set[asyncssh.SSHServerConnection] = field(default_factory=set)
    acceptor: asyncssh.SSHAcceptor | None = None

    async def start(self) -> None:
        """Listen on a free port of the loopback, the same one again after a stop."""
        machine = self

        class Session(asyncssh.SSHServerProcess[bytes]):
            def connection_lost(self, exc: Exception | None) -> None:
                # Its program may take a moment longer to end: what the client can know of is over.
                machine.channels.discard(self)
                super().connection_lost(exc)

        class Server(asyncssh.SSHServer):
            def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
                self.conn = conn
                machine.connections.add(conn)
                if machine.drop_first > 0:
                    machine.drop_first -= 1
                    conn.abort()

            def connection_lost(self, exc: Exception | None) -> None:
                machine.connections.discard(self.conn)

            def session_requested(self) -> asyncssh.SSHServerProcess[bytes]:
                if machine.granted_sessions >= machine.sessions_cap:
                    machine.refused_sessions += 1
                    raise asyncssh.ChannelOpenError(2, "open failed")
                machine.granted_sessions += 1
                return Session(machine._process, machine._sftp, 3, False)

            def auth_completed(self) -> None:
                machine.logins += 1

            def connection_requested(
                self, dest_host: str, dest_port: int, orig_host: str, orig_port: int
            ) -> bool:
                if not machine.forwarding:
                    raise asyncssh.ChannelOpenError(1, "administratively prohibited")
                machine.tcp_dialled += 1
                return True

        self.acceptor = await asyncssh.listen(
            "127.0.0.1",
            self.port,
            server_factory=Server,
            server_host_keys=[self.key, *self.more_keys],
            authorized_client_keys=str(self.client_key) + ".pub",
            encoding=None,
            reuse_address=True,
        )
        self.port = self.acceptor.get_port()

    async def stop(self) -> None:
        """Drop every connection and stop listening."""
        for conn in list(self.connections):
            conn.abort()
        if self.acceptor:
            self.acceptor.close()
            await self.acceptor.wait_closed()
            self.acceptor = None
        while self.connections:
            await asyncio.sleep(0.01)

    def _sftp(self, chan: asyncssh.SSHServerChannel[bytes]) -> asyncssh.SFTPServer:
        self.file_sessions += 1
        return asyncssh.SFTPServer(chan, chroot=os.fsencode(self.home))

    async def _process(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        self.open_sessions += 1
        self.channels.add(process)
        self.most_sessions = max(self.most_sessions, len(self.channels))
        try:
            await self._serve(process)
        except (BrokenPipeError, ConnectionError):
            return
        finally:
            self.open_sessions -= 1
            self.channels.discard(process)
            self.granted_sessions -= 1

    async def _serve(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        env = {
            "HOME": str(self.home),
            "PATH": self.path,
            "LANG": "C.UTF-8",
            "BASH_ENV": str(self.home / ".bashrc"),
            "SSH_CONNECTION": f"127.0.0.1 1 127.0.0.1 {self.port}",
        }
        child = await asyncio.create_subprocess_exec(
            *self.shell,
            process.command or "true",
            cwd=self.home,
            env=env,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        assert child.stdin
        assert child.stdout
        assert child.stderr
        feeding = asyncio.create_task(feed(process, child.stdin))
        try:
            await asyncio.gather(
                drain(child.stdout, process.stdout), drain(child.stderr, process.stderr)
            )
            code = await child.wait()
        finally:
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)
        if code < 0:
            process.exit_with_signal(signal.Signals(-code).name[3:])
        else:
            process.exit(code)

    def host(self, name: str = "node1", **changes: object) -> Host:
        """Its inventory entry."""
        entry: dict[str, object] = {
            "name": name,
            "address": "127.0.0.1",
            "port": self.port,
            "user": "tester",
            "identity_files": (str(self.client_key),),
        }
        return Host.model_validate(entry | changes)


@pytest.fixture(scope="session")
def client_key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("client") / "id"
    key = asyncssh.generate_private_key("ssh-ed25519")
    key.write_private_key(path)
    key.write_public_key(f"{path}.pub")
    return path


async def feed(process: asyncssh.SSHServerProcess[bytes], into: asyncio.StreamWriter) -> None:
    """The client's input into the child, which may have ended without reading it."""
    with contextlib.suppress(OSError, asyncssh.Error):
        while data := await process.stdin.read(65536):
            into.write(data)
            await into.drain()
    into.close()


async def drain(source: asyncio.StreamReader, into: asyncssh.SSHWriter[bytes]) -> None:
    """The child's output to the client, to its end even when nobody takes it any more."""
    while data := await source.read(65536):
        with contextlib.suppress(OSError, asyncssh.Error):
            into.write(data)
            await into.drain()


class MakeMachine:
    """Makes machines; each has its own home and host key."""

    def __init__(self, folder: Path, client_key: Path) -> None:
        self._folder, self._client_key = folder, client_key

    def __call__(self, name: str = "node1") -> Machine:
        home = self._folder / name
        home.mkdir(mode=0o700)
        return Machine(home, asyncssh.generate_private_key("ssh-ed25519"), self._client_key)

    @staticmethod
    def entry(machine: Machine) -> Host:
        """The machine's entry under the name that all of them use."""
        return machine.host()


@pytest.fixture
def machine_at(tmp_path: Path, client_key: Path) -> MakeMachine:
    return MakeMachine(tmp_path, client_key)


@pytest.fixture
async def machine(machine_at: MakeMachine) -> AsyncIterator[Machine]:
    """One running machine."""
    made = machine_at()
    await made.start()
    yield made
    with contextlib.suppress(OSError):
        await made.stop()


@pytest.fixture
async def pool(tmp_path: Path) -> AsyncIterator[SshPool]:
    """A pool that knows no user's files."""
    made = SshPool(
        tmp_path / "known_hosts",
        user_ssh_config=tmp_path / "ssh_config",
        user_known_hosts=[tmp_path / "user_known_hosts"],
        connect_timeout=5.0,
    )
    yield made
    await made.close()


class Trust:
    """Accepts a machine's key and gives its entry."""

    async def __call__(self, pool: SshPool, machine: Machine, name: str = "node1") -> Host:
        host = machine.host(name)
        await pool.accept_key(host, machine.key.get_fingerprint())
        return host


@pytest.fixture
def trusted() -> Trust:
    return Trust()


@pytest.fixture
async def host(pool: SshPool, machine: Machine, trusted: Trust) -> Host:
    """The running machine's entry, its key accepted."""
    return await trusted(pool, machine)
