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
import time
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


def timed(argv: list[str], env: dict[str, str] | None = None) -> float:
    """Seconds from exec to exit. Raises BenchError when it fails."""
    begun = time.perf_counter()
    try:
        done = subprocess.run(
            argv, env={**os.environ, **(env or {})}, capture_output=True, text=True,
            timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise BenchError(f"{argv[0]}: still running after {TIMEOUT_S} s") from error
    if done.returncode:
        raise BenchError(f"{join(argv[:4])}: exited {done.returncode}: {done.stderr[-500:]}")
    return time.perf_counter() - begun


def ours(hosts: Fleet, enough: int) -> float:
    """Our look at all of them."""
    argv = [sys.executable, "-m", "tests.bench.look", str(hosts.inventory), str(hosts.known_hosts)]
    return timed([*argv, str(enough)])


def alone(hosts: Fleet, count: int) -> float:
    """Our look at the first `count` of them only."""
    few = hosts.folder / "few.json"
    few.write_text(json.dumps(hosts.hosts[:count]))
    argv = [sys.executable, "-m", "tests.bench.look", str(few), str(hosts.known_hosts)]
    return timed([*argv, str(count)])


def ansible(hosts: Fleet, rivals: Path) -> float:
    """`ansible -m raw -f 100` with the same script."""
    argv = [
        str(rivals / "bin" / "ansible"), "all", "-i", str(hosts.folder / "hosts.ini"),
        "-m", "raw", "-f", str(HOSTS), "-e", f"@{hosts.folder / 'args.json'}",
        "-a", hosts.command.read_text().replace("{{", "{{ '{{' }}"),
    ]  # fmt: skip
    return timed(argv, {"ANSIBLE_LOCALHOST_WARNING": "False", "PATH": os.environ["PATH"]})


def parallel_ssh(hosts: Fleet, rivals: Path) -> float:
    """parallel-ssh's own client, all hosts at once, with the same script."""
    python = str(rivals / "bin" / "python")
    return timed([python, "-c", _PSSH, str(hosts.inventory), str(hosts.command)])


def benches() -> list[Bench]:
    """Those that can be run here."""
    hung = Bench(
        name=f"discovery {MANY} hosts, {HUNG} hung",
        ours=lambda: ours(fleet(MANY, HUNG), MANY - HUNG),
        rival_name=f"ours, the {MANY - HUNG} alone",
        rival=lambda: alone(fleet(MANY, HUNG), MANY - HUNG),
        aim="at most 1.2",
        rounds=3,
    )
    where = os.environ.get("PDTUI_BENCH_RIVALS")
    if not where:
        return [hung]
    rivals = Path(where)
    return [
        Bench(
            name=f"discovery {HOSTS} hosts",
            ours=lambda: ours(fleet(HOSTS), HOSTS),
            rival_name=f"ansible -m raw -f {HOSTS}",
            rival=lambda: ansible(fleet(HOSTS), rivals),
            aim="at most 0.2",
            rounds=3,
        ),
        Bench(
            name=f"discovery {HOSTS} hosts",
            ours=lambda: ours(fleet(HOSTS), HOSTS),
            rival_name="parallel-ssh",
            rival=lambda: parallel_ssh(fleet(HOSTS), rivals),
            aim="at most 1.0",
            rounds=3,
        ),
        hung,
    ]
