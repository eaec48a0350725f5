"""What a role really gets: its own values, and the deployment's where it has none.

`None` inherits. Anything else, also `{}`, `[]` and `""`, replaces whole: environments and
parameter lists are never merged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from backend.domain.deployment import (
    HostSelector,
    KvCache,
    MemberRole,
    Overridable,
    Pin,
    Roles,
    RouterRole,
    Spec,
)
from backend.domain.instance import PLAIN_ROLE

CUSTOM = "custom"
"""The one mode that injects nothing; also the engine of one's own."""


@dataclass(frozen=True)
class EffectiveRole:
    """One role with every overridable resolved; `inherited` names the fields it did not set."""

    name: str
    engine: str
    engine_version: str | None
    image: str | None
    executable: str | None
    run_command: tuple[str, ...] | None
    parameters: tuple[str, ...]
    env: Mapping[str, str]
    accelerators: int
    hosts: HostSelector | None
    placement: tuple[Pin, ...] | None
    extended_kv_cache: KvCache
    replicas: int
    inherited: frozenset[str]

    @property
    def width(self) -> int:
        """Accelerators of one replica: the widest explicit choice, else the count."""
        chosen = [len(p.accelerators) for p in self.placement or () if p.accelerators is not None]
        return max(chosen, default=self.accelerators)


def effective(spec: Spec, role: Literal["prefill", "decode", "router"]) -> EffectiveRole:
    """`role` of a disaggregated deployment with everything it inherits."""
    roles = spec.roles or Roles()
    if role == "router":
        return _router(spec, roles.router)
    own = roles.prefill if role == "prefill" else roles.decode
    return _member(spec, own, role)


def plain(spec: Spec) -> EffectiveRole:
    """The only role of a deployment without disaggregation."""
    return _member(spec, MemberRole(replicas=spec.replicas or 1), PLAIN_ROLE)


def roles_of(spec: Spec) -> tuple[EffectiveRole, ...]:
    """Every role that runs engines: prefill and decode, or the plain one."""
    if spec.disaggregation is None:
        return (plain(spec),)
    return (effective(spec, "prefill"), effective(spec, "decode"))


def _member(spec: Spec, own: MemberRole, name: str) -> EffectiveRole:
    def pick(field: str) -> Any:
        mine = getattr(own, field)
        return getattr(spec, field) if mine is None else mine

    inherited = frozenset(f for f in Overridable.model_fields if getattr(own, f) is None)
    merged = Overridable.model_construct(None, **{f: pick(f) for f in Overridable.model_fields})
    return EffectiveRole(
        name=name,
        engine=merged.engine or spec.engine,
        engine_version=merged.engine_version,
        image=merged.image,
        executable=merged.executable,
        run_command=None if merged.run_command is None else tuple(merged.run_command),
        parameters=tuple(merged.parameters or ()),
        env=dict(merged.env or {}),
        accelerators=merged.accelerators or 0,
        hosts=merged.hosts,
        placement=None if merged.placement is None else tuple(merged.placement),
        extended_kv_cache=merged.extended_kv_cache or KvCache(),
        replicas=own.replicas,
        inherited=inherited,
    )


def _router(spec: Spec, own: RouterRole) -> EffectiveRole:
    custom = spec.disaggregation is not None and spec.disaggregation.mode == CUSTOM
    command = own.run_command
    if command is None and custom:
        command = spec.run_command
    inheritable = {"image", "env", "hosts"} | ({"run_command"} if custom else set())
    inherited = {f for f in inheritable if getattr(own, f) is None}
    placement = None if own.placement is None else tuple(own.placement)
    return EffectiveRole(
        name="router",
        engine=spec.engine,
        engine_version=spec.engine_version,
        image=spec.image if own.image is None else own.image,
        executable=own.executable,
        run_command=None if command is None else tuple(command),
        parameters=tuple(own.parameters or ()),
        env=dict(spec.env if own.env is None else own.env),
        accelerators=0,
        hosts=spec.hosts if own.hosts is None else own.hosts,
        placement=placement,
        extended_kv_cache=KvCache(),
        replicas=1,
        inherited=frozenset(inherited | {"engine", "engine_version"}),
    )


def image_of(role: EffectiveRole, default: str | None) -> str | None:
    """The role's own image, else `default`, its engine's, for the role's engine version."""
    if role.image:
        return role.image
    if default is None:
        return None
    version = role.engine_version
    return default.replace("{{engine_version}}", version) if version else default.split(":")[0]
