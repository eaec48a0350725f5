"""How a model lays its KV cache out, read from its pretrained `config.json`, and what follows.

Ascend has one connector for standard layouts and one for hybrid ones. The choice is made from the
config alone, never from a name, and is stored with the group for the inputs it was made from: both
roles and every later member use the same, also when the config becomes readable only later.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from backend.domain.deployment import Spec
from backend.domain.engine_args import flatten, parse_json, value
from backend.domain.inherit import effective
from backend.domain.mode import Layout, LayoutFacts, Mode
from backend.domain.template import compact
from backend.domain.value import Value

Config = Mapping[str, Any]


class Chosen(Value):
    """A stored choice: the layout, the digest of what it was made from, and whether it was read
    from a config (`proven`) or is the mode's fallback."""

    layout: Layout
    inputs: str
    proven: bool


def is_recurrent(facts: LayoutFacts, config: Config) -> bool:
    """Whether the model, or a nested one, keeps recurrent state beside or instead of attention."""
    return any(_recurrent(facts, c) for c in _all(facts, config))


def layout_of(
    facts: LayoutFacts,
    config: Config | None,
    overrides: Config | None = None,
) -> Layout | None:
    """The layout that a pretrained config proves, `overrides` (`--hf-overrides`) merged over it.

    None where nothing is known. Overrides alone can prove a hybrid layout, never a standard one.
    """
    merged = {**(config or {}), **(overrides or {})}
    if not merged:
        return None
    if any(_hybrid(facts, c) for c in _all(facts, merged)):
        return "hybrid"
    return "standard" if config else None


def choose(
    mode: Mode,
    facts: LayoutFacts,
    spec: Spec,
    config: Config | None,
    stored: Chosen | None = None,
    override_flags: Sequence[str] = (),
) -> Chosen | None:
    """The variant of a mode that has several; None for a mode that has one connector.

    A `stored` choice for the same model inputs stands, whatever has become known since. An unknown
    layout takes the mode's default. `override_flags` are the engine's spellings for overrides.
    """
    if not mode.variants or mode.default_variant is None:
        return None
    inputs = model_inputs(spec)
    if stored is not None and stored.inputs == inputs and stored.layout in mode.variants:
        return stored
    found = layout_of(facts, config, read_overrides(spec, override_flags))
    proven = found is not None and found in mode.variants
    layout = found if found is not None and proven else mode.default_variant
    return Chosen(layout=layout, inputs=inputs, proven=proven)


def model_inputs(spec: Spec) -> str:
    """Digest of what the choice depends on: the model and prefill's own parameters."""
    seen = [spec.model, *flatten(effective(spec, "prefill").parameters)]
    return hashlib.sha256(compact(seen).encode()).hexdigest()


def read_overrides(spec: Spec, flags: Sequence[str]) -> Config | None:
    """Prefill's config overrides as an object; None where it writes none or they are no object."""
    text = value(flatten(effective(spec, "prefill").parameters), *flags) if flags else None
    try:
        found = parse_json(text) if text else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _all(facts: LayoutFacts, config: Config) -> Iterator[Config]:
    yield config
    for name in facts.nested:
        inner = config.get(name)
        if isinstance(inner, Mapping):
            yield from _all(facts, inner)


def _hybrid(facts: LayoutFacts, config: Config) -> bool:
    if _recurrent(facts, config):
        return True
    if any(_compressed(config.get(name)) for name in facts.compressed_fields):
        return True
    if str(config.get("model_type", "")).lower() in facts.hybrid_model_types:
        return True
    architectures = config.get("architectures")
    names = architectures if isinstance(architectures, list | tuple) else ()
    return bool(facts.hybrid_architectures) and any(
        str(name).startswith(facts.hybrid_architectures) for name in names
    )


def _recurrent(facts: LayoutFacts, config: Config) -> bool:
    for name in facts.layer_fields:
        kinds = config.get(name)
        if isinstance(kinds, list | tuple) and any(k not in facts.attention_layers for k in kinds):
            return True
    pattern = config.get(facts.pattern_field) if facts.pattern_field else None
    if isinstance(pattern, str) and facts.pattern_letter in pattern.lower():
        return True
    return any(config.get(name) for name in facts.recurrent_fields)


def _compressed(ratios: Any) -> bool:
    found = ratios if isinstance(ratios, list | tuple) else [ratios]
    return any(isinstance(r, int | float) and not isinstance(r, bool) and r > 0 for r in found)
