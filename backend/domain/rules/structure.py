"""Structural rules: what makes sense as a deployment at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from backend.domain.bands import resolve
from backend.domain.decide import wanted_counts
from backend.domain.deployment import Deployment
from backend.domain.errors import Problem
from backend.domain.group import Group
from backend.domain.inherit import CUSTOM
from backend.domain.mode import Catalogue


@dataclass(frozen=True)
class Known:
    """What the rules may look at beside the document. `widths` are accelerators by host name,
    only of hosts that were looked at; `hosts` all names of the inventory."""

    catalogue: Catalogue
    hosts: frozenset[str] = frozenset()
    widths: Mapping[str, int] = field(default_factory=dict)


Rule = Callable[[Deployment, Known], Iterator[Problem]]


def mode_known(d: Deployment, k: Known) -> Iterator[Problem]:
    """The mode is in the catalogue."""
    pd = d.spec.disaggregation
    if pd is not None and pd.mode not in k.catalogue.modes:
        names = list(k.catalogue.modes)
        yield Problem(
            rule="mode.unknown",
            path="spec.disaggregation.mode",
            message=f"there is no mode {pd.mode!r}.",
            values={"mode": pd.mode, "known": names},
            remedy=f"Choose one of {', '.join(names)}.",
        )


def engine_fits_mode(d: Deployment, k: Known) -> Iterator[Problem]:
    """Each role's engine is one that the mode can configure; mixing engines needs `custom`."""
    pd = d.spec.disaggregation
    mode = k.catalogue.modes.get(pd.mode) if pd else None
    if mode is None or not mode.engines:
        return
    for role in ("prefill", "decode"):
        resolved = resolve(d.spec, role)
        if resolved.engine not in mode.engines:
            own = "engine" not in resolved.inherited
            yield Problem(
                rule="mode.engine",
                path=f"spec.roles.{role}.engine" if own else "spec.engine",
                message=f"mode {mode.name} configures {', '.join(mode.engines)}, "
                f"but {role} runs {resolved.engine}.",
                values={"engine": resolved.engine, "mode": mode.name, "role": role},
                remedy=f"Use {mode.engines[0]}, another mode, or mode {CUSTOM} with commands of "
                "your own.",
            )


def shape(d: Deployment, k: Known) -> Iterator[Problem]:
    """Roles belong to disaggregation; a plain count and a schedule do not."""
    spec = d.spec
    if spec.disaggregation is None and spec.roles is not None:
        yield Problem(
            rule="structure.roles",
            path="spec.roles",
            message="roles are given, but disaggregation is null.",
            values={"roles": ["prefill", "decode", "router"], "disaggregation": None},
            remedy="Set spec.disaggregation.mode, or remove spec.roles.",
        )
    if spec.disaggregation is not None and spec.replicas is not None:
        yield Problem(
            rule="structure.replicas",
            path="spec.replicas",
            message=f"replicas is {spec.replicas}, but a disaggregated deployment counts by role.",
            values={"replicas": spec.replicas, "mode": spec.disaggregation.mode},
            remedy="Set spec.roles.prefill.replicas and spec.roles.decode.replicas; "
            "to switch the group off set spec.paused.",
        )
    if spec.disaggregation is not None and spec.scaling_schedule:
        yield Problem(
            rule="structure.schedule",
            path="spec.scaling_schedule",
            message="scheduled scaling and disaggregation cannot be combined: the schedule would "
            "write one count where two roles have their own.",
            values={"schedules": len(spec.scaling_schedule), "mode": spec.disaggregation.mode},
            remedy="Remove the schedule, or disaggregation.",
        )


def command_given(d: Deployment, k: Known) -> Iterator[Problem]:
    """The `custom` engine has no command of its own, so one has to be given."""
    names = ("prefill", "decode") if d.spec.disaggregation else ("replica",)
    for role in names:
        resolved = resolve(d.spec, role)
        if resolved.engine == CUSTOM and not resolved.run_command:
            yield Problem(
                rule="structure.run_command",
                path="spec.run_command",
                message=f"{role} runs the custom engine, which has no command of its own.",
                values={"role": role, "run_command": None},
                remedy="Set spec.run_command to the argv to start, one token a list item.",
            )
    pd = d.spec.disaggregation
    mode = k.catalogue.modes.get(pd.mode) if pd else None
    if mode is None or mode.router.command or resolve(d.spec, "router").run_command:
        return
    yield Problem(
        rule="structure.run_command",
        path="spec.run_command",
        message=f"mode {mode.name} brings no router, and the router has no command.",
        values={"role": "router", "run_command": None},
        remedy="Set spec.run_command, which the router inherits, or spec.roles.router.run_command.",
    )


def hosts_known(d: Deployment, k: Known) -> Iterator[Problem]:
    """Every host that the document names is in the inventory."""
    for path, name in _named_hosts(d):
        if name not in k.hosts:
            there = ", ".join(sorted(k.hosts)) or "none yet"
            yield Problem(
                rule="host.unknown",
                path=path,
                message=f"there is no host {name!r} in the inventory; there are: {there}.",
                values={"host": name, "known": sorted(k.hosts)},
                remedy=f"Add it with `pdtui hosts add {name} ADDRESS`, or name another.",
            )


