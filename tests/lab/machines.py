"""Hosts as good as real: real sshd, own network, process table, disk and host key; root only.

Every host is a process-1 script (`host.sh`) in namespaces of its own, with two network interfaces
and a docker-like bridge, on a switch that is a namespace too. Nothing has a name outside: when this
process ends, however it ends, their standard inputs close and everything in them is gone.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from backend.sandbox import tools
from backend.sandbox.plan import HostPlan

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
MANAGEMENT, FAST = "10.77.0", "10.78.0"
"""Networks of the hosts' first and second interface."""
NIC, FAST_NIC = "eth0", "enp65s0f0"
_IP = """\
#!/bin/bash
/usr/sbin/ip "$@" | sed 's/"linkinfo":{"info_kind":"veth"},//g'
exit "${PIPESTATUS[0]}"
"""
"""The hosts' cables are veth pairs; those of a machine of metal would show no link kind."""
_CLONE_NEWNET = 0x40000000
_UNSHARE = ("unshare", "-m", "-p", "-u", "-i", "-f", "--kill-child=KILL")


def require_namespaces() -> None:
    """Skips the running test where no such hosts can be made; in CI (`PDTUI_CI`) it fails."""
    missing = [t for t in ("sshd", "ip", "unshare", "nsenter", "ssh-keygen") if not shutil.which(t)]
    reason = f"not installed: {', '.join(missing)}" if missing else ""
    if not reason:
        tried = subprocess.run(
            ["unshare", "-n", "-m", "-p", "-u", "-i", "-f", "ip", "link", "set", "lo", "up"],
            capture_output=True, text=True, timeout=20, check=False,
        )  # fmt: skip
        reason = "" if tried.returncode == 0 else f"no namespaces here: {tried.stderr.strip()}"
    if reason and os.environ.get("PDTUI_CI"):
        pytest.fail(reason, pytrace=False)
    if reason:
        pytest.skip(reason)


