"""A look at the instances of a host: their own processes, and all of /proc only where it must."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.backend.runtime.conftest import Rig, alive
from tests.backend.ssh.conftest import Machine
from tests.backend.ssh.test_facts import tool


@pytest.fixture
def scans(machine: Machine) -> Path:
    """A file that grows with every scan of all processes on the host, which is done with `cat`."""
    record = machine.home / "scans"
    record.touch()
    note = f"case $1 in /proc/[0-9]*/stat) echo scan >>'{record}' ;; esac"
    tool(machine, "cat", f'{note}\nexec /bin/cat "$@"')
    return record


async def test_living_members_are_looked_at_by_their_own_numbers(rig: Rig, scans: Path) -> None:
    first = await rig.start("sleep 61 & exec sleep 61")
    second = await rig.start("exec sleep 62", "b")
    scans.write_text("")
    for _ in range(3):
        found = {s.instance: s for s in await rig.runtime.statuses(rig.host)}
        assert {n: (s.state, s.pid) for n, s in found.items()} == {
            "a": ("running", first.pid),
            "b": ("running", second.pid),
        }
    assert scans.read_text() == ""


async def test_an_ended_leaders_children_are_still_found(rig: Rig, scans: Path) -> None:
    status = await rig.start("trap '' TERM; sleep 63 & sleep 63 & wait")
    await rig.until("running")
    children: list[int] = []
    while len(children) < 2:
        text = Path(f"/proc/{status.pid}/task/{status.pid}/children").read_text()
        children = [int(p) for p in text.split()]
    supervisor = next(
        line for line in (rig.folder() / "g1" / "run").read_text().splitlines() if "sup=" in line
    )
    os.kill(int(supervisor.partition("=")[2]), signal.SIGKILL)  # it would end the children itself
    os.kill(status.pid, signal.SIGKILL)
    seen = await rig.until("lost")
    while seen.survivors != 2:
        seen = await rig.runtime.status(rig.host, "a")
    assert scans.read_text()
    assert all(alive(p) for p in children)
    assert (await rig.runtime.stop(rig.host, "a", 0.2)).gone
    scans.write_text("")
    assert (await rig.runtime.status(rig.host, "a")).survivors == 0
    assert scans.read_text() == ""


async def test_busyboxs_awk_says_the_same(rig: Rig, machine: Machine, needs: Any) -> None:
    needs("busybox")
    await rig.start("exec sleep 64")
    await rig.start("exit 3", "b")
    await rig.until("exited", "b")
    expected = await rig.runtime.statuses(rig.host)
    tool(machine, "awk", f'exec {shutil.which("busybox")} awk "$@"')
    assert await rig.runtime.statuses(rig.host) == expected
