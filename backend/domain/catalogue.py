"""What must hold between the parts of a catalogue, beyond the shape of each."""

from __future__ import annotations

from collections.abc import Iterator

from backend.domain.inherit import CUSTOM
from backend.domain.mode import Catalogue, Mode, RoleRecipe
from backend.domain.template import SPACED, names

Complaint = tuple[tuple[str | int, ...], str]


def complaints(catalogue: Catalogue) -> Iterator[Complaint]:
    """Every inconsistency, as the path it is at and the reason."""
    for name, mode in catalogue.modes.items():
        at = ("modes", name)
        yield from _engines(catalogue, mode, at)
        yield from _metrics(catalogue, mode, at)
        if mode.injects:
            yield from _injecting(mode, at)
        else:
            yield from _custom(mode, at)


def _engines(catalogue: Catalogue, mode: Mode, at: tuple[str, ...]) -> Iterator[Complaint]:
    for index, engine in enumerate(mode.engines):
        if engine not in catalogue.engines:
            known = ", ".join(catalogue.engines)
            yield (*at, "engines", index), f"there is no engine {engine!r}; known: {known}"
    if mode.injects and not mode.engines:
        yield (*at, "engines"), "a mode that injects names the engines it is for"
    for role, recipe in mode.roles.items():
        if recipe.connector is None:
            continue
        for engine in mode.engines:
            found = catalogue.engines.get(engine)
            if found is not None and found.connector is None:
                yield (*at, "roles", role, "connector"), f"engine {engine!r} takes no connector"


def _metrics(catalogue: Catalogue, mode: Mode, at: tuple[str, ...]) -> Iterator[Complaint]:
    recipe = mode.metrics
    if recipe is None:
        return
    named = {"transfers": recipe.transfers, "expired": recipe.expired}
    named |= {f"failures.{n}": name for n, name in enumerate(recipe.failures)}
    for field, name in named.items():
        if name is not None and name not in catalogue.series:
            known = ", ".join(catalogue.series)
            yield (
                (*at, "metrics", *field.split(".")),
                f"there is no series {name!r}; known: {known}",
            )


def _injecting(mode: Mode, at: tuple[str, ...]) -> Iterator[Complaint]:
    for field in ("vendor", "transport"):
        if getattr(mode, field) is None:
            yield (*at, field), "a mode that injects declares it"
    for role in ("prefill", "decode"):
        if role not in mode.roles:
            yield (*at, "roles"), f"the {role} role is missing"
    for role, recipe in mode.roles.items():
        yield from _role(mode, recipe, (*at, "roles", role))
    used = {n for r in mode.roles.values() for n in names([r.env, r.args, r.connector])}
    if mode.network != "none" and "net_device" not in used:
        yield (*at, "network"), f"the {mode.network} network is declared but net_device is not used"
    if mode.network == "none" and "net_device" in used:
        yield (*at, "network"), "net_device is used, so say which network it is on"
    if mode.variants and mode.default_variant not in mode.variants:
        yield (*at, "default_variant"), f"must be one of {', '.join(mode.variants)}"
    if "connector" in used and not mode.variants:
        yield (*at, "roles"), "{{connector}} is used but the mode declares no variants"
    if mode.kv_load_failure_policy != ("kv_load_failure_policy" in used):
        yield (*at, "kv_load_failure_policy"), "must say whether the connector is given it"
    yield from _lease(mode, used, at)
    yield from _router(mode, (*at, "router"))


def _role(mode: Mode, recipe: RoleRecipe, at: tuple[str, ...]) -> Iterator[Complaint]:
    channels = {"env": recipe.env, "args": recipe.args, "connector": recipe.connector}
    declared = {b.name for b in recipe.bands}
    for index, band in enumerate(recipe.bands):
        if f"ports.{band.name}" not in set(names(channels[band.channel])):
            yield (*at, "bands", index), f"band {band.name!r} is not used in {band.channel}"
    for name in names(list(channels.values())):
        parts = name.split(".")
        if parts[0] == "ports" and parts[1] not in declared:
            yield (*at, "bands"), f"{{{{{name}}}}} is used but no band {parts[1]!r} is declared"
        if parts[0] == "roles" and parts[1] not in mode.roles:
            yield at, f"{{{{{name}}}}} names the role {parts[1]!r}, which the mode lacks"
        if parts[0] == "peer":
            yield at, f"{{{{{name}}}}} is a router's: a member has no peers in its scope"
    yield from _spaced(channels, at)


