"""A member's row made from its seat: checked against its host, rendered, named."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence

from backend.domain.bands import resolve
from backend.domain.caches import CacheDocument, service_of
from backend.domain.deployment import Deployment
from backend.domain.engine_args import flatten, value
from backend.domain.errors import Refused
from backend.domain.group import Group, Instance
from backend.domain.host import Host, HostFacts
from backend.domain.hub import hub_cache
from backend.domain.inherit import roles_of
from backend.domain.layout import Chosen, choose
from backend.domain.mode import Catalogue, Mode
from backend.domain.network import kv_interface
from backend.domain.placement import Seat
from backend.domain.render import Place, Siblings, program_of, render_member
from backend.domain.telling import Said, plainly, said
from backend.reconcile.world import World, instance_dir


def new_id(group: str, role: str, taken: Iterable[str]) -> str:
    """A name nobody has: group, role and four letters."""
    letters = "bcdfghjkmnpqrstvwxz23456789"
    while True:
        name = f"{group}-{role}-{''.join(secrets.choice(letters) for _ in range(4))}"
        if name not in taken:
            return name


def member(
    w: World,
    catalogue: Catalogue,
    document: Deployment,
    key: str,
    seat: Seat,
    group: Group,
    revision: str,
    chosen: Chosen | None,
    services: Mapping[str, CacheDocument],
) -> Instance:
    """The row of the member `key` that takes `seat`; `chosen` is its group's connector variant and
    `services` the cache services its group attaches to.

    Raises Refused: `host.file`, `host.kv_interface`, `render.*`, `cache.*`.
    """
    mode = catalogue.mode_of(document.spec)
    host = w.store.hosts[seat.host]
    facts = w.hosts.sight(seat.host).facts
    if facts is None:
        raise AssertionError("a seat is only ever on a host that was looked at")
    program = program_of(mode, catalogue, document, seat.role)
    _check_files(mode, seat.role, host, facts)
    theirs = {a.index: a for a in facts.accelerators}
    where = Place(
        host=host.name,
        address=seat.address,
        bands=seat.bands,
        accelerators=seat.accelerators,
        accelerator_uuids=tuple(theirs[a].uuid for a in seat.accelerators),
        accelerator_type=seat.accelerator_type,
        accelerator_memory_mib=min((theirs[a].memory_mib for a in seat.accelerators), default=0),
        vendor=seat.vendor,
        net_device=kv_interface(
            host, facts, mode.network if mode else "none", w.defaults.kv_transfer_ifname
        ),
        instance=key,
        executable=host.executables.get(program),
        runtime=host.runtime,
        instance_dir=instance_dir(host, facts, key),
    )
    widths = {r.name: r.width for r in roles_of(document.spec)}
    siblings = Siblings(variant=chosen.layout if chosen else None, accelerators=widths)
    cache = service_of(document, seat.role, services)
    service = cache.service(seat.address) if cache is not None else None
    launch = render_member(mode, catalogue, document, seat.role, where, siblings, service=service)
    return Instance(
        id=key,
        group=group.name,
        role=seat.role,
        host=seat.host,
        revision=revision,
        launch=launch,
        accelerators=seat.accelerators,
        accelerator_type=seat.accelerator_type,
        address=seat.address,
        net_device=where.net_device or "",
        bands=seat.bands,
        since=w.clock(),
    )


async def connector_of(
    w: World, group: Group, catalogue: Catalogue, document: Deployment, seats: Sequence[Seat]
) -> Chosen | None:
    """The connector variant for the group's whole life, from the model as a prefill's host has it.

    None for a mode with one connector. A stored choice for the same model stands. What no host
    could tell takes the mode's default, which does for every layout.
    """
    mode = catalogue.mode_of(document.spec)
    if mode is None or not mode.variants:
        return None
    flags = catalogue.engine(document.spec.engine).flags.get("hf_overrides", ())
    stored, facts = group.connector, catalogue.layouts
    kept = choose(mode, facts, document.spec, None, stored, flags)
    if kept is not None and kept == stored:
        return kept
    config = None
    prefill = resolve(document.spec, "prefill")
    version = value(flatten(prefill.parameters), "--revision") or "main"
    for host in dict.fromkeys(s.host for s in seats if s.role == prefill.name):
        seen = await w.models.read(
            w.store.hosts[host],
            document.spec.model,
            revision=version,
            hub_cache=hub_cache(prefill.env),
        )
        if seen.config is not None:
            config = seen.config
            break
    return choose(mode, facts, document.spec, config, stored, flags)


def told_of(mode: Mode | None, chosen: Chosen | None) -> Said:
    """What the history says of a choice among connectors; nothing where there was none."""
    if mode is None or chosen is None:
        return plainly("")
    variant = mode.variants[chosen.layout]
    if chosen.proven:
        return said("formed.layout", variant=str(variant), layout=chosen.layout)
    return said("formed.any_layout", variant=str(variant))


def _check_files(mode: Mode | None, role: str, host: Host, facts: HostFacts) -> None:
    """Raise Refused (`host.file`) when the engine needs a file that the host does not have.

    A container would be given it by a mount; a process can only find it there.
    """
    recipe = mode.role(role) if mode is not None else None
    for file in recipe.host_files if recipe is not None else ():
        if file.path not in facts.files:
            raise Refused.of(
                "host.file",
                f"{host.name} has no readable {file.path}: {file.reason}.",
                path=f"spec.roles.{role}.hosts",
                values={"host": host.name, "file": file.path, "role": role},
                remedy="Write it there, or choose other hosts.",
            )
