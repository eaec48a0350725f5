"""The same scripts under another /bin/sh than this machine's."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from pathlib import Path

import pytest

from backend.adapters.facts import look
from backend.adapters.ssh import wire
from backend.adapters.ssh.pool import SshPool
from tests.backend.runtime.conftest import Rig, alive, free_ports
from tests.backend.ssh.conftest import Machine

SHELLS = {"bash": "bash --posix", "dash": "dash", "busybox": "busybox sh"}


@pytest.mark.parametrize("name", SHELLS)
async def test_a_whole_life(
    name: str,
    rig: Rig,
    pool: SshPool,
    machine: Machine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not shutil.which(name):
        pytest.skip(f"{name} is not on this machine")
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "sh").write_text(f'#!/bin/bash\nexec {SHELLS[name]} "$@"\n')
    (tools / "sh").chmod(0o755)
    machine.path = f"{tools}:{machine.path}"
    real = wire.command_line

    def other(limit_s: float | None) -> str:
        return real(limit_s).replace("/bin/sh", "sh")

    monkeypatch.setattr(wire, "command_line", other)
    (port,) = free_ports(1)
    await rig.claim("a", port)
    spec = rig.spec('echo "$X"; sleep 69 & echo $! >kid; wait', env={"X": "a 'b"}, port=port)
    status = await rig.runtime.start(rig.host, "a", 1, spec, {})
    assert status.state == "running"
    assert await rig.says("\n") == "a 'b\n"
    kid = rig.folder() / "kid"
    while not (kid.exists() and kid.read_text()):
        await asyncio.sleep(0.02)
    assert [c.ports for c in (await look(pool, rig.host)).claims] == [(port,)]
    os.kill(status.pid, signal.SIGKILL)
    assert (await rig.until("exited")).exit_code == 137
    assert (await rig.runtime.stop(rig.host, "a", 5)).gone
    assert not alive(int(kid.read_text()))
    status = await rig.runtime.start(rig.host, "a", 2, spec, {})
    result = await rig.runtime.stop(rig.host, "a", 5)
    assert (result.gone, result.killed, result.exit_code) == (True, False, 143)
    await rig.runtime.remove(rig.host, "a")
    assert await rig.runtime.claims(rig.host) == []
    async with pool.stream(rig.host, "echo one; sleep 70") as chunks:
        async for text in chunks:
            assert text == "one\n"
            break
