"""What one rule is asked about: a document, what is known beside it, and its two sides."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from backend.domain.deployment import Deployment, Spec
from backend.domain.inherit import effective, plain
from backend.domain.mode import Mode
from backend.domain.rules.known import Known
from backend.domain.rules.sides import Side


@dataclass(frozen=True)
class Subject:
    """A document with what is known; everything derived is derived once."""

    document: Deployment
    known: Known

    @property
    def spec(self) -> Spec:
        """The document's spec."""
        return self.document.spec

    @cached_property
    def mode(self) -> Mode | None:
        """The mode; None without disaggregation, or where the catalogue lacks it."""
        pd = self.spec.disaggregation
        return self.known.catalogue.modes.get(pd.mode) if pd else None

    @property
    def paired(self) -> bool:
        """Whether there are two sides to compare."""
        return self.mode is not None

    @cached_property
    def prefill(self) -> Side:
        """The prefill side."""
        return self._side("prefill")

    @cached_property
    def decode(self) -> Side:
        """The decode side."""
        return self._side("decode")

    @cached_property
    def sides(self) -> tuple[Side, ...]:
        """Every role that runs engines."""
        if self.spec.disaggregation is not None:
            return (self.prefill, self.decode)
        catalogue, known = self.known.catalogue, self.known
        return (Side(plain(self.spec), self.spec, None, catalogue, known),)

    def _side(self, name: str) -> Side:
        role = effective(self.spec, "prefill" if name == "prefill" else "decode")
        return Side(role, self.spec, self.mode, self.known.catalogue, self.known)

    def compares(self, factor: str) -> bool:
        """Whether the mode says that both sides must share the factor."""
        pairing = self.mode.pairing if self.mode else None
        return pairing is not None and factor in (*pairing.must_agree, *pairing.handshake)

    def path(self, factor: str = "", field: str = "parameters") -> str:
        """Where a difference is best mended: in what a role set for itself, decode's first, then
        in the deployment's; the flag itself where it is written there."""
        ordered = (self.decode, self.prefill)
        for side in ordered:
            written = side.written(factor) if factor else None
            if written is not None and written.path.startswith(f"spec.roles.{side.name}."):
                return written.path
            if field not in side.role.inherited:
                return side.path(field)
        found = (side.written(factor) for side in ordered) if factor else ()
        return next((w.path for w in found if w is not None), f"spec.{field}")

    def env_path(self, name: str) -> str:
        """A variable where a role sets it for itself, decode's first, else the deployment's."""
        own = [side for side in (self.decode, self.prefill) if "env" not in side.role.inherited]
        for side in own:
            if name in side.role.env:
                return f"spec.roles.{side.name}.env.{name}"
        return own[0].path("env") if own else f"spec.env.{name}"
