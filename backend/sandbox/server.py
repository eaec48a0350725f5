"""One embedded host: an SSH server on its own address that really runs what it is told."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import posixpath
import shutil
import socket
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, cast

import asyncssh
from asyncssh.stream import SSHServerStreamSession

from backend.domain.host import Host
from backend.sandbox import tools
from backend.sandbox.command import Command
from backend.sandbox.faults import DropAt, Faults
from backend.sandbox.plan import HostPlan
from backend.sandbox.proc import MARK

USER = "pd"
ENGINE_CONTROL = ".pdtui-sim.json"
_NO_FILES = """trap '' XFSZ; ulimit -f 0; exec "$@\""""
_LOGIN_TIMEOUT_S = 20
_CLOSE_WAIT_S = 5.0

_log = logging.getLogger(__name__)


class _HomeSFTP(asyncssh.SFTPServer):
    """sftp of the real file system; relative paths start in the host's home."""

    def __init__(self, channel: Any, home: str) -> None:
        super().__init__(channel)
        self._home = home.encode()

    def map_path(self, path: bytes) -> bytes:
        return posixpath.normpath(posixpath.join(self._home, path))


class _Session(SSHServerStreamSession[bytes]):
    """One session channel: sftp, or a command or shell as a local process."""

    def __init__(self, connection: _Connection) -> None:
        host = connection.host
        super().__init__(None, lambda chan: _HomeSFTP(chan, str(host.home)), 3)
        self._connection, self._host = connection, host
        self._command: Command | None = None

    def shell_requested(self) -> bool:
        return True

    def exec_requested(self, command: str) -> bool:
        return True

    def subsystem_requested(self, subsystem: str) -> bool:
        return subsystem == "sftp"

    def session_started(self) -> None:
        assert self._chan is not None
        if self._chan.get_subsystem() is not None:
            super().session_started()
            return
        line = self._chan.get_command()
        shell = self._host.shell
        argv = [shell, "-c", line] if line is not None else [shell, "-l"]
        if self._host.faults.disk_full:
            argv = ["/bin/sh", "-c", _NO_FILES, "sh", *argv]
        env = self._host.environment(self._connection.peers)
        chan = cast("asyncssh.SSHServerChannel[bytes]", self._chan)
        command = self._command = Command(argv, env, str(self._host.home), chan)
        self._host.commands.add(command)
        self._host.own(self._run(command))

    async def _run(self, command: Command) -> None:
        faults, chan = self._host.faults, self._chan
        assert chan is not None
        if faults.latency:
            await asyncio.sleep(faults.latency)
        drop = faults.take_drop()
        command.on_output = self._gate(drop, faults.drop_after)
        if faults.noise and not chan.is_closing():
            chan.write(faults.noise)
        await command.start()
        if drop == "start":
            self._connection.abort()
        await command.finished()
        self._host.commands.discard(command)
        if drop:
            self._connection.abort()
        elif not chan.is_closing():
            if faults.noise_after:
                chan.write(faults.noise_after)
            command.report()

    def _gate(self, drop: DropAt, after: int) -> Callable[[int], bool]:
        seen = 0

        def passes(size: int) -> bool:
            nonlocal seen
            seen += size
            if drop == "output" and seen > after:
                self._connection.abort()
            return drop in ("", "exit") or (drop == "output" and seen <= after)

        return passes

    def data_received(self, data: bytes, datatype: int | None) -> None:
        if self._command:
            self._command.feed(data)
        else:
            super().data_received(data, datatype)

    def eof_received(self) -> bool:
        if self._command:
            self._command.feed_eof()
            return True
        return bool(super().eof_received())

    def pause_writing(self) -> None:
        if self._command:
            self._command.pause()
        super().pause_writing()

    def resume_writing(self) -> None:
        if self._command:
            self._command.resume()
        super().resume_writing()

    def signal_received(self, signal: str) -> None:
        if self._command:
            self._command.signal(signal)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.sessions.discard(self)
        if self._command:
            self._command.detach()
        super().connection_lost(exc)


class _Connection(asyncssh.SSHServer):
    """One client's connection to one host."""

    def __init__(self, host: EmbeddedHost) -> None:
        self.host = host
        self.sessions: set[_Session] = set()
        self.peers = ""
        self._conn: asyncssh.SSHServerConnection | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._conn = conn
        client, server = conn.get_extra_info("peername"), conn.get_extra_info("sockname")
        self.peers = f"{client[0]} {client[1]} {server[0]} {server[1]}"
        self.host.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.host.connections.discard(self)

    def abort(self) -> None:
        """Break the connection without a word."""
        if self._conn:
            self._conn.abort()

    async def wait_closed(self) -> None:
        """Wait until it is gone."""
        if self._conn:
            await self._conn.wait_closed()

    def begin_auth(self, username: str) -> bool:
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return not self.host.faults.deny and key == self.host.client_key

    def session_requested(self) -> _Session:
        cap = self.host.faults.session_cap
        if cap and len(self.sessions) >= cap:
            raise asyncssh.ChannelOpenError(asyncssh.OPEN_CONNECT_FAILED, "open failed")
        session = _Session(self)
        self.sessions.add(session)
        return session

    def connection_requested(
        self, dest_host: str, dest_port: int, orig_host: str, orig_port: int
    ) -> Awaitable[Any]:
        own = (self.host.address, self.host.plan.name)
        if not self.host.faults.forwarding or dest_host not in own:
            raise asyncssh.ChannelOpenError(
                asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, "open failed"
            )
        assert self._conn
        return self._conn.forward_connection(self.host.address, dest_port)