def _lease(mode: Mode, used: set[str], at: tuple[str, ...]) -> Iterator[Complaint]:
    if mode.lease is None:
        return
    if mode.lease.channel == "env" and mode.lease.value_s is not None:
        if not any(mode.lease.knob in r.env for r in mode.roles.values()):
            yield (*at, "lease", "knob"), f"{mode.lease.knob} is in no role's env"
    elif mode.lease.channel == "connector" and "kv_lease_s" not in used:
        yield (*at, "lease", "knob"), "the connector is not given {{kv_lease_s}}"


def _router(mode: Mode, at: tuple[str, ...]) -> Iterator[Complaint]:
    router = mode.router
    if not router.command:
        yield (*at, "program"), f"nothing is known of the program {router.program!r}"
    for role in ("prefill", "decode"):
        if role not in router.peers:
            yield (*at, "peers"), f"the {role} peers are missing"
    for role, template in router.peers.items():
        if template and template[0] not in router.peer_flags:
            yield (*at, "peers", role), f"{template[0]} is not among the peer flags"
        for name in names(template):
            band_name = name.removeprefix("peer.ports.")
            has = {b.name for b in mode.roles[role].bands} if role in mode.roles else set()
            if not name.startswith("peer."):
                yield (*at, "peers", role), f"{{{{{name}}}}} is not a peer's"
            elif band_name != name and band_name not in has:
                yield (*at, "peers", role), f"the {role} role declares no band {band_name!r}"
    yield from _router_flags(mode, at)
    if router.membership_update == "dynamic":
        if router.api is None:
            yield (*at, "api"), "dynamic membership needs an api"
        else:
            for flag in router.api.requires_args:
                if flag not in router.args:
                    yield (*at, "args"), f"the api needs {flag}"
    used = set(names([router.args, router.env]))
    for index, band in enumerate(router.bands):
        if f"ports.{band.name}" not in used:
            yield (*at, "bands", index), f"band {band.name!r} is not used"
    if router.metrics_band and router.metrics_band not in {b.name for b in router.bands}:
        yield (*at, "metrics_band"), f"there is no band {router.metrics_band!r}"
    yield from _spaced([router.args, router.env, router.peers], at)


def _router_flags(mode: Mode, at: tuple[str, ...]) -> Iterator[Complaint]:
    router = mode.router
    flags = [t.flag for t in router.tunables]
    for index, tunable in enumerate(router.tunables):
        where: tuple[str | int, ...] = (*at, "tunables", index)
        if flags.count(tunable.flag) > 1:
            yield where, f"{tunable.flag} is declared twice"
        if tunable.flag in (*router.peer_flags, *router.owned_flags, *router.args):
            yield where, f"{tunable.flag} is the platform's and cannot be tuned"
        default = tunable.default
        if tunable.options and default is not None and str(default) not in tunable.options:
            yield where, f"the default {default!r} is not among the options"


def _custom(mode: Mode, at: tuple[str, ...]) -> Iterator[Complaint]:
    for field in ("vendor", "transport", "lease", "cache"):
        if getattr(mode, field) is not None:
            yield (*at, field), f"{CUSTOM} injects nothing and declares none"
    if mode.router.membership_update != "manual":
        yield (*at, "router", "membership_update"), f"{CUSTOM} can only be manual"


def _spaced(node: object, at: tuple[str, ...]) -> Iterator[Complaint]:
    for text in _strings(node):
        for found in SPACED.findall(text):
            yield at, f"{found!r}: a placeholder has no spaces inside its braces"


def _strings(node: object) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict):
        for inner in node.values():
            yield from _strings(inner)
    elif isinstance(node, list | tuple):
        for inner in node:
            yield from _strings(inner)
