"""The log of an instance, read from its host in pieces."""

from __future__ import annotations

from backend.domain.views import LogChunk
from backend.reconcile.world import World
from backend.services.diagnosing import instance_of


async def read_log(
    world: World,
    key: str,
    *,
    generation: int | None = None,
    offset: int | None = None,
    tail_bytes: int = 65536,
) -> LogChunk:
    """A piece of the log of one generation (default: the present one).

    From byte `offset` on, or the last `tail_bytes`. Raises NotFound, HostError.
    """
    instance = instance_of(world, key)
    host = world.store.hosts[instance.host]
    chosen = instance.generation if generation is None else generation
    return await world.runtime.log(
        host, key, generation=chosen, offset=offset, tail_bytes=tail_bytes
    )
