"""How long a context a role really serves: what it writes, else what its model is made for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from backend.domain.engine_args import parse_length
from backend.domain.rules.sides import Side

LENGTH_FIELDS = (
    "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "max_sequence_length",
    "max_seq_length", "seq_len",
)  # fmt: skip
"""Where a configuration says what the model is made for; the smallest one holds."""
SCALING_FIELDS = ("rope_scaling", "rope_parameters")
NEUTRAL_SCALING = frozenset({"default", "llama3", "longrope", "su", "mrope"})
"""Position scalings that leave the length as it is written."""


@dataclass(frozen=True)
class Length:
    """A context length in tokens, or None with the reason why it is not known.

    `known`: written, or from the model's configuration; `auto`: the engine fits it to its memory;
    `silent`: not written and the model is not known; `unreadable`: not a length.
    """

    kind: Literal["known", "auto", "silent", "unreadable"]
    tokens: int | None
    text: str | None

    @property
    def shown(self) -> str | None:
        """As written, with the number it means where that is not plain."""
        if self.tokens is None or self.text is None or self.text == str(self.tokens):
            return self.text if self.tokens is None else str(self.tokens)
        return f"{self.text} ({self.tokens})"


def length_of(side: Side) -> Length:
    """The effective context length of a role."""
    written = side.written("max_model_len")
    if written is None or written.value is None:
        tokens = derived_length(side)
        return Length("silent" if tokens is None else "known", tokens, None)
    text = written.value.strip()
    try:
        tokens = parse_length(text)
    except ValueError:
        return Length("unreadable", None, text)
    return Length("auto" if tokens is None else "known", tokens, text)


def derived_length(side: Side) -> int | None:
    """What the model is made for, in tokens; None where it is not known, or where its positions
    are scaled in a way that engines work out differently."""
    config = side.config
    if config is None or any(_scaled(config.get(f)) for f in SCALING_FIELDS):
        return None
    found = [n for f in LENGTH_FIELDS if (n := side.number(f)) is not None]
    return min(found, default=None)


def _scaled(scaling: Any) -> bool:
    if not isinstance(scaling, Mapping):
        return scaling is not None
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if "full_attention" in scaling:  # one for each kind of layer
        return True
    return kind not in NEUTRAL_SCALING and scaling.get("factor") not in (None, 1)
