"""The doctor's word before anything is placed: what the chosen hosts lack, members would die of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from backend.domain.deployment import Deployment
from backend.domain.doctor import Needs, failures
from backend.domain.errors import Refused
from backend.domain.group import Instance
from backend.domain.host import Host
from backend.domain.inherit import image_of
from backend.domain.inherit import roles_of as effective
from backend.domain.mode import Catalogue, Mode
from backend.domain.placement import selects
from backend.domain.render import executed, program_of
from backend.reconcile.world import World

FRESH_S = 5.0
ROUTER_CHECKS = ("ssh", "forwarding", "tools", "disk", "program", "runtime")
"""What a router can fail of; the rest is about accelerators, models and KV traffic."""


def model_folders(document: Deployment) -> tuple[str, ...]:
    """The model as a folder on the hosts; nothing for a hub id or a command of the user's own."""
    spec = document.spec
    if spec.engine == "custom" or not spec.model.startswith(("/", "~/")):
        return ()
    return (spec.model,)


async def hosts_ready(
    w: World, mode: Mode | None, document: Deployment, members: Sequence[Instance]
) -> None:
    """Examine the members' hosts. Raises Refused (`doctor.*`) naming every failed check."""
    needs: dict[str, Needs] = {}
    folders = model_folders(document)
    for host in dict.fromkeys(m.host for m in members):
        here = [m for m in members if m.host == host and m.launch is not None]
        runtimes = _runtimes(w.store.hosts[host])
        launches = [m.launch for m in here if m.launch]
        programs = [x.argv[0] for x in launches if not runtimes]
        images = [x.image for x in launches if x.image]
        needs[host] = Needs(
            programs=tuple(dict.fromkeys(programs)),
            runtimes=runtimes,
            models=folders,
            plane=mode.network if mode else "none",
            images=tuple(dict.fromkeys(images)),
            accelerators=tuple(i for x in launches for i in x.accelerators),
        )
    await _examined(w, needs, None)


async def router_ready(
    w: World, mode: Mode | None, catalogue: Catalogue, document: Deployment, host: str
) -> None:
    """Examine the router's host. Raises Refused (`doctor.*`)."""
    entry = w.store.hosts[host]
    said = entry.executables.get(program_of(mode, catalogue, document, "router"))
    program = executed(mode, catalogue, document, "router", said)
    runtimes = _runtimes(entry)
    programs = (program,) if program and not runtimes else ()
    needs = Needs(programs=programs, runtimes=runtimes, accelerators=())
    await _examined(w, {host: needs}, ROUTER_CHECKS)


def _runtimes(host: Host) -> tuple[str, ...]:
    return () if host.runtime == "process" else (host.runtime,)


def needs_of(w: World, document: Deployment) -> dict[str, Needs]:
    """What a deployment needs of every host that its selectors let it use."""
    catalogue = w.catalogue().pin(document.spec)
    mode = catalogue.mode_of(document.spec)
    programs: dict[str, list[str]] = {}
    images: dict[str, list[str]] = {}
    for role in effective(document.spec):
        name = program_of(mode, catalogue, document, role.name)
        engine = catalogue.engines.get(role.engine)
        image = image_of(role, engine.default_image if engine else None)
        own = [p.host for p in role.placement or ()]
        for host, entry in w.store.hosts.items():
            if not selects(role.hosts, host, entry.labels) or (own and host not in own):
                continue
            here = programs.setdefault(host, [])
            said = entry.executables.get(name)
            program = executed(mode, catalogue, document, role.name, said)
            if program and entry.runtime == "process":
                here.append(program)
            if image:
                images.setdefault(host, []).append(image)
    return {
        host: Needs(
            programs=tuple(dict.fromkeys(here)),
            models=model_folders(document),
            plane=mode.network if mode else "none",
            images=tuple(dict.fromkeys(images.get(host, ()))),
        )
        for host, here in programs.items()
    }


async def _examined(w: World, needs: dict[str, Needs], only: Iterable[str] | None) -> None:
    if w.doctor is None:
        return
    found = await w.doctor.examine(needs, needs, max_age_s=FRESH_S)
    problems = failures(f for f in found if only is None or f.check in only)
    if problems:
        raise Refused(*problems)
