"""Ask a host who sits on its ports."""

from __future__ import annotations

from collections.abc import Sequence

from backend.adapters.ssh.pool import SshPool
from backend.domain.checkup import Listener
from backend.domain.host import Host
from backend.probes import ports as probe

MOST = 4096
"""Ports tried at most: more do not fit into one command line."""


async def sitters(
    pool: SshPool, host: Host, ports: Sequence[int], *, timeout: float = 25.0
) -> tuple[tuple[Listener, ...], frozenset[int] | None]:
    """Who listens there, and which of `ports` cannot be bound (None: nobody there could try).

    Raises the HostError kinds and TimedOut.
    """
    args = [str(p) for p in ports[:MOST]]
    out = await pool.run(host, probe.SCRIPT, args=args, timeout=timeout)
    return probe.parse(out.stdout)
