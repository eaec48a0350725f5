"""Why an instance or a group does not serve, by its logs."""

from __future__ import annotations

from backend.domain.diagnosis.model import Diagnosis, GroupDiagnosis
from backend.domain.errors import NotFound
from backend.domain.group import Instance
from backend.reconcile.world import World


def instance_of(world: World, key: str) -> Instance:
    """An instance of the store. Raises NotFound."""
    instance = world.store.instances.get(key)
    if instance is None:
        raise NotFound.of(
            "instance.unknown",
            f"there is no instance {key!r}.",
            values={"instance": key},
            remedy="List them with `pdtui get NAME`.",
        )
    return instance


async def diagnose_group(world: World, name: str) -> GroupDiagnosis:
    """All logs of a group, read together. A host that does not answer leaves its own unread."""
    return await world.logs.group(name)


async def diagnose_instance(world: World, key: str, generation: int | None = None) -> Diagnosis:
    """One instance's log, in the light of its peers'; or one earlier attempt's, on its own.

    Raises NotFound.
    """
    instance = instance_of(world, key)
    if generation is not None and generation != instance.generation:
        return await world.logs.instance(instance, generation)
    found = (await world.logs.group(instance.group)).of(key)
    return found or await world.logs.instance(instance)
