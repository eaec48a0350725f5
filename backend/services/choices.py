"""Which modes a deployment may take, on the hosts as they were last seen."""

from __future__ import annotations

from collections.abc import Collection

from backend.domain.caches import attached
from backend.domain.deployment import Deployment, Disaggregation, Spec
from backend.domain.host import Vendor
from backend.domain.inherit import roles_of
from backend.domain.mode import Mode, membership
from backend.domain.picker import Choice, choices, version_warnings
from backend.domain.placement import selects
from backend.domain.views import ModeChoice
from backend.reconcile.world import World


class Choices:
    """Answers a picker: every mode, eligible or not and why, and which one is recommended."""

    def __init__(self, world: World) -> None:
        self._world = world

    def of_engine(self, engine: str, vendor: Vendor | None = None) -> tuple[ModeChoice, ...]:
        """For an engine, on hosts of `vendor`, or on whatever the inventory has.

        Raises NotFound for an engine that is not there.
        """
        catalogue = self._world.catalogue()
        catalogue.engine(engine)
        vendors = {vendor} if vendor else self._vendors(None)
        return tuple(self._shown(c) for c in choices(catalogue, engine, vendors))

    def of_document(self, document: Deployment) -> tuple[ModeChoice, ...]:
        """For a draft: its engine, the hosts it may use, and what its versions are worth saying."""
        catalogue, spec = self._world.catalogue(), document.spec
        caches = attached(document, self._world.store.caches)
        provider = next((c.spec.provider for c in caches.values()), "")
        found = []
        for choice in choices(catalogue, spec.engine, self._vendors(spec)):
            shown = self._shown(choice, spec)
            if not choice.why_not:
                pd = spec.disaggregation or Disaggregation(mode=choice.mode)
                update = {"disaggregation": pd.model_copy(update={"mode": choice.mode})}
                problems = version_warnings(catalogue, spec.model_copy(update=update), provider)
                said = tuple(p.sentence() for p in problems)
                shown = shown.model_copy(update={"warnings": said})
            found.append(shown)
        return tuple(found)

    def _shown(self, choice: Choice, spec: Spec | None = None) -> ModeChoice:
        mode: Mode = self._world.catalogue().mode(choice.mode)
        told = mode.router.membership_update
        if spec is not None and spec.disaggregation is not None:
            found = membership(mode, spec)
            told = "manual" if found == "manual" else told
        return ModeChoice(
            mode=choice.mode,
            title=mode.title,
            why_not=choice.why_not,
            recommended=choice.recommended,
            membership=told,
        )

    def _vendors(self, spec: Spec | None) -> Collection[Vendor] | None:
        """Vendors of the accelerators of the hosts that members may use; None where no host of
        them was looked at."""
        world = self._world
        selectors = [r.hosts for r in roles_of(spec) if r.name != "router"] if spec else [None]
        vendors: set[Vendor] = set()
        looked = False
        for name, host in world.store.hosts.items():
            facts = world.hosts.sight(name).facts
            if facts is None or not any(selects(s, name, host.labels) for s in selectors):
                continue
            looked = True
            vendors |= {a.vendor for a in facts.accelerators}
        return vendors if looked else None
