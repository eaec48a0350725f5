"""Structural rules: what makes sense as a deployment at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from backend.domain.bands import resolve
from backend.domain.decide import wanted_counts
from backend.domain.errors import Problem
from backend.domain.group import Group
from backend.domain.inherit import CUSTOM
from backend.domain.rules.subject import Subject
from backend.domain.rules.words import finding

MOST_REPLICAS = 512


def mode_known(s: Subject) -> Iterator[Problem]:
    """The mode is in the catalogue."""
    pd = s.spec.disaggregation
    if pd is not None and s.mode is None:
        yield finding("mode.unknown", "", "spec.disaggregation.mode", mode=pd.mode,
                      known=list(s.known.catalogue.modes))  # fmt: skip


def engine_fits_mode(s: Subject) -> Iterator[Problem]:
    """Each role's engine is one that the mode can configure; mixing engines needs `custom`."""
    if s.mode is None or not s.mode.engines:
        return
    for side in s.sides:
        if side.role.engine not in s.mode.engines:
            yield finding("mode.engine", "", side.path("engine"), engine=side.role.engine,
                          mode=s.mode.name, role=side.name, engines=list(s.mode.engines),
                          first=s.mode.engines[0])  # fmt: skip


def shape(s: Subject) -> Iterator[Problem]:
    """Roles belong to disaggregation; a plain count and a schedule do not."""
    pd = s.spec.disaggregation
    if pd is None:
        if s.spec.roles is not None:
            yield finding("structure.roles", "", "spec.roles", disaggregation=None,
                          roles=["prefill", "decode", "router"])  # fmt: skip
        return
    if s.spec.replicas is not None:
        yield finding("structure.replicas", "", "spec.replicas", replicas=s.spec.replicas,
                      mode=pd.mode)  # fmt: skip
    if s.spec.scaling_schedule:
        yield finding("structure.schedule", "", "spec.scaling_schedule", mode=pd.mode,
                      schedules=len(s.spec.scaling_schedule))  # fmt: skip


def command_given(s: Subject) -> Iterator[Problem]:
    """The `custom` engine has no command of its own, so one has to be given."""
    for side in s.sides:
        if side.role.engine == CUSTOM and not side.role.run_command:
            yield finding("structure.run_command", "engine", "spec.run_command", role=side.name,
                          run_command=None)  # fmt: skip
    if s.mode is None or s.mode.router.command or resolve(s.spec, "router").run_command:
        return
    yield finding("structure.run_command", "router", "spec.run_command", role="router",
                  run_command=None, mode=s.mode.name)  # fmt: skip


def hosts_known(s: Subject) -> Iterator[Problem]:
    """Every host that the document names is in the inventory."""
    for path, name in _named_hosts(s):
        if name not in s.known.hosts:
            yield finding("host.unknown", "" if s.known.hosts else "none", path, host=name,
                          known=sorted(s.known.hosts))  # fmt: skip


def _named_hosts(s: Subject) -> Iterator[tuple[str, str]]:
    places: list[tuple[str, object]] = [("spec", s.spec)]
    if s.spec.roles is not None:
        places += [
            (f"spec.roles.{r}", getattr(s.spec.roles, r))
            for r in s.spec.roles.__class__.model_fields
        ]
    for path, at in places:
        selector, pins = at.hosts, at.placement  # type: ignore[attr-defined]
        for n, name in enumerate((selector.names or []) if selector else []):
            yield f"{path}.hosts.names[{n}]", name
        for n, pin in enumerate(pins or []):
            yield f"{path}.placement[{n}].host", pin.host


def fits_a_host(s: Subject) -> Iterator[Problem]:
    """A member fits on one host: it does not span hosts."""
    widths = s.known.widths
    if not widths or set(widths) != set(s.known.hosts):
        return  # some host was not seen: it may be wide enough
    host, widest = max(widths.items(), key=lambda item: (item[1], item[0]))
    for side in s.sides:
        if side.role.width > widest:
            pinned = "placement" not in side.role.inherited
            path = side.path("accelerators")
            if pinned and s.spec.disaggregation is not None:
                path = f"spec.roles.{side.name}.accelerators"
            yield finding("placement.too_wide", "", path, role=side.name, needed=side.role.width,
                          widest=widest, host=host)  # fmt: skip


def pins_sound(s: Subject) -> Iterator[Problem]:
    """Pins of one role are equally wide, and no accelerator is given to two members."""
    given: dict[tuple[str, int], tuple[str, str]] = {}
    for side in s.sides:
        base = side.path("placement")
        for n, pin in enumerate(side.role.placement or ()):
            if pin.accelerators is None:
                continue
            at = (side.name, f"{base}[{n}].accelerators")
            if len(pin.accelerators) != side.role.width:
                yield finding("structure.placement", "uneven", at[1], role=side.name,
                              width=len(pin.accelerators), widest=side.role.width)  # fmt: skip
            for index in pin.accelerators:
                before = given.setdefault((pin.host, index), at)
                if before != at or pin.accelerators.count(index) > 1:
                    yield finding("structure.placement", "twice", at[1], role=side.name,
                                  host=pin.host, accelerator=index, other=before[1],
                                  other_role=before[0])  # fmt: skip
                    break


RULES: tuple[Callable[[Subject], Iterator[Problem]], ...] = (
    mode_known,
    engine_fits_mode,
    shape,
    command_given,
    hosts_known,
    fits_a_host,
    pins_sound,
)


def scale_refusal(group: Group, counts: Mapping[str, int]) -> Problem | None:
    """Why these counts cannot be set at all; None when they can. The roles are the saved
    document's: that is where a count is stored."""
    known = list(wanted_counts(group))
    for role, count in counts.items():
        path = f"spec.roles.{role}.replicas"
        if role not in known:
            case = "router" if role == "router" else "unknown"
            return finding("structure.scale_role", case, path, role=role, known=known)
        if not 1 <= count <= MOST_REPLICAS:
            return finding("structure.scale_count", "", path, role=role, count=count,
                           most=MOST_REPLICAS)  # fmt: skip
    return None
