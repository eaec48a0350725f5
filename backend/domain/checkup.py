"""What one deeper look at a host shows: everything the doctor's checks judge. Plain facts."""

from __future__ import annotations

from pydantic import Field

from backend.domain.inside import Inside
from backend.domain.value import Value

RUNTIMES = ("docker", "podman")
"""Container runtimes that a host may have."""


class Listener(Value):
    """A listening TCP port and who holds it; pid 0 and no name where the host does not tell."""

    port: int
    pid: int = 0
    name: str = ""


class Marked(Value):
    """A living process that carries an instance's mark in its environment."""

    pid: int
    instance: str
    name: str = ""


class Box(Value):
    """A container of an instance: `state` as its runtime says it (`running`, `exited`)."""

    name: str
    state: str
    instance: str


class Rdma(Value):
    """One port of an RDMA device: `state` as the kernel says it (`ACTIVE`, `DOWN`), `device` and
    its network interface."""

    device: str
    port: int = 1
    state: str = ""
    interface: str = ""


class Xid(Value):
    """An error number of NVIDIA's driver in the kernel's log: how often on which card (its PCI
    address), and what the latest one said."""

    card: str
    number: int
    count: int = 1
    text: str = ""


class NpuPort(Value):
    """An NPU's own network port: `link` is UP or DOWN, `tls` its switch; empty and None where the
    tool does not say."""

    device: int
    address: str = ""
    link: str = ""
    tls: bool | None = None


class ModelCopy(Value):
    """A model folder on a host. `weights` counts its weight files, `size` their bytes, `digest` is
    of its `config.json`; all zero and empty when the folder is not there."""

    path: str
    there: bool = False
    digest: str = ""
    weights: int = 0
    size: int = 0


class Reach(Value):
    """The way from a host to another's address for KV traffic: `interface` is the one it should
    take, `via` the one that the host's routes choose (empty: not told). `ok` is None when nobody
    can tell, `seen` is what was said instead."""

    target: str
    address: str = ""
    interface: str = ""
    via: str = ""
    ok: bool | None = None
    seen: str = ""


class Checkup(Value):
    """Sizes in MiB, `skew_s` in seconds (positive: the host's clock is ahead of ours), limits as
    numbers (None: unlimited). A `programs` value is the path found, empty when there is none; a
    `runtimes` value is the version, or `!` and what went wrong. `forwarding` is empty when TCP
    forwarding works; `relays` are programs there that could dial instead.
    `unbindable` are service ports that cannot be bound though nobody listens; None: not tried.
    `inside` is what a container sees of its accelerators; None: none could be started."""

    kernel: str = ""
    skew_s: float | None = None
    disk_free: int | None = None
    disk_total: int = 0
    writable: bool | None = None
    shm_total: int | None = None
    memory_total: int | None = None
    memory_free: int = 0
    limits: dict[str, int | None] = Field(default_factory=dict)
    programs: dict[str, str] = Field(default_factory=dict)
    runtimes: dict[str, str] = Field(default_factory=dict)
    gpu_runtimes: tuple[str, ...] = ()
    rdma: tuple[Rdma, ...] = ()
    hccn: dict[str, str] = Field(default_factory=dict)
    npu_ports: tuple[NpuPort, ...] = ()
    xids: tuple[Xid, ...] = ()
    fabric: tuple[str, ...] = ()
    nvswitch: bool = False
    listeners: tuple[Listener, ...] = ()
    unbindable: frozenset[int] | None = None
    marked: tuple[Marked, ...] = ()
    containers: tuple[Box, ...] = ()
    models: tuple[ModelCopy, ...] = ()
    forwarding: str | None = None
    relays: tuple[str, ...] = ()
    inside: Inside | None = None
