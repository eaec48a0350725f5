"""Ending: the whole run, only the run, and confirmed."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from backend.domain.errors import Conflict
from tests.backend.runtime.conftest import Rig, alive, free_ports, in_home


def number(path: Path) -> int:
    return int(path.read_text())


async def written(path: Path) -> int:
    while not (path.exists() and path.read_text().strip()):
        await asyncio.sleep(0.02)
    return number(path)


async def test_term_is_enough_and_the_code_is_known(rig: Rig) -> None:
    status = await rig.start("trap 'echo bye; exit 5' TERM; sleep 60 & wait")
    result = await rig.runtime.stop(rig.host, "a", 10)
    assert (result.gone, result.killed, result.exit_code, result.survivors) == (True, False, 5, 0)
    assert not alive(status.pid)
    assert not in_home(rig.home)
    assert await rig.text() == "bye\n"
    again = await rig.runtime.stop(rig.host, "a", 10)
    assert (again.gone, again.killed) == (True, False)


async def test_what_ignores_term_is_killed_with_its_children(rig: Rig) -> None:
    await rig.start("trap '' TERM; sleep 61 & echo $! >kid; wait; sleep 61")
    kid = await written(rig.folder() / "kid")
    result = await rig.runtime.stop(rig.host, "a", 0.3)
    assert (result.gone, result.killed, result.exit_code) == (True, True, 137)
    assert not alive(kid)


async def test_a_killed_leader_is_recorded_and_its_orphans_are_ended(rig: Rig) -> None:
    script = "sleep 62 & echo $! >kid; (trap '' TERM; sleep 62; sleep 62) & echo $! >stubborn; wait"
    status = await rig.start(script)
    kids = [await written(rig.folder() / n) for n in ("kid", "stubborn")]
    os.kill(status.pid, signal.SIGKILL)
    ended = await rig.until("exited")
    assert ended.exit_code == 137
    while any(alive(k) for k in kids):
        await asyncio.sleep(0.05)
    while (await rig.runtime.status(rig.host, "a")).survivors:
        await asyncio.sleep(0.05)


async def test_orphans_without_a_supervisor_are_ended_by_the_stop(rig: Rig) -> None:
    status = await rig.start("sleep 63 & echo $! >kid; wait")
    kid = await written(rig.folder() / "kid")
    supervisor = int((rig.folder() / "g1" / "run").read_text().split("sup=")[1].split()[0])
    os.kill(supervisor, signal.SIGKILL)
    os.kill(status.pid, signal.SIGKILL)
    lost = await rig.until("lost")
    assert lost.survivors == 1
    with pytest.raises(Conflict, match="processes of generation 1 still live"):
        await rig.start("true", generation=2)
    with pytest.raises(Conflict, match=f"living processes.*{kid}"):
        await rig.runtime.remove(rig.host, "a")
    result = await rig.runtime.stop(rig.host, "a", 5)
    assert result.gone
    assert not alive(kid)


async def test_a_daemon_with_a_session_of_its_own_is_found_by_its_run_id(rig: Rig) -> None:
    await rig.start("setsid -f sh -c 'echo $$ >daemon; exec sleep 64' >/dev/null 2>&1; exit 3")
    daemon = await written(rig.folder() / "daemon")
    await rig.until("exited")
    result = await rig.runtime.stop(rig.host, "a", 5)
    assert (result.gone, result.exit_code) == (True, 3)
    assert not alive(daemon)


async def test_a_reused_pid_is_never_killed(rig: Rig) -> None:
    """The record names a live process of somebody else, which began at another time."""
    await rig.start("exit 0")
    await rig.until("exited")
    run = rig.folder() / "g1" / "run"
    with subprocess.Popen(["sleep", "65"], start_new_session=True) as stranger:
        try:
            lines = dict(line.split("=", 1) for line in run.read_text().splitlines())
            for start in (lines["start"], "1"):
                lines |= {"pid": str(stranger.pid), "start": start}
                run.write_text("".join(f"{k}={v}\n" for k, v in lines.items()))
                status = await rig.runtime.status(rig.host, "a")
                assert (status.state, status.survivors) == ("exited", 0)
                (rig.folder() / "g1" / "gone").unlink(missing_ok=True)
                result = await rig.runtime.stop(rig.host, "a", 0.2)
                assert (result.gone, result.killed) == (True, False)
                assert alive(stranger.pid)
        finally:
            stranger.kill()


async def test_another_boot_means_gone(rig: Rig) -> None:
    """A record of an earlier boot names a pid that lives now with the very start ticks."""
    status = await rig.start("exec sleep 66")
    run = rig.folder() / "g1" / "run"
    text = run.read_text()
    boot = text.split("boot=")[1].split()[0]
    ident = text.split("id=")[-1].strip()
    run.write_text(text.replace(boot, "0" * 36).replace(ident, "another-run"))
    assert (await rig.runtime.status(rig.host, "a")).state == "lost"
    result = await rig.runtime.stop(rig.host, "a", 0.2)
    assert (result.gone, result.killed) == (True, False)
    assert alive(status.pid)


async def test_a_stopped_process_is_killed(rig: Rig) -> None:
    status = await rig.start("exec sleep 67")
    os.kill(status.pid, signal.SIGSTOP)
    result = await rig.runtime.stop(rig.host, "a", 0.3)
    assert (result.gone, result.killed) == (True, True)


async def test_remove_frees_the_claim(rig: Rig, rival: Rig) -> None:
    (port,) = free_ports(1)
    await rig.claim("a", port)
    await rig.runtime.start(rig.host, "a", 1, rig.spec("exec sleep 68"), {})
    with pytest.raises(Conflict, match="living processes"):
        await rig.runtime.remove(rig.host, "a")
    await rig.runtime.stop(rig.host, "a", 5)
    await rig.runtime.remove(rig.host, "a")
    assert await rig.runtime.statuses(rig.host) == []
    await rival.claim("b", port)
    await rig.runtime.remove(rig.host, "a")
    assert list(rig.folder().parent.iterdir()) == [rig.folder("b")]
    assert (await rig.runtime.stop(rig.host, "a", 1)).gone
    assert (await rig.runtime.status(rig.host, "a")).state == "absent"


async def test_ports_that_are_still_listened_on(rig: Rig) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        busy = listener.getsockname()[1]
        (other,) = free_ports(1)
        assert await rig.runtime.ports_free(rig.host, [busy, other]) == [busy]
    assert await rig.runtime.ports_free(rig.host, [busy]) == []
