"""Extended KV cache of one role: what the mode's recipe attaches, or why it cannot."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from backend.domain.deployment import KvCache
from backend.domain.errors import Refused
from backend.domain.inherit import EffectiveRole
from backend.domain.mode import Attachment, CacheRecipe, Mode
from backend.domain.value import Value

MIB, GIB = 2**20, 2**30


class CacheService(Value):
    """A running cache service as a member attaches to it. `settings` are the provider's own."""

    name: str
    provider: str
    host: str = ""
    port: int = 0
    settings: dict[str, Any] = Field(default_factory=dict)


def attachment(
    mode: Mode | None,
    role: EffectiveRole,
    *,
    accelerator_type: str = "",
    service: CacheService | None = None,
) -> Attachment | None:
    """What `role` gets for its extended cache; None where it has none.

    Raises Refused: `cache.mode` (the mode composes no such cache), `cache.provider`, `cache.role`,
    `cache.service` (the named service is not known here).
    """
    cache = role.extended_kv_cache
    if cache.kind == "none":
        return None
    recipe = _recipe(mode, role, cache, service)
    if any(excluded in accelerator_type for excluded in recipe.excluded_types):
        return None
    found = recipe.role(role.name)
    if found is None:
        wanted = f"a {service.provider} service" if service else "an in-process cache"
        raise _refused(
            "cache.role",
            f"The {role.name} role cannot use {wanted} in mode {mode.name if mode else '-'}"
            + (f": {recipe.note}" if recipe.note else "."),
            role,
            f"Set spec.roles.{role.name}.extended_kv_cache: {{kind: none}}.",
        )
    return found


def cache_scope(
    role: EffectiveRole, accelerators: int, memory_mib: int, service: CacheService | None
) -> dict[str, Any]:
    """The `cache.*` and `service.*` placeholders; None where nothing was set.

    The budget is the size that was set, else the ratio that was set times the memory of the
    member's accelerators (`memory_mib` each) where that is known.
    """
    cache = role.extended_kv_cache
    budget = None if cache.ram_size_gib is None else int(cache.ram_size_gib * GIB)
    if budget is None and cache.ram_ratio is not None and memory_mib and accelerators:
        budget = int(cache.ram_ratio * memory_mib * MIB) * accelerators
    scope: dict[str, Any] = {
        "cache.ram_gib": _short(cache.ram_size_gib),
        "cache.ram_ratio": _short(cache.ram_ratio),
        "cache.chunk_size": cache.chunk_size,
        "cache.budget_gib": None if budget is None else _short(round(budget / GIB, 2)),
        "cache.bytes_per_accelerator": None if budget is None else budget // max(accelerators, 1),
    }
    if service is not None:
        scope |= {"service.name": service.name, "service.host": service.host or None}
        scope |= {"service.port": service.port or None, "service.extra": {}}
        scope |= {f"service.{k}": v for k, v in service.settings.items()}
    return scope


def _recipe(
    mode: Mode | None, role: EffectiveRole, cache: KvCache, service: CacheService | None
) -> CacheRecipe:
    name = mode.name if mode else "no mode"
    composition = mode.cache if mode else None
    if composition is None:
        raise _refused(
            "cache.mode",
            f"{name} injects no connector, so there is nothing an extended cache could join.",
            role,
            "Write the connector and its cache in the parameters, or set {kind: none}.",
        )
    if cache.kind == "in_process":
        if composition.in_process is None:
            raise _refused(
                "cache.mode", f"Mode {name} has no in-process cache.", role, "Set {kind: none}."
            )
        return composition.in_process
    if service is None:
        raise _refused(
            "cache.service",
            f"The cache service {cache.service!r} is not known here.",
            role,
            "Create it first, or set {kind: none}.",
        )
    if service.provider not in composition.service:
        raise _refused(
            "cache.provider",
            f"Mode {name} cannot use the provider {service.provider!r} of {service.name!r}.",
            role,
            "It takes: " + (", ".join(composition.service) or "none") + ".",
        )
    return composition.service[service.provider]


def _refused(rule: str, message: str, role: EffectiveRole, remedy: str) -> Refused:
    inherited = "extended_kv_cache" in role.inherited
    path = "spec.extended_kv_cache" if inherited else f"spec.roles.{role.name}.extended_kv_cache"
    return Refused.of(rule, message, path=path, remedy=remedy, values={"role": role.name})


def _short(number: float | None) -> int | float | None:
    return int(number) if number is not None and float(number).is_integer() else number
