"""Look at a host once: one round trip, everything the planners need to know of it."""

from __future__ import annotations

from collections.abc import Sequence

from backend.adapters.ssh.pool import SshPool
from backend.domain.host import Host, HostFacts
from backend.probes import host as probe


async def look(
    pool: SshPool, host: Host, *, files: Sequence[str] = (), timeout: float = 30.0
) -> HostFacts:
    """The host's facts, and which of `files` are there.

    `address` is the entry's own `service_address` where it sets one.

    Raises the HostError kinds and TimedOut; a tool that fails on the host is no error, it is said
    in the facts.
    """
    peer = await pool.connect(host)
    args = [host.work_dir, *files]
    out = await pool.run(host, probe.SCRIPT, args=args, timeout=timeout, self_bounded=True)
    facts = probe.parse(out.stdout, peer or host.address)
    if host.service_address:
        facts = facts.model_copy(update={"address": host.service_address})
    return facts
