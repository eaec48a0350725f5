"""How many ports one instance needs, by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from backend.domain.deployment import Spec
from backend.domain.engine_args import flatten, parallel
from backend.domain.inherit import EffectiveRole, effective, plain
from backend.domain.instance import PLAIN_ROLE
from backend.domain.mode import BandRecipe, Catalogue, Mode

HTTP = "http"
"""The band every instance has: its one HTTP port, always first."""


@dataclass(frozen=True)
class BandDemand:
    """A wanted band: its name and its number of ports."""

    name: str
    count: int


def resolve(spec: Spec, role: str) -> EffectiveRole:
    """The effective role of that name: prefill, decode, router or the plain one."""
    if role == PLAIN_ROLE:
        return plain(spec)
    if role in ("prefill", "decode", "router"):
        return effective(spec, role)  # type: ignore[arg-type]
    raise ValueError(f"{role!r} is no role")


def demand(
    mode: Mode | None, catalogue: Catalogue, spec: Spec, role: str
) -> tuple[BandDemand, ...]:
    """The bands of one instance of `role`, HTTP first, then in the recipe's order.

    Raises NotFound for an unknown engine.
    """
    resolved = resolve(spec, role)
    flags = catalogue.engine(resolved.engine).flags
    degrees = parallel(flatten(resolved.parameters), flags)
    widths = {
        "data_parallel_size": degrees.data or 1,
        "accelerator_count": max(resolved.width, 1),
    }
    wanted = [BandDemand(HTTP, 1)]
    for band in _recipes(mode, role):
        count = band.width if isinstance(band.width, int) else widths[band.width]
        wanted.append(BandDemand(band.name, count))
    return tuple(wanted)


def total(demands: Iterable[BandDemand]) -> int:
    """Ports that all of `demands` take together."""
    return sum(d.count for d in demands)


def _recipes(mode: Mode | None, role: str) -> tuple[BandRecipe, ...]:
    if mode is None:
        return ()
    if role == "router":
        return mode.router.bands
    recipe = mode.role(role)
    return () if recipe is None else recipe.bands
