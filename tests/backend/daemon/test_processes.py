"""The daemon as systemd and another version see it."""

from __future__ import annotations

import asyncio
import configparser
import shlex
import socket
from pathlib import Path

import pytest

from backend.client.http import HttpClient
from backend.domain.errors import PdError
from backend.domain.views import Health
from backend.paths import Paths
from backend.systemd import Notifier, unit_text
from backend.takeover import gives_way
from tests.backend.daemon import processes

SLOW = pytest.mark.slow


class Manager:
    """Hears what a service tells its manager."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self._socket.setblocking(False)
        self.said: list[str] = []

    async def until(self, line: str) -> None:
        """Wait until it was said."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(processes.PATIENCE_S):
            while line not in self.said:
                self.said += (await loop.sock_recv(self._socket, 4096)).decode().split("\n")

    def close(self) -> None:
        self._socket.close()


@SLOW
async def test_systemd_is_told_of_readiness_life_and_end() -> None:
    async with processes.state() as folder:
        manager = Manager(folder.parent / "notify")
        about = {"NOTIFY_SOCKET": str(folder.parent / "notify"), "WATCHDOG_USEC": "1000000"}
        process = await processes.daemon(folder, **about)
        try:
            await manager.until("READY=1")
            assert await processes.answering(folder) == process.pid
            manager.said.clear()
            for _ in range(2):
                await manager.until("WATCHDOG=1")
                assert any(s.startswith("STATUS=0 groups on 0 hosts") for s in manager.said)
                manager.said.clear()
            process.terminate()
            await manager.until("STOPPING=1")
        finally:
            assert await processes.end(process) == 0
            manager.close()


async def test_no_sign_of_life_while_the_store_does_not_answer(tmp_path: Path) -> None:
    path = tmp_path / "notify"
    manager = Manager(path)
    env = {"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": "100000", "WATCHDOG_PID": "1"}
    assert Notifier(dict(env)).watchdog_s == 0  # another process is watched, not we
    notifier = Notifier(env | {"WATCHDOG_PID": ""})
    stuck = asyncio.Event()

    async def alive() -> None:
        await stuck.wait()

    watching = asyncio.create_task(notifier.watch(alive, lambda: "well"))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await manager.until("WATCHDOG=1")
    stuck.set()
    await manager.until("WATCHDOG=1")
    await manager.until("STATUS=well")
    watching.cancel()
    manager.close()


@SLOW
async def test_a_daemon_takes_over_when_told_and_a_client_goes_on() -> None:
    async with processes.state() as folder:
        old = await processes.daemon(folder)
        await processes.answering(folder)
        client = HttpClient(Paths.default(folder).socket)
        since = (await client.snapshot()).seq
        stream = client.changes(since)
        following = asyncio.ensure_future(anext(stream))
        second = await processes.daemon(folder)  # the same version: refused
        async with asyncio.timeout(processes.PATIENCE_S):
            _, said = await second.communicate()
        assert second.returncode == 3
        assert f"process {old.pid} already runs a backend" in said.decode()
        new = await processes.daemon(folder, "--takeover")
        try:
            await processes.answering(folder, new.pid)
            assert await processes.ended(old) == 0
            await client.add_host({"name": "h", "address": "127.0.0.1", "port": 1})
            async with asyncio.timeout(processes.PATIENCE_S):
                change = await following  # the stream found the new backend by itself
            assert change.kind in ("snapshot", "event", "host")
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            await stream.aclose()  # type: ignore[attr-defined]
            await client.aclose()
            assert await processes.end(new) == 0


@SLOW
async def test_a_console_s_own_backend_gives_way_to_a_daemon() -> None:
    async with processes.state() as folder:
        embedded = await processes.start(
            ["backend.daemon", "--embedded", "--state-dir", str(folder)]
        )
        await processes.answering(folder)
        daemon = await processes.daemon(folder)
        try:
            await processes.answering(folder, daemon.pid)
            assert await processes.ended(embedded) == 0
        finally:
            assert await processes.end(daemon) == 0


@SLOW
async def test_over_tcp_only_once_somebody_has_a_token() -> None:
    async with processes.state() as folder:
        process = await processes.daemon(folder, "--listen", "127.0.0.1:0")
        async with asyncio.timeout(processes.PATIENCE_S):
            _, said = await process.communicate()
        assert process.returncode == 1
        assert "pdtui tokens add" in said.decode()


@pytest.mark.parametrize(
    ("theirs", "embedded", "takeover", "expected"),
    [
        ("1.0", False, None, True),
        ("1.1", False, None, False),
        ("1.2.dev1", False, None, False),
        ("1.1", True, None, True),
        ("1.2", False, True, True),
        ("1.0", True, False, False),
        ("unknown", False, None, False),
    ],
)
def test_who_gives_way(theirs: str, embedded: bool, takeover: bool | None, expected: bool) -> None:
    health = Health(version=theirs, api="v1", pid=1, state_dir="/s", embedded=embedded)
    assert gives_way(health, "1.1", takeover) is expected


def test_the_unit_runs_this_program(tmp_path: Path) -> None:
    unit = configparser.ConfigParser(interpolation=None, comment_prefixes=("#",))
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(unit_text(["--state-dir", "/a b/100%", "daemon"]))
    service = unit["Service"]
    assert (service["Type"], service["Restart"]) == ("notify", "on-failure")
    argv = shlex.split(service["ExecStart"].replace("%%", "%"))
    assert argv[1:] == ["-m", "pdtui", "--state-dir", "/a b/100%", "daemon"]


async def test_what_listens_to_nobody_fails_nothing(tmp_path: Path) -> None:
    env = {"NOTIFY_SOCKET": str(tmp_path / "gone"), "PATH": "/bin"}
    Notifier(env).tell("READY=1")
    assert env == {"PATH": "/bin"}  # children speak for themselves
    with pytest.raises(PdError):
        await HttpClient(tmp_path / "gone").health()
