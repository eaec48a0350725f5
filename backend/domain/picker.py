"""Which modes a deployment may take, why not the others, which one is recommended, and what a
version outside a recipe's range is worth a warning."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from backend.domain.deployment import Spec
from backend.domain.errors import Problem
from backend.domain.host import Vendor
from backend.domain.inherit import EffectiveRole, roles_of
from backend.domain.mode import Catalogue, Mode, VersionRange


@dataclass(frozen=True)
class Choice:
    """One mode as a picker shows it; `why_not` is empty for an eligible one."""

    mode: str
    why_not: str = ""
    recommended: bool = False


def choices(
    catalogue: Catalogue, engine: str, vendors: Collection[Vendor] | None
) -> tuple[Choice, ...]:
    """Every mode for `engine` on hosts with these accelerator `vendors`.

    None means that no host was looked at yet, so vendors rule nothing out. One mode is recommended
    when it is the only fitting one, or the only preferred one, of a single vendor; a choice between
    vendors is a person's.
    """
    reasons = {m.name: _why_not(m, engine, vendors) for m in catalogue.modes.values()}
    fitting = [m for m in catalogue.modes.values() if m.injects and not reasons[m.name]]
    preferred = fitting if len(fitting) == 1 else [m for m in fitting if m.preferred]
    known = set(vendors or ()) or {m.vendor for m in fitting if m.vendor is not None}
    single = preferred[0].name if len(preferred) == 1 and len(known) == 1 else None
    return tuple(Choice(name, why, name == single) for name, why in reasons.items())


def version_warnings(catalogue: Catalogue, spec: Spec, provider: str = "") -> tuple[Problem, ...]:
    """Warnings for built-in engine versions outside the range of the mode or of a cache in use.

    Advisory: nothing is refused. A custom version (not in the engine's known list where it has
    one, or with a suffix), an unset version, and an explicit image never warn. `provider` is the
    cache service's, where one is attached.
    """
    mode = catalogue.mode_of(spec)
    if mode is None:
        return ()
    found = []
    for role in roles_of(spec):
        for what, bounds in _ranges(mode, role, provider):
            if bounds is not None and _outside(catalogue, role, bounds):
                path = "spec.engine_version"
                if "engine_version" not in role.inherited:
                    path = f"spec.roles.{role.name}.engine_version"
                found.append(
                    Problem(
                        rule="mode.version_range",
                        message=f"{role.engine} {role.engine_version} is outside {bounds.range}, "
                        f"which {what} is known to work with"
                        + (f" ({bounds.reason})." if bounds.reason else "."),
                        path=path,
                        remedy="It is deployed all the same and may fail at its start.",
                        values={
                            "engine": role.engine,
                            "version": role.engine_version,
                            "range": bounds.range,
                            "what": what,
                            "reason": bounds.reason,
                        },
                        verdict="warning",
                    )
                )
    unique = {(p.path, p.message): p for p in found}
    return tuple(unique.values())


def _why_not(mode: Mode, engine: str, vendors: Collection[Vendor] | None) -> str:
    if mode.engines and engine not in mode.engines:
        return f"it is for {', '.join(mode.engines)}, not {engine}"
    if mode.vendor is not None and vendors is not None:
        if not vendors:
            return f"no host shows an accelerator; it needs {mode.vendor}"
        if mode.vendor not in vendors:
            return (
                f"it needs {mode.vendor} accelerators; the hosts have {', '.join(sorted(vendors))}"
            )
    return ""


def _ranges(
    mode: Mode, role: EffectiveRole, provider: str
) -> list[tuple[str, VersionRange | None]]:
    ranges: list[tuple[str, VersionRange | None]] = [(f"mode {mode.name}", mode.versions)]
    if mode.cache is None:
        return ranges
    kind = role.extended_kv_cache.kind
    if kind == "in_process" and mode.cache.in_process is not None:
        ranges.append(("its in-process cache", mode.cache.in_process.versions))
    if kind == "service" and provider in mode.cache.service:
        ranges.append((f"its {provider} cache", mode.cache.service[provider].versions))
    return ranges


def _outside(catalogue: Catalogue, role: EffectiveRole, bounds: VersionRange) -> bool:
    if role.image or not role.engine_version:
        return False
    known = catalogue.engine(role.engine).known_versions
    if known and role.engine_version not in known:
        return False
    try:
        version = Version(role.engine_version)
    except InvalidVersion:
        return False
    if version.local or version.is_prerelease or version.is_devrelease:
        return False
    return version not in SpecifierSet(bounds.range)
