"""One started engine or router on one host: its launch, its ports, and what was seen of it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from backend.domain.host import Vendor
from backend.domain.references import EnvText
from backend.domain.value import Value

Role = Literal["prefill", "decode", "router"]
MEMBER_ROLES: tuple[Role, ...] = ("prefill", "decode")
PLAIN_ROLE = "replica"
"""Role name of the instances of a deployment without disaggregation."""

State = Literal[
    "pending",      # inserted, not yet started on its host
    "starting",     # its process lives, its health path does not answer yet
    "ready",        # its health path answers us
    "unhealthy",    # was ready; its process lives, its health path stopped answering
    "draining",     # out of the router, finishing what it holds
    "stopping",     # asked to end, not yet confirmed gone
    "exited",       # its process ended by itself; waits for its back-off
    "crash_loop",   # ended three times without ever having served; not restarted
    "unreachable",  # its host does not answer: nothing is known
]  # fmt: skip


class Band(Value):
    """A contiguous run of ports under one name."""

    name: str
    base: int
    count: int = 1

    @property
    def ports(self) -> range:
        """Every port of the band."""
        return range(self.base, self.base + self.count)


class LaunchFile(Value):
    """A file written into the instance directory before the start; mode 0600."""

    name: str
    content: str


class Mount(Value):
    """A file or folder of the host seen inside a container, read-only."""

    source: str
    target: str


def host_port(address: str, port: int) -> str:
    """`address:port` as URLs have it: an IPv6 address stands in brackets."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def http_url(address: str, port: int) -> str:
    """Base URL of an HTTP server there."""
    return f"http://{host_port(address, port)}"


class LaunchSpec(Value):
    """Everything a host needs to start one instance; stored, and used again for every restart.

    `argv[0]` is a program name or path. `env` is added to the host's own; what it
    only refers to is fetched at each start and stored nowhere. `port` is the HTTP port,
    `ports` every port the instance claims (HTTP first), `stop_grace_s` the seconds between
    SIGTERM and SIGKILL. `image` and `mounts` are for hosts whose runtime is a container's, which is
    given its accelerators by `vendor` and `accelerator_uuids`.
    """

    argv: tuple[str, ...]
    env: dict[str, EnvText] = Field(default_factory=dict)
    files: tuple[LaunchFile, ...] = ()
    image: str | None = None
    mounts: tuple[Mount, ...] = ()
    address: str
    port: int
    ports: tuple[int, ...] = ()
    bands: tuple[Band, ...] = ()
    accelerators: tuple[int, ...] = ()
    accelerator_uuids: tuple[str, ...] = ()
    vendor: Vendor | None = None
    health_path: str | None = "/health"
    health_timeout_s: float = 2.0
    stop_grace_s: float = 10.0

    @property
    def url(self) -> str:
        """Base URL of the instance's HTTP server."""
        return http_url(self.address, self.port)

    def band(self, name: str) -> Band | None:
        """The band of that name, or None."""
        return next((b for b in self.bands if b.name == name), None)


ProcessState = Literal["absent", "running", "exited", "lost"]


class ProcessStatus(Value):
    """What a host says of one instance directory.

    `absent`: never started there (or cleaned away). `running`: the recorded pid lives with the
    recorded start time and boot id. `exited`: it ended and its exit code was written. `lost`: it
    is gone and nobody wrote why (its supervisor was killed, or the host rebooted).
    `survivors` counts processes of its group that outlived it (an engine's orphaned children);
    `detail` is why it ended, where the host's runtime knows.
    """

    instance: str
    owner: str = ""
    state: ProcessState
    generation: int = 0
    pid: int = 0
    start_ticks: int = 0
    exit_code: int | None = None
    survivors: int = 0
    detail: str = ""