def _named_hosts(d: Deployment) -> Iterator[tuple[str, str]]:
    places: list[tuple[str, object]] = [("spec", d.spec)]
    if d.spec.roles is not None:
        places += [
            (f"spec.roles.{r}", getattr(d.spec.roles, r))
            for r in d.spec.roles.__class__.model_fields
        ]
    for path, at in places:
        selector, pins = at.hosts, at.placement  # type: ignore[attr-defined]
        for n, name in enumerate((selector.names or []) if selector else []):
            yield f"{path}.hosts.names[{n}]", name
        for n, pin in enumerate(pins or []):
            yield f"{path}.placement[{n}].host", pin.host


def fits_a_host(d: Deployment, k: Known) -> Iterator[Problem]:
    """A member fits on one host: it does not span hosts."""
    if not k.widths or set(k.widths) != set(k.hosts):
        return  # some host was not seen: it may be wide enough
    host, widest = max(k.widths.items(), key=lambda item: (item[1], item[0]))
    for role in ("prefill", "decode") if d.spec.disaggregation else ("replica",):
        resolved = resolve(d.spec, role)
        width = resolved.width
        own = "accelerators" not in resolved.inherited or "placement" not in resolved.inherited
        if width > widest:
            yield Problem(
                rule="placement.too_wide",
                path=f"spec.roles.{role}.accelerators" if own else "spec.accelerators",
                message=f"one {role} member needs {width} accelerators, but the widest host "
                f"({host}) has {widest}; a member does not span hosts.",
                values={"needed": width, "widest": widest, "host": host},
                remedy=f"Set accelerators to {widest} or less, or add a wider host.",
            )


def pins_sound(d: Deployment, k: Known) -> Iterator[Problem]:
    """Pins of one role are equally wide, and no accelerator is given to two members."""
    given: dict[tuple[str, int], tuple[str, str]] = {}
    for role in ("prefill", "decode") if d.spec.disaggregation else ("replica",):
        resolved = resolve(d.spec, role)
        own = "placement" not in resolved.inherited
        base = f"spec.roles.{role}.placement" if own else "spec.placement"
        for n, pin in enumerate(resolved.placement or ()):
            if pin.accelerators is None:
                continue
            at = (role, f"{base}[{n}].accelerators")
            if len(pin.accelerators) != resolved.width:
                yield _uneven(at[1], role, len(pin.accelerators), resolved.width)
            for index in pin.accelerators:
                before = given.setdefault((pin.host, index), at)
                if before != at or pin.accelerators.count(index) > 1:
                    yield _given_twice(at, pin.host, index, before)
                    break


def _uneven(path: str, role: str, width: int, widest: int) -> Problem:
    return Problem(
        rule="structure.placement",
        path=path,
        message=f"this {role} member gets {width} accelerators and another one {widest}: the "
        "members of a role are launched alike.",
        values={"role": role, "width": width, "widest": widest},
        remedy=f"List {widest} accelerators here, or as many everywhere.",
    )


def _given_twice(at: tuple[str, str], host: str, index: int, before: tuple[str, str]) -> Problem:
    role, path = at
    return Problem(
        rule="structure.placement",
        path=path,
        message=f"accelerator {index} of {host} is given to this {role} member and once more: to "
        f"{before[0]} by {before[1]}.",
        values={"role": role, "host": host, "accelerator": index, "other": before[1]},
        remedy="Name each accelerator once, and give each role a placement of its own.",
    )


RULES: tuple[Rule, ...] = (
    mode_known,
    engine_fits_mode,
    shape,
    command_given,
    hosts_known,
    fits_a_host,
    pins_sound,
)


def judge(d: Deployment, k: Known) -> tuple[Problem, ...]:
    """Every finding of every rule."""
    return tuple(p for rule in RULES for p in rule(d, k))


def scale_refusal(group: Group, counts: Mapping[str, int]) -> Problem | None:
    """Why these counts cannot be set at all; None when they can. The roles are the saved
    document's: that is where a count is stored."""
    known = tuple(wanted_counts(group))
    for role, count in counts.items():
        if role not in known:
            what = "has exactly one replica" if role == "router" else "is no role of this group"
            return Problem(
                rule="structure.scale_role",
                path=f"spec.roles.{role}.replicas",
                message=f"{role} {what}; the roles that scale are {', '.join(known)}.",
                values={"role": role, "known": list(known)},
                remedy=f"Name one of {', '.join(known)}.",
            )
        if not 1 <= count <= 512:
            return Problem(
                rule="structure.scale_count",
                path=f"spec.roles.{role}.replicas",
                message=f"{count} is no count for {role}: it is from 1 to 512.",
                values={"role": role, "count": count},
                remedy="To switch the whole group off, pause it.",
            )
    return None