def _run(*argv: str, **more: Any) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, **more)
    assert done.returncode == 0, f"{argv}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def _network() -> subprocess.Popen[bytes]:
    """A network namespace, held by a process that lives as long as its standard input is open."""
    held = subprocess.Popen(
        ["unshare", "-n", "sh", "-c", "echo; exec cat"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert held.stdout is not None
    assert held.stdout.readline() == b"\n"
    return held


def _end(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
    process.kill()
    process.wait(20)


@dataclass
class Machine:
    """One host. `bind` are folders of ours that it sees, read-only, at the same path."""

    number: int
    folder: Path
    plan: HostPlan
    bind: tuple[Path, ...] = ()
    sshd_extra: str = ""
    authorized_keys: str = ""
    boot: str = field(default_factory=lambda: str(uuid.uuid4()))
    network: subprocess.Popen[bytes] = field(init=False)
    init: subprocess.Popen[bytes] | None = None

    @property
    def name(self) -> str:
        """Its host name."""
        return self.plan.name

    @property
    def address(self) -> str:
        """On the management network; sshd listens on port 22."""
        return f"{MANAGEMENT}.{self.number}"

    def prepare(self) -> None:
        """Its host key, tools and folders."""
        (self.folder / "disk").mkdir(parents=True)
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / "hostkey"))
        tools.install(self.folder, self.plan, self.address)
        for real in ("ip", "hostname", "python3", "cat"):  # the host has its own
            (self.folder / "bin" / real).unlink(missing_ok=True)
        cable = self.folder / "bin" / "ip"
        cable.write_text(_IP)
        cable.chmod(0o755)
        (self.folder / "authorized_keys").write_text(self.authorized_keys)
        self.network = _network()

    def boot_up(self) -> None:
        """Start process 1 and wait until sshd answers inside."""
        (self.folder / "sshd_extra").write_text(self.sshd_extra)
        argv = [
            "nsenter", "-t", str(self.network.pid), "-n", *_UNSHARE, "bash", str(HERE / "host.sh"),
            self.name, self.address, str(self.folder), self.boot, *map(str, self.bind),
        ]  # fmt: skip
        log = (self.folder / "init.log").open("ab")
        with log:
            self.init = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=log, stderr=log)

    def wait(self, seconds: float = 20) -> None:
        """Until sshd listens."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            assert self.init is not None
            assert self.init.poll() is None, (self.folder / "init.log").read_text()[-2000:]
            if self._listens():
                return
            time.sleep(0.05)
        raise AssertionError(f"{self.name}: no sshd: {(self.folder / 'init.log').read_text()}")

    def _listens(self) -> bool:
        done = subprocess.run(
            ["nsenter", "-t", str(self.network.pid), "-n", "bash", "-c",
             f"exec 3<>/dev/tcp/{self.address}/22"],
            capture_output=True, timeout=10, check=False,
        )  # fmt: skip
        return done.returncode == 0

    def die(self) -> None:
        """The machine loses its power: every process of it is gone, its network is silent."""
        assert self.init is not None
        _end(self.init)
        self.init = None
        end = time.monotonic() + 10
        while self._listens():  # the last of its processes may outlive the first by a moment
            assert time.monotonic() < end, f"{self.name} would not die"
            time.sleep(0.02)

    def reboot(self) -> None:
        """Off and on: nothing runs, the login's folder is as it was, the boot id is new."""
        self.die()
        self.boot = str(uuid.uuid4())
        self.boot_up()
        self.wait()

    def pid(self) -> int:
        """Process 1 of the host, as we number processes."""
        assert self.init is not None
        children = Path(f"/proc/{self.init.pid}/task/{self.init.pid}/children")
        (child,) = children.read_text().split()
        return int(child)

    def sh(self, script: str, *args: str) -> str:
        """What a root shell on the host says. Fails when it fails."""
        argv = ["nsenter", "-t", str(self.pid()), "-a", "/bin/sh", "-c", script, "sh", *args]
        env = {"HOME": "/root/login", "PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        return _run(*argv, env=env)

    def close(self) -> None:
        """End it for good."""
        if self.init is not None:
            self.die()
        _end(self.network)

    def entry(self, identity: Path) -> dict[str, Any]:
        """Its inventory entry."""
        return {
            "name": self.name, "address": self.address, "user": "root",
            "identity_files": [str(identity)], "labels": dict(self.plan.labels),
        }  # fmt: skip


class Rack:
    """Several hosts on one switch. Made whole by `up`, gone after `down`."""

    def __init__(self, root: Path, plans: Sequence[HostPlan], bind: Sequence[Path] = ()) -> None:
        self.root, self.identity = root, root / "identity"
        needed = [REPOSITORY, Path(sys.prefix), Path(sys.base_prefix), *bind]
        bound = [p.resolve() for p in needed if p.resolve() not in (Path("/"), Path("/usr"))]
        self.machines = [
            Machine(i, root / p.name, p, tuple(dict.fromkeys(bound)))
            for i, p in enumerate(plans, 1)
        ]
        self._switch: subprocess.Popen[bytes] | None = None

    def up(self) -> None:
        """Start all hosts and wait for their sshd."""
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.identity))
        public = self.identity.with_suffix(".pub").read_text()
        self._switch = _network()
        self.ip(
            "link set lo up", "link add management type bridge",
            f"addr add {MANAGEMENT}.254/24 dev management", "link set management up",
            "link add fast type bridge", "link set fast up",
        )  # fmt: skip
        for machine in self.machines:
            machine.authorized_keys = public
            machine.prepare()
            self._plug_in(machine)
            machine.boot_up()
        for machine in self.machines:
            machine.wait()

    def _plug_in(self, m: Machine) -> None:
        peer = m.network.pid
        self.ip(
            f"link add m{m.number} type veth peer name {NIC} netns {peer}",
            f"link add f{m.number} type veth peer name {FAST_NIC} netns {peer}",
            f"link set m{m.number} master management up",
            f"link set f{m.number} master fast up",
        )
        _ip(peer, (
            "link set lo up",
            f"addr add {m.address}/24 dev {NIC}", f"link set {NIC} up",
            f"addr add {FAST}.{m.number}/24 dev {FAST_NIC}", f"link set {FAST_NIC} up",
            "link add docker0 type bridge", "addr add 172.17.0.1/16 dev docker0",
            "link set docker0 up", f"route add default via {MANAGEMENT}.254 dev {NIC}",
        ))  # fmt: skip

    def ip(self, *commands: str) -> None:
        """Run `ip` commands on the switch."""
        assert self._switch is not None
        _ip(self._switch.pid, commands)

    def part(self, machine: Machine) -> None:
        """Pull the host's management cable: its connections stay, nothing gets through."""
        self.ip(f"link set m{machine.number} down")

    def heal(self, machine: Machine) -> None:
        """Plug it in again."""
        self.ip(f"link set m{machine.number} up")

    @contextmanager
    def inside(self) -> Iterator[None]:
        """This thread, and what it starts, is on the switch's network for as long."""
        assert self._switch is not None
        with (
            Path("/proc/thread-self/ns/net").open("rb") as ours,
            Path(f"/proc/{self._switch.pid}/ns/net").open("rb") as theirs,
        ):
            _enter(theirs.fileno())
            try:
                yield
            finally:
                _enter(ours.fileno())

    def known_hosts(self) -> str:
        """The lines that make the hosts' keys known."""
        return "".join(
            f"{m.address} {' '.join((m.folder / 'hostkey.pub').read_text().split()[:2])}\n"
            for m in self.machines
        )

    def inventory(self) -> list[dict[str, Any]]:
        """Every host's entry."""
        return [m.entry(self.identity) for m in self.machines]

    def down(self) -> None:
        """End all hosts and the networks between them."""
        for machine in self.machines:
            if hasattr(machine, "network"):
                machine.close()
        if self._switch is not None:
            _end(self._switch)


def _ip(pid: int, commands: Sequence[str]) -> None:
    text = "".join(f"{c}\n" for c in commands)
    _run("nsenter", "-t", str(pid), "-n", "ip", "-batch", "-", input=text)


def _enter(handle: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(handle, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")
