"""Rules on the model as the hosts have it: everywhere the same, and everywhere there."""

from __future__ import annotations

from collections.abc import Iterator

from backend.domain.errors import Problem
from backend.domain.rules.known import ModelSeen
from backend.domain.rules.subject import Subject
from backend.domain.rules.words import finding


def _seen(s: Subject) -> dict[str, ModelSeen]:
    """The model on every host that a member may run on, where it was looked for."""
    return {h: m for side in s.sides for h, m in s.known.models_of(side.role, side.model)}


def model_digest(s: Subject) -> Iterator[Problem]:
    """Hosts that have the model at the same path have the same configuration and weights."""
    if s.prefill.model != s.decode.model:
        return
    found = {h: m for h, m in sorted(_seen(s).items()) if m.state == "found"}
    for case in ("config", "weights"):
        digests = {
            h: d for h, m in found.items() if (d := getattr(m, f"{case}_digest"))
        }  # fmt: skip
        first = next(iter(digests.items()), None)
        other = next(((h, d) for h, d in digests.items() if first and d != first[1]), None)
        if first and other:
            yield finding(
                "pairing.model_digest", case, "spec.model", model=s.prefill.model,
                host=first[0], digest=first[1][:12],
                other_host=other[0], other_digest=other[1][:12],
            )  # fmt: skip
            return


def model_missing(s: Subject) -> Iterator[Problem]:
    """A model named by a path is there on the hosts that members may run on."""
    for side in s.sides:
        if not side.model.startswith("/"):
            continue
        found = dict(s.known.models_of(side.role, side.model))
        lacking = [h for h, m in found.items() if m.state == "missing"]
        if not lacking:
            continue
        there = [h for h, m in found.items() if m.state == "found"]
        proven = len(lacking) == len(s.known.eligible(side.role))
        path = side.flag("--model", "--model-path")
        yield finding(
            "host.model_missing", "nowhere" if proven else "somewhere",
            path.path if path else "spec.model", "refused" if proven else "warning",
            role=side.name, model=side.model, hosts=lacking, there=there or ["-"],
        )  # fmt: skip
