"""Who sits on a host's ports: listeners by name, and ports that cannot be bound."""

from __future__ import annotations

import socket
import sys
from typing import Any

from backend.adapters.ports import sitters
from backend.adapters.ssh.pool import SshPool
from backend.domain.host import Host
from backend.probes import ports as probe
from tests.backend.runtime.conftest import free_ports
from tests.backend.ssh.conftest import Machine
from tests.backend.ssh.test_facts import tool


async def test_a_port_may_be_taken_though_nobody_listens(
    pool: SshPool, host: Host, machine: Machine, needs: Any
) -> None:
    needs("ss")
    tool(machine, "python3", f'exec {sys.executable} "$@"')
    held, heard, free = free_ports(3)
    with socket.socket() as silent, socket.socket() as listening:
        silent.bind(("127.0.0.1", held))  # without SO_REUSEADDR: nobody may bind beside it
        listening.bind(("127.0.0.1", heard))
        listening.listen()
        found, stuck = await sitters(pool, host, [held, heard, free])
        assert heard in {x.port for x in found}
        assert held not in {x.port for x in found}
        assert stuck == {held, heard}
        with socket.socket() as other:  # the trial took nothing from anybody
            other.bind(("127.0.0.1", free))


async def test_without_python_only_listeners_are_known(
    pool: SshPool, host: Host, machine: Machine
) -> None:
    tool(machine, "ss", "echo 'LISTEN 0 128 0.0.0.0:8000 0.0.0.0:* users:((\"vllm\",pid=7,fd=3))'")
    machine.path = str(machine.home / "bin")
    machine.shell = ("/bin/sh", "-c")
    found, stuck = await sitters(pool, host, [40000])
    assert [(x.port, x.pid, x.name) for x in found] == [(8000, 7, "vllm")]
    assert stuck is None


def test_what_the_trial_says() -> None:
    assert probe.unbindable("40000 EADDRINUSE\nnoise 3\n99999999 EACCES\n80 EACCES\ntried") == {
        40000, 80,
    }  # fmt: skip
    assert probe.unbindable("tried") == frozenset()
    assert probe.unbindable("") is probe.unbindable("40000 EADDRINUSE") is None