class EmbeddedHost:
    """A running host: its home, its faults and its present connections."""

    def __init__(
        self,
        plan: HostPlan,
        home: Path,
        address: str,
        ports: tuple[int, int],
        run_id: str,
        client_key: asyncssh.SSHKey,
    ) -> None:
        self.plan, self.home, self.address, self.ports = plan, home, address, ports
        self.client_key = client_key
        self.faults = Faults()
        self.connections: set[_Connection] = set()
        self.commands: set[Command] = set()
        self.port = 0
        self.host_key = asyncssh.generate_private_key("ssh-ed25519")
        self.shell = shutil.which(plan.shell) or "/bin/sh"
        self._run_id = run_id
        self._listener: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._muted: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._options: asyncssh.SSHServerConnectionOptions | None = None

    async def start(self, port: int = 0) -> None:
        """Write the tools and listen. Raises OSError when the port is taken."""
        self.home.mkdir(parents=True, exist_ok=True)
        tools.install(self.home, self.plan, self.address)
        await self._use_key()
        self._listen(port)

    async def _use_key(self) -> None:
        self._options = await asyncssh.SSHServerConnectionOptions.construct(
            server_factory=lambda: _Connection(self),
            server_host_keys=[self.host_key],
            encoding=None,
            login_timeout=_LOGIN_TIMEOUT_S,
            line_editor=False,
        )

    def _listen(self, port: int) -> None:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.setblocking(False)
            listener.bind((self.address, port))
            listener.listen(128)
        except OSError:
            listener.close()
            raise
        self._listener, self.port = listener, listener.getsockname()[1]
        self._accepting = asyncio.create_task(self._accept(listener))

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            client, _ = await loop.sock_accept(listener)
            if self.faults.mute:
                self._muted.append(client)
            else:
                self.own(self._serve(client))

    async def _serve(self, client: socket.socket) -> None:
        try:
            await asyncssh.run_server(client, options=self._options)
        except (asyncssh.Error, OSError) as e:
            # A client that leaves during the handshake, or whose login is refused.
            _log.debug("%s: connection ended in its handshake: %s", self.plan.name, e)
            client.close()

    def own(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` as a task of this host; `close` awaits it."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._task_done)

    def _task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (e := task.exception()):
            _log.error("%s: %r", self.plan.name, e)

    def environment(self, peers: str) -> dict[str, str]:
        """What a command starts with; as with sshd, nothing of the client's environment."""
        client_ip, client_port, _, server_port = peers.split()
        path = f"{self.home}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return {
            "HOME": str(self.home),
            "USER": USER,
            "LOGNAME": USER,
            "SHELL": self.shell,
            "PATH": path,
            "LANG": "C.UTF-8",
            "SSH_CONNECTION": peers,
            "SSH_CLIENT": f"{client_ip} {client_port} {server_port}",
            MARK: self._run_id,
        }

    async def set_faults(self, **values: Any) -> None:
        """Set switches of `faults` by name, and open or close the port for `refuse`."""
        self.faults.update(values)
        if self.faults.refuse and self._listener:
            await self._stop_listening()
        elif not self.faults.refuse and not self._listener:
            self._listen(self.port)
        if not self.faults.mute:
            self._close_muted()

    async def drop_connections(self) -> int:
        """Break every present connection; returns how many there were."""
        present = list(self.connections)
        for connection in present:
            connection.abort()
        for connection in present:
            await asyncio.wait_for(connection.wait_closed(), _CLOSE_WAIT_S)
        return len(present)

    async def change_key(self) -> None:
        """Show another host key from now on, as a reinstalled or impersonated host does."""
        self.host_key = asyncssh.generate_private_key("ssh-ed25519")
        await self._use_key()

    def set_engine(self, **switches: Any) -> None:
        """Switches (`backend.sandbox.engine.switches`) for engines started here from now on."""
        path = self.home / ENGINE_CONTROL
        draft = path.with_suffix(".new")
        draft.write_text(json.dumps(switches))
        os.replace(draft, path)

    def known_hosts_line(self) -> str:
        """This host's line in a known_hosts file."""
        key = self.host_key.export_public_key("openssh").decode().split()
        return f"[{self.address}]:{self.port} {key[0]} {key[1]}\n"

    def inventory(self, client_key: Path) -> Host:
        """This host as the inventory lists it."""
        return Host(
            name=self.plan.name,
            address=self.address,
            port=self.port,
            user=USER,
            identity_files=(str(client_key),),
            service_port_range=self.plan.service_port_range or self.ports,
            labels=self.plan.labels,
        )

    async def _stop_listening(self) -> None:
        if self._accepting:
            self._accepting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._accepting
            self._accepting = None
        if self._listener:
            self._listener.close()
            self._listener = None

    def _close_muted(self) -> None:
        for client in self._muted:
            client.close()
        self._muted.clear()

    async def stop_serving(self) -> None:
        """Close the port and every connection; commands lose their channels."""
        await self._stop_listening()
        self._close_muted()
        await self.drop_connections()

    async def close(self) -> None:
        """Await what still runs here; the processes must have been ended before."""
        if self._tasks:
            _, pending = await asyncio.wait(list(self._tasks), timeout=_CLOSE_WAIT_S)
            for task in pending:
                task.cancel()
            await asyncio.gather(*pending, return_exceptions=True)
