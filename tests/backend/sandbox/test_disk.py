"""An embedded host whose disk is full, as the pool and the doctor see it."""

from __future__ import annotations

import pytest

from backend.adapters.checkup import check_up
from backend.adapters.facts import look
from backend.adapters.ssh.pool import SshPool
from backend.sandbox.hosts import Sandbox
from backend.sandbox.plan import HostPlan


@pytest.mark.parametrize("shell", ["bash", "fish", "tcsh", "zsh"])
async def test_a_full_disk_fails_every_write_and_nothing_else(tmp_path, shell, needs):
    """Under each login shell; the look still works, the doctor's probe says what is wrong."""
    needs(shell)
    async with Sandbox(tmp_path / "sandbox", [HostPlan("node1", shell=shell)]) as sandbox:
        host = sandbox.host("node1")
        await host.set_faults(disk_full=True)
        (entry,) = sandbox.inventory()
        pool = SshPool(sandbox.known_hosts, user_known_hosts=[])
        try:
            assert len((await look(pool, entry)).accelerators) == 2
            full = await check_up(pool, entry, host.address)
            assert full.writable is False
            written = await pool.run(entry, "echo x >file", check=False)
            assert written.exit != 0
            assert (await pool.run(entry, "echo x | cat")).stdout == "x\n"
            await host.set_faults(disk_full=False)
            assert (await check_up(pool, entry, host.address)).writable is True
        finally:
            await pool.close()
