"""From a mode, a deployment and a place to what a host starts: argv, environment, files.

Order of an engine's arguments: its command, automatic parallelism, the cache's, the connector, the
mode's, the user's own (the last one wins), then what the platform owns (host, port, served name).
Environment: the mode's, the cache's, the role's own over both, then what only the platform may say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from backend.domain.bands import HTTP, resolve
from backend.domain.cache import CacheService, attachment
from backend.domain.connector import Composed, compose, merged
from backend.domain.deployment import Deployment
from backend.domain.engine_args import flatten, normal, occurrences, parallel, present
from backend.domain.errors import Refused
from backend.domain.host import Runtime
from backend.domain.inherit import EffectiveRole, effective, image_of
from backend.domain.instance import LaunchFile, LaunchSpec, Mount
from backend.domain.mode import Attachment, Catalogue, EngineRecipe, Mode, RoleRecipe, RouterRecipe
from backend.domain.programs import is_script, locate
from backend.domain.scope import HINTS, Place, Siblings, member_scope, router_scope
from backend.domain.template import Renderer
from backend.domain.worker_calls import Peer

HEALTH_ENV = "PDTUI_HEALTH_PATH"
"""A role's environment names its own health path by this."""


def program_of(mode: Mode | None, catalogue: Catalogue, deployment: Deployment, role: str) -> str:
    """The name by which a host's `executables` lists what `role` runs; empty for a command of the
    user's own."""
    resolved = resolve(deployment.spec, role)
    if role == "router" and mode is not None:
        return mode.router.program
    return catalogue.engine(resolved.engine).program


def executed(
    mode: Mode | None,
    catalogue: Catalogue,
    deployment: Deployment,
    role: str,
    entry: str | None,
) -> str:
    """What a host without containers executes for `role`: the first word of its command.

    `entry` is the host's own entry for the program. Empty for a command of the user's own.
    """
    resolved = resolve(deployment.spec, role)
    if role == "router" and mode is not None:
        if resolved.run_command is not None or not mode.router.command:
            return ""
        return _router_command(mode.router, deployment, resolved, "process", entry)[0]
    command = catalogue.engine(resolved.engine).command
    if resolved.run_command is not None or not command:
        return ""
    return locate(command[0], resolved.executable or entry)


def render_member(
    mode: Mode | None,
    catalogue: Catalogue,
    deployment: Deployment,
    role: str,
    place: Place,
    siblings: Siblings | None = None,
    *,
    service: CacheService | None = None,
) -> LaunchSpec:
    """The launch of one prefill, decode or plain instance.

    Raises Refused (`render.placeholder`, `render.command`, `cache.*`, `pairing.connector`) and
    NotFound for an engine the catalogue lacks.
    """
    resolved = resolve(deployment.spec, role)
    engine = catalogue.engine(resolved.engine)
    renderer = Renderer(
        member_scope(mode, catalogue, deployment, resolved, place, siblings, service), HINTS
    )
    recipe, added = RoleRecipe(), None
    if mode is not None and mode.injects:
        recipe = mode.role(role) or recipe
    if resolved.extended_kv_cache.kind != "none":
        added = attachment(mode, resolved, accelerator_type=place.accelerator_type, service=service)
    files = _files(added, renderer, place)
    argv = _command(engine.command, resolved, renderer, place)
    user = renderer.argv(flatten(resolved.parameters), "the role's parameters")
    if _owns_command(mode, engine, resolved):
        env = _own_environment(resolved, place)
        argv += user
    else:
        joined = _connector(engine, recipe, added, deployment, resolved, renderer, user)
        added = added if joined.cached else None
        argv += _auto_parallel(engine, resolved, place, renderer)
        argv += _cache_args(added, renderer)
        argv += [*joined.args, *renderer.argv(recipe.args, "the mode's arguments")]
        argv += joined.user_args
        argv += renderer.argv(engine.platform_args, "the platform's arguments")
        env = _texts(recipe.env, "the mode", renderer)
        env |= _texts(added.env if added else {}, "the cache", renderer)
    env |= _texts(resolved.env, f"the {role} role", renderer)
    env |= _visibility(catalogue, place)
    renderer.finish(place.instance or role)
    return LaunchSpec(
        argv=tuple(argv),
        env=env,
        files=files if added else (),
        image=_image(resolved, engine.default_image, place),
        mounts=_mounts(recipe, deployment.spec.model, place),
        health_path=resolved.env.get(HEALTH_ENV, engine.health_path),
        health_timeout_s=engine.health_timeout_s,
        stop_grace_s=engine.stop_grace_s,
        **_seat(place),
    )


