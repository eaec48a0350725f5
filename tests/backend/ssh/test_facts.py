"""One look at a real machine: this one, through SSH."""

from __future__ import annotations

import asyncio
import getpass
import socket
from pathlib import Path

from backend.adapters.facts import look
from backend.adapters.ssh.pool import SshPool
from backend.domain.host import Host
from tests.backend.ssh.conftest import Machine


def tool(machine: Machine, name: str, text: str) -> None:
    """Put a program first on the machine's PATH."""
    folder = machine.home / "bin"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)
    machine.path = f"{folder}:/usr/local/bin:/usr/bin:/bin"


async def test_what_a_look_finds(pool: SshPool, host: Host, machine: Machine) -> None:
    tool(
        machine, "nvidia-smi", 'case $* in *query-gpu*noheader*) echo "0, GPU-1, H20, 97871";; esac'
    )
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        facts = await look(pool, host)
        assert listener.getsockname()[1] in facts.listening
    assert facts.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert facts.home == str(machine.home)
    assert facts.address == "127.0.0.1"
    assert [(a.type, a.memory_mib) for a in facts.accelerators] == [("H20", 97871)]
    assert any(i.loopback for i in facts.interfaces)
    assert facts.missing_tools == ()
    elsewhere = await look(pool, host.model_copy(update={"service_address": "10.1.1.1"}))
    assert elsewhere.address == "10.1.1.1"


async def test_processes_on_an_accelerator_have_an_owner_and_an_instance(
    pool: SshPool, host: Host, machine: Machine
) -> None:
    mine = await asyncio.create_subprocess_exec(
        "sleep", "60", env={"PDTUI_INSTANCE": "chat-prefill-bcdf"}
    )
    other = await asyncio.create_subprocess_exec("sleep", "60", env={})
    try:
        tool(
            machine, "nvidia-smi",
            "case $* in\n"
            "*query-gpu=index,uuid*) echo '0, GPU-1, H20, 97871'; echo '1, GPU-2, H20, 97871' ;;\n"
            "*query-gpu=index,driver*) echo '1, 550.54, 7, Enabled' ;;\n"
            f"*query-compute-apps*) echo 'GPU-2, {mine.pid}, 5, /opt/bin/python'\n"
            f"  echo 'GPU-1, {other.pid}, [N/A], sleep'; echo 'GPU-1, 4194305, 5, gone' ;;\n"
            "esac",
        )  # fmt: skip
        facts = await look(pool, host)
    finally:
        mine.kill()
        other.kill()
        await asyncio.gather(mine.wait(), other.wait())
    who = getpass.getuser()
    assert [(u.index, u.pid, u.name, u.user, u.instance, u.memory_mib) for u in facts.uses] == [
        (0, other.pid, "sleep", who, "", 0),
        (0, 4194305, "gone", "", "", 5),
        (1, mine.pid, "python", who, "chat-prefill-bcdf", 5),
    ]
    assert [a.mig for a in facts.accelerators] == [False, True]


async def test_a_broken_tool_costs_only_its_own_facts(
    pool: SshPool, host: Host, machine: Machine
) -> None:
    tool(machine, "nvidia-smi", "echo 'Failed to initialize NVML: Driver mismatch' >&2; exit 18")
    tool(machine, "ip", "exit 1")
    facts = await look(pool, host)
    assert facts.accelerators == ()
    assert "Driver mismatch" in facts.accelerator_note
    assert any(i.name == "lo" and i.loopback for i in facts.interfaces)


async def test_missing_tools_are_named(
    pool: SshPool, host: Host, machine: Machine, tmp_path: Path
) -> None:
    folder = tmp_path / "few"
    folder.mkdir()
    for name in ("bash", "sh", "cat", "awk", "grep", "sed"):
        (folder / name).symlink_to(Path("/bin") / name)
    machine.path = str(folder)
    absent = {t for t in ("flock", "setsid") if not Path("/usr/sbin", t).exists()}
    assert set((await look(pool, host)).missing_tools) == absent
