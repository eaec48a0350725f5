"""How soon all hosts are known: ours beside ansible and parallel-ssh, and with hosts that hang.

The rivals live in a venv of their own, named by PDTUI_BENCH_RIVALS:
    python3 -m venv /tmp/rivals && /tmp/rivals/bin/pip install ansible-core parallel-ssh
All three run the very same script on the same embedded hosts, each as a process from start to end.
Without the venv only the bench of hanging hosts is run.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from backend.domain.shell import join, quote
from backend.probes import host as probe
from tests.bench.runner import Bench, BenchError

TIMEOUT_S = 180.0
HOSTS, MANY, HUNG = 100, 200, 20
_PSSH = """
import json, sys
from pssh.clients import ParallelSSHClient
from pssh.config import HostConfig
hosts, command = json.load(open(sys.argv[1])), open(sys.argv[2]).read()
config = [
    HostConfig(user=h["user"], port=h["port"], private_key=h["identity_files"][0]) for h in hosts
]
client = ParallelSSHClient([h["address"] for h in hosts], host_config=config, pool_size=len(hosts))
seen = sum(any("H100" in x for x in o.stdout) for o in client.run_command(command))
sys.exit(seen != len(hosts))
"""


class Fleet:
    """Embedded hosts in a process of their own, and files that tell the rivals of them."""

    def __init__(self, count: int) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pdtui-fleet-"))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "backend.sandbox", "--root", str(self.folder / "sandbox"),
             "--hosts", str(count)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        atexit.register(self.close)
        ready = json.loads(self._read())
        self.hosts: list[dict[str, Any]] = ready["inventory"]
        self.known_hosts = ready["known_hosts"]
        self.inventory = self.folder / "inventory.json"
        self.inventory.write_text(json.dumps(self.hosts))
        self.command = self.folder / "command"
        self.command.write_text(f"/bin/sh -c {quote(probe.SCRIPT)} sh .pdtui")
        (self.folder / "hosts.ini").write_text("".join(map(self._ini, self.hosts)))
        (self.folder / "args.json").write_text(json.dumps(self._arguments()))

    def _read(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def _ini(self, host: dict[str, Any]) -> str:
        return (
            f"{host['name']} ansible_host={host['address']} ansible_port={host['port']} "
            f"ansible_user={host['user']} "
            f"ansible_ssh_private_key_file={host['identity_files'][0]}\n"
        )

    def _arguments(self) -> dict[str, str]:
        return {
            "ansible_ssh_common_args": f"-o UserKnownHostsFile={self.known_hosts} "
            "-o ControlMaster=no -o ControlPath=none"
        }

    def hang(self, count: int) -> None:
        """The last `count` hosts accept connections and never say anything."""
        assert self.process.stdin is not None
        for host in self.hosts[-count:]:
            order = {"host": host["name"], "faults": {"mute": True}}
            self.process.stdin.write(json.dumps(order) + "\n")
            self.process.stdin.flush()
            if not json.loads(self._read())["ok"]:
                raise BenchError(f"{host['name']} would not hang")

    def close(self) -> None:
        """End the hosts."""
        self.process.terminate()
        self.process.wait(30)
        shutil.rmtree(self.folder, ignore_errors=True)


@cache
def fleet(count: int, hung: int = 0) -> Fleet:
    """Started at first use, ended with this process."""
    made = Fleet(count)
    if hung:
        made.hang(hung)
    return made


@dataclass(frozen=True)
class Spent:
    """Seconds from exec to exit, and of processor by the process and all its children: on one
    machine the hosts' own work is in the first, and never in the second."""

    wall: float
    processor: float


def spent(argv: list[str], env: dict[str, str] | None = None) -> Spent:
    """Runs it. Raises BenchError when it fails."""
    begun = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(
            argv, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL, stdout=said,
            stderr=said,
        )  # fmt: skip
        stop = threading.Timer(TIMEOUT_S, child.kill)
        stop.start()
        try:
            _, status, used = os.wait4(child.pid, 0)
        finally:
            stop.cancel()
        wall = time.perf_counter() - begun
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            said.seek(0)
            text = said.read().decode("utf-8", "replace")
            raise BenchError(f"{join(argv[:4])}: exited {child.returncode}: {text[-500:]}")
    return Spent(wall, used.ru_utime + used.ru_stime)


def ours(hosts: Fleet, enough: int) -> Spent:
    """Our look at all of them."""
    argv = [sys.executable, "-m", "tests.bench.look", str(hosts.inventory), str(hosts.known_hosts)]
    return spent([*argv, str(enough)])


def alone(hosts: Fleet, count: int) -> Spent:
    """Our look at the first `count` of them only."""
    few = hosts.folder / "few.json"
    few.write_text(json.dumps(hosts.hosts[:count]))
    argv = [sys.executable, "-m", "tests.bench.look", str(few), str(hosts.known_hosts)]
    return spent([*argv, str(count)])


def ansible(hosts: Fleet, rivals: Path) -> Spent:
    """`ansible -m raw -f 100` with the same script."""
    argv = [
        str(rivals / "bin" / "ansible"), "all", "-i", str(hosts.folder / "hosts.ini"),
        "-m", "raw", "-f", str(HOSTS), "-e", f"@{hosts.folder / 'args.json'}",
        "-a", hosts.command.read_text().replace("{{", "{{ '{{' }}"),
    ]  # fmt: skip
    return spent(argv, {"ANSIBLE_LOCALHOST_WARNING": "False", "PATH": os.environ["PATH"]})


def parallel_ssh(hosts: Fleet, rivals: Path) -> Spent:
    """parallel-ssh's own client, all hosts at once, with the same script."""
    python = str(rivals / "bin" / "python")
    return spent([python, "-c", _PSSH, str(hosts.inventory), str(hosts.command)])


def _beside(rival: str, run: Callable[[], Spent], aim: str) -> list[Bench]:
    """Two comparisons: how long it takes on this machine, which carries the hosts too, and what it
    costs by itself, as it would with hosts elsewhere."""
    return [
        Bench(
            name=f"discovery {HOSTS} hosts",
            ours=lambda: ours(fleet(HOSTS), HOSTS).wall,
            rival_name=rival, rival=lambda: run().wall, aim=aim, rounds=3,
        ),
        Bench(
            name=f"discovery {HOSTS} hosts, own processor",
            ours=lambda: ours(fleet(HOSTS), HOSTS).processor,
            rival_name=rival, rival=lambda: run().processor, aim=aim, rounds=3,
        ),
    ]  # fmt: skip


def benches() -> list[Bench]:
    """Those that can be run here."""
    hung = Bench(
        name=f"discovery {MANY} hosts, {HUNG} hung",
        ours=lambda: ours(fleet(MANY, HUNG), MANY - HUNG).wall,
        rival_name=f"ours, the {MANY - HUNG} alone",
        rival=lambda: alone(fleet(MANY, HUNG), MANY - HUNG).wall,
        aim="at most 1.2",
        rounds=3,
    )
    where = os.environ.get("PDTUI_BENCH_RIVALS")
    if not where:
        return [hung]
    rivals = Path(where)
    slow = f"ansible -m raw -f {HOSTS}"
    return [
        *_beside(slow, lambda: ansible(fleet(HOSTS), rivals), "at most 0.2"),
        *_beside("parallel-ssh", lambda: parallel_ssh(fleet(HOSTS), rivals), "at most 1.0"),
        hung,
    ]
