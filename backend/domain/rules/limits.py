"""Structural rules beside `structure`: what cannot be combined, and what is the platform's to set.

Source: the user's document, "constraints" and "limits"; the reference implementation's save rules.
"""

from __future__ import annotations

from collections.abc import Iterator

from backend.domain.api_keys import KEY_FLAG
from backend.domain.cache import attachment
from backend.domain.deployment import KvCache
from backend.domain.engine_args import normal, occurrences
from backend.domain.errors import Problem, Refused
from backend.domain.picker import version_warnings
from backend.domain.rules.sides import Side
from backend.domain.rules.subject import Subject
from backend.domain.rules.words import finding

LORA_FLAGS = ("--enable-lora", "--lora-modules", "--lora-paths")


def lora(s: Subject) -> Iterator[Problem]:
    """Adapters cannot be served through a router that knows its members by one served name."""
    if not s.paired:
        return
    for side in s.sides:
        found = side.any(*LORA_FLAGS)
        if found is not None:
            yield finding("structure.lora", "", found.path, role=side.name, flag=f"--{found.key}")


def reserved_flags(s: Subject) -> Iterator[Problem]:
    """Address, port and served name are the platform's; a member's key locks the router out."""
    told: set[tuple[str, str]] = set()
    for side in s.sides:
        engine = s.known.catalogue.engines.get(side.role.engine)
        if side.own_command or engine is None:
            continue
        flags = (*engine.owned_flags, *((KEY_FLAG,) if s.paired else ()))
        owned = {normal(f): f for f in flags}
        for seen in side.every(*flags):
            if (seen.path, seen.key) not in told:
                told.add((seen.path, seen.key))
                case = "key" if owned[seen.key] == KEY_FLAG else "owned"
                yield finding("structure.reserved_flag", case, seen.path, role=side.name,
                              flag=owned[seen.key], value=seen.value)  # fmt: skip


def image_version(s: Subject) -> Iterator[Problem]:
    """An image already holds its engine's version, so both cannot be named in one place."""
    places: list[tuple[str, str, str | None, str | None]] = [
        ("spec", s.spec.engine, s.spec.image, s.spec.engine_version)
    ]
    if s.spec.roles is not None:
        for side in s.sides:
            own = getattr(s.spec.roles, side.name, None)
            if own is not None:
                place = f"spec.roles.{side.name}"
                places.append((place, side.role.engine, own.image, own.engine_version))
    for place, engine, image, version in places:
        if image and version and engine != "custom":
            yield finding("structure.image_version", "", f"{place}.engine_version", image=image,
                          version=version)  # fmt: skip


def accelerators(s: Subject) -> Iterator[Problem]:
    """A member's ranks fit on its accelerators."""
    for side in s.sides:
        tensor, pipeline = side.degree("tensor"), side.degree("pipeline")
        width = side.role.width
        if side.own_command or tensor is None or pipeline is None or not width:
            continue
        ranks = tensor * pipeline
        if ranks > width:
            yield finding("structure.accelerators", "",
                          side.where("tensor_parallel", "accelerators"),
                          role=side.name, tensor=tensor, pipeline=pipeline, ranks=ranks,
                          accelerators=width)  # fmt: skip


def failure_policy(s: Subject) -> Iterator[Problem]:
    """A policy for failed loads is set only where the mode's connector is told of it."""
    pd = s.spec.disaggregation
    if pd is None or s.mode is None or pd.kv_load_failure_policy == "fail":
        return
    if not s.mode.kv_load_failure_policy:
        known = [m.name for m in s.known.catalogue.modes.values() if m.kv_load_failure_policy]
        case = "custom" if not s.mode.injects else "mode"
        yield finding("mode.kv_load_failure_policy", case,
                      "spec.disaggregation.kv_load_failure_policy",
                      policy=pd.kv_load_failure_policy, mode=s.mode.name, known=known)  # fmt: skip