def render_router(
    mode: Mode | None,
    catalogue: Catalogue,
    deployment: Deployment,
    place: Place,
    peers: Sequence[Peer],
) -> LaunchSpec:
    """The launch of the router with `peers` as its first members.

    Raises Refused: `router.peers` when a role has none and the command needs one,
    `router.owned_flag` for a user's row that writes a flag of the platform's, `render.*`.
    """
    if mode is None:
        raise Refused.of("router.mode", "A deployment without disaggregation has no router.")
    resolved = effective(deployment.spec, "router")
    recipe = mode.router
    renderer = Renderer(router_scope(mode, deployment, resolved, place, tuple(peers)), HINTS)
    user = renderer.argv(flatten(resolved.parameters), "spec.roles.router.parameters")
    own = resolved.run_command is not None or not recipe.command
    if own:
        argv = _users_command(recipe.command, resolved, renderer, place)
        env = _own_environment(resolved, place)
        for name in ("prefill", "decode"):
            env[f"PDTUI_{name.upper()}_URLS"] = ",".join(p.url for p in peers if p.role == name)
    else:
        refuse_owned(recipe, user)
        argv = _router_command(recipe, deployment, resolved, place.runtime, place.executable)
        argv += renderer.argv(recipe.args, "the router's arguments")
        argv += _tunables(recipe, user)
        argv += _peer_args(recipe, peers)
        env = _texts(recipe.env, "the mode's router", renderer)
    argv += user
    env |= _texts(resolved.env, "the router role", renderer)
    renderer.finish(place.instance or "router")
    shared = catalogue.engine(resolved.engine).default_image
    same = not own or _basename(argv[0]) == _basename(recipe.command[0] if recipe.command else "")
    return LaunchSpec(
        argv=tuple(argv),
        env=env,
        image=_image(resolved, recipe.default_image or shared, place),
        health_path=resolved.env.get(HEALTH_ENV, recipe.health_path if same else None),
        stop_grace_s=recipe.stop_grace_s,
        **_seat(place),
    )


def refuse_owned(recipe: RouterRecipe, args: Sequence[str]) -> None:
    """Raise Refused (`router.owned_flag`) when a user's row writes a flag of the platform's, in any
    spelling: argument parsers also take a flag's beginning for the flag."""
    owned = (*recipe.peer_flags, *recipe.owned_flags)
    keys = {o.key for o in occurrences(args)}
    found = sorted({f for f in owned if any(_means(key, normal(f)) for key in keys)})
    if not found:
        return
    peers = [f for f in found if f in recipe.peer_flags]
    raise Refused.of(
        "router.owned_flag",
        f"{', '.join(found)} of {recipe.program} "
        + ("names peers, which the platform does" if peers else "is the platform's to set")
        + ": yours would add to it.",
        path="spec.roles.router.parameters",
        remedy="Take it out"
        + ("" if peers else "; pin the endpoint with spec.roles.router.port")
        + ". Adjustable here: "
        + ", ".join(t.flag for t in recipe.tunables)
        + ".",
        values={"flags": found},
    )


def _means(key: str, flag: str) -> bool:
    return key == flag or (len(key) > 3 and flag.startswith(key))


def _owns_command(mode: Mode | None, engine: EngineRecipe, role: EffectiveRole) -> bool:
    """Whether the command is the user's alone, so that nothing is added to it."""
    custom = mode is None or not mode.injects
    return custom and (role.run_command is not None or not engine.command)


def _command(
    recipe: Sequence[str], role: EffectiveRole, renderer: Renderer, place: Place
) -> list[str]:
    if role.run_command is not None or not recipe:
        return _users_command(recipe, role, renderer, place)
    argv = renderer.argv(recipe, "the engine's command")
    if place.runtime == "process":
        argv[0] = locate(argv[0], role.executable or place.executable)
    return argv


def _users_command(
    recipe: Sequence[str], role: EffectiveRole, renderer: Renderer, place: Place
) -> list[str]:
    """The user's own command. A host's entry is for the recipe's program, so it says nothing of
    another one."""
    argv = renderer.argv(role.run_command or (), "the run command")
    if not argv or not argv[0]:
        where = "spec.run_command" if role.name != "router" else "spec.roles.router.run_command"
        raise Refused.of(
            "render.command",
            f"There is no command for the {role.name} role.",
            path=where,
            remedy="Write run_command; {{role}} in it tells the roles apart.",
            values={"role": role.name, "host": place.host},
        )
    if place.runtime == "process":
        same = bool(recipe) and argv[0] == recipe[0]
        argv[0] = locate(argv[0], role.executable or (place.executable if same else None))
    return argv


def _router_command(
    recipe: RouterRecipe,
    deployment: Deployment,
    role: EffectiveRole,
    runtime: Runtime,
    entry: str | None,
) -> list[str]:
    argv = list(recipe.command)
    if runtime != "process":
        return argv
    shared = deployment.spec.executable
    if shared is not None and is_script(shared):
        shared = None
    argv[0] = locate(argv[0], role.executable or entry or shared)
    return argv


