"""What an embedded host pretends to be, and where it lives on the loopback network."""

from __future__ import annotations

import json
import socket
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from backend.domain.errors import Invalid
from backend.domain.host import NAME, Vendor

PORTS_PER_HOST = 64
"""Service ports of one host: as many as a real host gets by default."""
_FIRST_PORT = 40000
_PORTS_PER_SUBNET = 1024
_SUBNETS = range(77, 97)
_MOST_HOSTS = 250


@dataclass(frozen=True)
class HostPlan:
    """One embedded host. `memory_mib` is one accelerator's; `shell` is the login shell's name,
    `hccn` whether a host of NPUs has the file that names their own network's addresses.

    `service_port_range` None gives the host a range of its own: listening ports are seen
    machine-wide, so two hosts of one machine must not share one.
    """

    name: str
    accelerators: int = 2
    accelerator_type: str = "NVIDIA H100 80GB HBM3"
    memory_mib: int = 81559
    vendor: Vendor = "nvidia"
    labels: dict[str, str] = field(default_factory=dict)
    shell: str = "bash"
    service_port_range: tuple[int, int] | None = None
    hccn: bool = True

    def __post_init__(self) -> None:
        if not NAME.match(self.name):
            raise Invalid.of("sandbox.plan", f"{self.name!r} is no host name.", path="name")
        if not 0 <= self.accelerators <= 1024:
            raise Invalid.of(
                "sandbox.plan", "accelerators must be 0 to 1024.", path=f"{self.name}.accelerators"
            )

    def uuid(self, index: int) -> str:
        """The identity of one accelerator: the same in every run."""
        return f"GPU-{uuid.uuid5(uuid.NAMESPACE_OID, f'pdtui:{self.name}:{index}')}"


def default_plans(count: int, accelerators: int = 2) -> list[HostPlan]:
    """`count` like hosts named node1, node2 ..."""
    return [HostPlan(f"node{i}", accelerators=accelerators) for i in range(1, count + 1)]


def read_plans(path: Path) -> list[HostPlan]:
    """The plans of a JSON file: a list of objects with `HostPlan`'s fields.

    Raises Invalid for anything else.
    """
    known = {f.name for f in fields(HostPlan)}
    try:
        rows: Any = json.loads(path.read_text())
        if not isinstance(rows, list) or not all(isinstance(r, dict) for r in rows):
            raise ValueError("must be a list of objects")
        for row in rows:
            if unknown := sorted(set(row) - known):
                raise ValueError(f"unknown field {unknown[0]!r}")
            if row.get("service_port_range"):
                first, last = row["service_port_range"]
                row["service_port_range"] = (int(first), int(last))
        return [HostPlan(**row) for row in rows]
    except (OSError, ValueError, TypeError) as e:
        raise Invalid.of("sandbox.plan", f"{path} is no list of host plans: {e}.") from e


def check(plans: Sequence[HostPlan]) -> None:
    """Raise Invalid when the plans cannot stand side by side."""
    names = [p.name for p in plans]
    if twice := sorted({n for n in names if names.count(n) > 1}):
        raise Invalid.of("sandbox.plan", f"two hosts are named {twice[0]!r}.")
    if len(plans) > _MOST_HOSTS:
        raise Invalid.of("sandbox.plan", f"{len(plans)} hosts; {_MOST_HOSTS} fit one sandbox.")


class Subnet:
    """One 127.0.B.0/24 that no other sandbox of this machine uses, while this object lives.

    The hold is a socket in the abstract namespace: it ends with the process, however that dies.
    Raises Invalid when all are in use.
    """

    def __init__(self) -> None:
        for index, third in enumerate(_SUBNETS):
            hold = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                hold.bind(f"\0pdtui-sandbox-127.0.{third}")
            except OSError:
                hold.close()
                continue
            self._hold, self._index, self._third = hold, index, third
            return
        raise Invalid.of("sandbox.subnet", f"all {len(_SUBNETS)} sandbox subnets are in use.")

    def address(self, number: int) -> str:
        """The address of host `number`, counted from 1."""
        return f"127.0.{self._third}.{number}"

    def ports(self, number: int) -> tuple[int, int]:
        """The service port range of host `number`, inclusive."""
        first = _FIRST_PORT + self._index * _PORTS_PER_SUBNET + (number - 1) * PORTS_PER_HOST
        if first + PORTS_PER_HOST > 65536:
            first = _FIRST_PORT + (first - _FIRST_PORT) % (65536 - _FIRST_PORT - PORTS_PER_HOST)
        return first, first + PORTS_PER_HOST - 1

    def release(self) -> None:
        """Let another sandbox have it."""
        self._hold.close()