def shadowed(s: Subject) -> Iterator[Problem]:
    """A role's variable or argument that the mode sets as well: the role's own wins."""
    told: set[str] = set()
    for side in s.sides if s.paired else ():
        recipe = s.mode.role(side.name) if s.mode else None
        if recipe is None or not s.mode:
            continue
        for name in recipe.env:
            path = f"{side.path('env')}.{name}"
            if name in side.role.env:
                yield finding("mode.shadowed", "env", path, "warning", role=side.name,
                              name=name, mode=s.mode.name, theirs=recipe.env[name])  # fmt: skip
        for seen in occurrences(recipe.args):
            written = side.flag(seen.key)
            if written is not None and written.path not in told:
                told.add(written.path)
                yield finding("mode.shadowed", "flag", written.path, "warning", role=side.name,
                              name=f"--{seen.key}", mode=s.mode.name, value=written.value,
                              theirs=seen.value)  # fmt: skip


def version_range(s: Subject) -> Iterator[Problem]:
    """A built-in version outside what a recipe is known to work with; deployed all the same."""
    if s.mode is None:
        return
    for problem in version_warnings(s.known.catalogue, s.spec, _provider(s)):
        case = "reason" if problem.values.get("reason") else "range"
        yield finding("mode.version_range", case, problem.path, "warning", **problem.values)


def _provider(s: Subject) -> str:
    for side in s.sides:
        service = (s.known.services or {}).get(side.role.extended_kv_cache.service or "")
        if service is not None:
            return service.provider
    return ""


def cache(s: Subject) -> Iterator[Problem]:
    """Each role's extended cache is one that the mode composes for that role."""
    for side in s.sides:
        cache = side.role.extended_kv_cache
        if cache.kind == "none":
            continue
        path = side.path("extended_kv_cache")
        yield from _shape(cache, path)
        yield from _attached(s, side, cache, path)


def _shape(cache: KvCache, path: str) -> Iterator[Problem]:
    if cache.kind == "service" and not cache.service:
        yield finding("cache.shape", "no_service", f"{path}.service", kind=cache.kind,
                      service=None)  # fmt: skip
    if cache.kind != "service" and cache.service:
        yield finding("cache.shape", "not_a_service", f"{path}.kind", kind=cache.kind,
                      service=cache.service)  # fmt: skip


def _attached(s: Subject, side: Side, cache: KvCache, path: str) -> Iterator[Problem]:
    service = None
    if cache.kind == "service" and s.mode is not None and s.mode.cache is not None:
        if not cache.service:
            return
        if s.known.services is None:
            yield finding("cache.service", "unknown", path, "unverified", role=side.name,
                          service=cache.service)  # fmt: skip
            return
        service = s.known.services.get(cache.service)
    try:
        attachment(s.mode, side.role, service=service)
    except Refused as error:
        rule = error.problem.rule
        recipe = None
        if s.mode and s.mode.cache and service:
            recipe = s.mode.cache.service.get(service.provider)
        yield finding(
            rule,
            "plain" if s.mode is None else "",
            path, role=side.name, service=cache.service or cache.kind,
            mode=s.mode.name if s.mode else None,
            provider=service.provider if service else None,
            known=sorted(s.mode.cache.service) if s.mode and s.mode.cache else [],
            services=sorted(s.known.services or {}) or None,
            note=f" ({recipe.note})" if recipe and recipe.note else "",
        )  # fmt: skip


def one_service(s: Subject) -> Iterator[Problem]:
    """Roles that share a cache service share the same one."""
    if not s.paired:
        return
    caches = [side.role.extended_kv_cache for side in s.sides]
    names = [c.service for c in caches if c.kind == "service" and c.service]
    if len(set(names)) > 1:
        yield finding("cache.two_services", "", s.decode.path("extended_kv_cache"),
                      prefill=names[0], decode=names[1])  # fmt: skip
