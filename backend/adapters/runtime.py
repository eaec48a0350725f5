"""What the reconcile loops ask of whatever runs instances on a host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from backend.adapters.process import ClaimOrder, StopResult
from backend.domain.host import Claim, Host
from backend.domain.instance import LaunchSpec, ProcessStatus
from backend.domain.views import LogChunk


class InstanceRuntime(Protocol):
    """Starts, watches and ends instances on hosts, on behalf of one owner; safe to repeat."""

    owner: str

    async def claim(self, host: Host, orders: Sequence[ClaimOrder]) -> None:
        """Claim accelerators and ports for all the orders, or for none. Raises Conflict."""

    async def start(
        self,
        host: Host,
        instance: str,
        generation: int,
        spec: LaunchSpec,
        labels: Mapping[str, str],
        *,
        row: str = "",
        timeout: float = 30.0,
    ) -> ProcessStatus:
        """Start that generation; one already started is found. Raises Conflict, HostError."""
        ...

    async def stop(self, host: Host, instance: str, grace_s: float) -> StopResult:
        """End everything of the instance; look at `gone`."""
        ...

    async def end_strays(self, host: Host, instance: str, last: ProcessStatus | None) -> None:
        """Kill what is left of an instance whose directory is gone. Raises RemoteFailed."""

    async def remove(self, host: Host, instance: str) -> None:
        """Delete what is kept of it and free its claim."""

    async def statuses(self, host: Host, *, owner: str | None = None) -> list[ProcessStatus]:
        """Every instance on the host, of that owner or of any."""
        ...

    async def status(self, host: Host, instance: str) -> ProcessStatus:
        """One instance."""
        ...

    async def claims(self, host: Host) -> list[Claim]:
        """Every claim on the host."""
        ...

    async def adoptable(self, host: Host) -> list[dict[str, Any]]:
        """What each started instance's directory says of it."""
        ...

    async def adopt(self, host: Host, instance: str, owner: str) -> None:
        """Make another owner's instance our own. Raises Conflict, NotFound."""

    async def log(
        self,
        host: Host,
        instance: str,
        *,
        generation: int | None = None,
        offset: int | None = None,
        tail_bytes: int = 65536,
        limit: int = 1 << 20,
    ) -> LogChunk:
        """A piece of the log."""
        ...

    async def ports_free(self, host: Host, ports: Sequence[int]) -> list[int]:
        """Those of the ports that something still listens on."""
        ...
