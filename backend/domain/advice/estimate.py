"""What a member does a second, estimated from the model's configuration and its cards' data sheet.

A roofline: prefill is bound by arithmetic (two operations a parameter and token), decode by memory
(the weights once a step, and the KV of every sequence). Real engines reach about half of the one
and six tenths of the other; the result is right within a factor of two, and said to be an estimate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from backend.domain.rules.known import number_in

PREFILL_SHARE = 0.5
DECODE_SHARE = 0.6
"""The parts of a card's arithmetic and memory bandwidth that engines reach."""
BATCH = 64
"""Sequences that a decode member is taken to hold at once, where nothing tells it."""

CARDS: tuple[tuple[str, float, float], ...] = (
    ("GB200", 2500, 8.0), ("B200", 2250, 8.0), ("B300", 2500, 8.0), ("H200", 989, 4.8),
    ("H800", 989, 3.35), ("H100 PCIe", 756, 2.0), ("H100", 989, 3.35), ("H20", 148, 4.0),
    ("A100", 312, 2.0), ("A800", 312, 2.0), ("L40S", 362, 0.864), ("L40", 181, 0.864),
    ("L20", 119, 0.864), ("L4", 121, 0.3), ("A10", 125, 0.6), ("RTX 4090", 165, 1.0),
    ("RTX 5090", 210, 1.79), ("910B4", 280, 0.8), ("910B", 313, 1.6), ("Ascend910", 376, 1.6),
)  # fmt: skip
"""Type name, dense bf16 TFLOP/s, TB/s; the first one contained in a card's name holds. Source: the
makers' data sheets."""


@dataclass(frozen=True)
class Rates:
    """Tokens a second that one member does alone; None where it cannot be told."""

    prefill: float | None = None
    decode: float | None = None


def estimated(
    config: Mapping[str, Any],
    card: str,
    *,
    ranks: int,
    kv_bytes: float,
    width: float = 2.0,
    batch: int = BATCH,
) -> Rates:
    """The rates of one member on `ranks` cards of that type; `kv_bytes` is one sequence's KV."""
    sheet = next(((f, b) for name, f, b in CARDS if name.lower() in card.lower()), None)
    sizes = parameters(config)
    if sheet is None or sizes is None or ranks < 1:
        return Rates()
    flops, bandwidth = sheet[0] * 1e12 * ranks, sheet[1] * 1e12 * ranks
    active, total = sizes
    read = min(total, active * batch) * width + batch * kv_bytes
    return Rates(
        prefill=PREFILL_SHARE * flops / (2 * active),
        decode=batch / (read / (DECODE_SHARE * bandwidth)),
    )


def parameters(config: Mapping[str, Any]) -> tuple[float, float] | None:
    """Parameters that one token passes through, and all of them; None where not told."""
    hidden, layers = _int(config, "hidden_size"), _int(config, "num_hidden_layers")
    heads = _int(config, "num_attention_heads")
    if not (hidden and layers and heads):
        return None
    attention = _attention(config, hidden, heads)
    dense = 3 * hidden * _int(config, "intermediate_size")
    experts = _int(config, "num_experts", "n_routed_experts", "num_local_experts")
    head = hidden * _int(config, "vocab_size")
    if not experts:
        size = layers * (attention + dense) + head
        return float(size), float(size + head)
    each = 3 * hidden * (_int(config, "moe_intermediate_size") or _int(config, "intermediate_size"))
    chosen = _int(config, "num_experts_per_tok") + _int(config, "n_shared_experts")
    first = _int(config, "first_k_dense_replace")
    fixed = layers * attention + first * dense + head
    sparse = layers - first
    all_ = fixed + head + sparse * each * (experts + _int(config, "n_shared_experts"))
    return float(fixed + sparse * each * chosen), float(all_)


def _attention(config: Mapping[str, Any], hidden: int, heads: int) -> int:
    latent = _int(config, "kv_lora_rank")
    if latent:
        rope, nope = _int(config, "qk_rope_head_dim"), _int(config, "qk_nope_head_dim")
        value, query = _int(config, "v_head_dim"), _int(config, "q_lora_rank")
        q = (
            hidden * query + query * heads * (nope + rope)
            if query
            else hidden * heads * (nope + rope)
        )
        return (
            q + hidden * (latent + rope) + latent * heads * (nope + value) + heads * value * hidden
        )
    head = _int(config, "head_dim") or hidden // heads
    kv = _int(config, "num_key_value_heads") or heads
    return 2 * hidden * heads * head + 2 * hidden * kv * head


def _int(config: Mapping[str, Any], *names: str) -> int:
    return number_in(config, *names) or 0