def _connector(
    engine: EngineRecipe,
    recipe: RoleRecipe,
    added: Attachment | None,
    deployment: Deployment,
    resolved: EffectiveRole,
    renderer: Renderer,
    user: list[str],
) -> Composed:
    role = resolved.name
    if engine.connector is None or role not in ("prefill", "decode"):
        return Composed((), tuple(user), cached=True)
    wanted = deployment.spec.disaggregation
    ours = recipe.connector
    if ours is not None and wanted is not None:
        ours = merged(engine.connector, ours, getattr(wanted.connector_extra, role))
    child = None if added is None else added.connector
    users_own = any(o.key == normal(engine.connector.flag) for o in occurrences(user))
    return compose(
        engine.connector,
        role,  # type: ignore[arg-type]
        None if ours is None or users_own else renderer.data(ours, "the KV connector"),
        None if child is None else renderer.data(child, "the cache's connector"),
        user,
        shared=resolved.extended_kv_cache.kind == "service",
    )


def _auto_parallel(
    engine: EngineRecipe, role: EffectiveRole, place: Place, renderer: Renderer
) -> list[str]:
    written = parallel(flatten(role.parameters), engine.flags).written
    if written or len(place.accelerators) < 2:
        return []
    return renderer.argv(engine.auto_parallel, "the platform's arguments")


def _cache_args(added: Attachment | None, renderer: Renderer) -> list[str]:
    if added is None:
        return []
    groups = [g for g in added.optional_args if not renderer.lacks(g)]
    flat = [*added.args, *(token for group in groups for token in group)]
    return renderer.argv(flat, "the cache's arguments")


def _files(added: Attachment | None, renderer: Renderer, place: Place) -> tuple[LaunchFile, ...]:
    rendered = []
    scope: dict[str, Any] = {}
    for recipe in added.files if added else ():
        content = renderer.text(recipe.content, f"the file {recipe.name}")
        rendered.append(LaunchFile(name=recipe.name, content=content))
        scope[f"files.{recipe.name}"] = (
            f"{place.instance_dir}/{recipe.name}" if place.instance_dir else recipe.name
        )
    renderer.extend(scope)
    return tuple(rendered)


def _texts(templates: Mapping[str, str], whose: str, renderer: Renderer) -> dict[str, str]:
    return {
        key.removesuffix("?"): renderer.text(value, f"env {key} of {whose}")
        for key, value in templates.items()
        if not (key.endswith("?") and renderer.lacks(value))
    }


def _own_environment(role: EffectiveRole, place: Place) -> dict[str, str]:
    return {"PDTUI_ROLE": role.name, "PDTUI_HOST_IP": place.address, "PDTUI_PORT": str(place.port)}


def _visibility(catalogue: Catalogue, place: Place) -> dict[str, str]:
    """Show a process only its own accelerators. A container is given its devices instead."""
    if place.vendor is None or place.runtime != "process" or place.vendor not in catalogue.vendors:
        return {}
    recipe = catalogue.vendors[place.vendor]
    uuids = dict(zip(place.accelerators, place.accelerator_uuids, strict=False))
    shown = [
        uuids[i] if uuids.get(i, "").startswith(recipe.by_uuid) and recipe.by_uuid else str(i)
        for i in place.accelerators
    ]
    return {**recipe.env, recipe.visible: ",".join(shown)}


def _tunables(recipe: RouterRecipe, user: Sequence[str]) -> list[str]:
    return [
        token
        for tunable in recipe.tunables
        if tunable.default is not None and not present(user, tunable.flag)
        for token in (tunable.flag, str(tunable.default))
    ]


def _peer_args(recipe: RouterRecipe, peers: Sequence[Peer]) -> list[str]:
    argv: list[str] = []
    for role, template in recipe.peers.items():
        members = [p for p in peers if p.role == role]
        if not members:
            raise Refused.of(
                "router.peers",
                f"{recipe.program} needs a ready {role} member to start with; there is none.",
                values={"role": role},
            )
        for peer in members:
            renderer = Renderer(peer.scope())
            argv += renderer.argv(template, f"the router's {role} peers")
            renderer.finish(peer.instance)
    return argv


def _mounts(recipe: RoleRecipe, model: str, place: Place) -> tuple[Mount, ...]:
    """What a container sees of its host, at the same paths: files that engines read, the model."""
    seen = [model] if place.runtime != "process" and model.startswith("/") else []
    return tuple(Mount(source=p, target=p) for p in [*(f.path for f in recipe.host_files), *seen])


def _image(role: EffectiveRole, default: str | None, place: Place) -> str | None:
    return None if place.runtime == "process" else image_of(role, default)


def _seat(place: Place) -> dict[str, Any]:
    ordered = sorted(place.bands, key=lambda b: b.name != HTTP)
    return {
        "address": place.address,
        "port": place.port,
        "ports": tuple(p for band in ordered for p in band.ports),
        "bands": place.bands,
        "accelerators": place.accelerators,
        "accelerator_uuids": place.accelerator_uuids if place.runtime != "process" else (),
        "vendor": place.vendor if place.runtime != "process" else None,
    }


def _basename(path: str) -> str:
    return path.rsplit("/", 1)[-1]


__all__ = [
    "Place",
    "Siblings",
    "executed",
    "program_of",
    "refuse_owned",
    "render_member",
    "render_router",
]
