"""Start a container to see which of a host's accelerators it sees."""

from __future__ import annotations

from collections.abc import Sequence

from backend.adapters.ssh.pool import SshPool
from backend.domain.errors import TimedOut
from backend.domain.host import Host, HostFacts
from backend.domain.inside import Inside, chosen, named
from backend.probes.inside import parse
from backend.steps import inside
from backend.steps.containing import cards


async def look_inside(
    pool: SshPool,
    host: Host,
    facts: HostFacts,
    *,
    images: Sequence[str] = (),
    only: Sequence[int] | None = None,
) -> Inside | None:
    """What a container on the host sees of the accelerators `only` (all when None).

    None on hosts without containers or accelerators, and where no image is that could be started.
    Raises the HostError kinds.
    """
    wanted = chosen(facts, only)
    if host.runtime == "process" or not wanted:
        return None
    given = cards(
        host.runtime, wanted[0].vendor, [a.index for a in wanted], [a.uuid for a in wanted]
    )
    args = inside.arguments(host.work_dir, host.runtime, given, images)
    try:
        out = await pool.run(host, inside.SCRIPT, args=args, timeout=inside.WHOLE_S, check=False)
    except TimedOut:
        return Inside(image=images[0] if images else "any image", asked=named(wanted), late=True)
    return parse(out.stdout, named(wanted), images)
