"""KV sizes against published ones, and layouts whose size cannot be told."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.domain.advice.estimate import estimated, parameters
from backend.domain.advice.kv import Untold, kv_size

LLAMA_8B = {
    "torch_dtype": "bfloat16", "hidden_size": 4096, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
    "vocab_size": 128256,
}  # fmt: skip
LLAMA_70B = {
    **LLAMA_8B, "hidden_size": 8192, "num_hidden_layers": 80, "num_attention_heads": 64,
    "intermediate_size": 28672,
}  # fmt: skip
LLAMA2_7B = {**LLAMA_8B, "torch_dtype": "float16", "num_key_value_heads": 32}
QWEN3_32B = {
    "dtype": "bfloat16", "hidden_size": 5120, "num_hidden_layers": 64, "num_attention_heads": 64,
    "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 25600, "vocab_size": 151936,
}  # fmt: skip
DEEPSEEK_V3 = {
    "torch_dtype": "bfloat16", "hidden_size": 7168, "num_hidden_layers": 61,
    "num_attention_heads": 128, "num_key_value_heads": 128, "kv_lora_rank": 512,
    "q_lora_rank": 1536, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128,
    "intermediate_size": 18432, "moe_intermediate_size": 2048, "n_routed_experts": 256,
    "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 3,
    "vocab_size": 129280,
}  # fmt: skip
GPT_OSS_120B = {
    "torch_dtype": "bfloat16", "hidden_size": 2880, "num_hidden_layers": 36,
    "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "sliding_window": 128,
    "layer_types": ["sliding_attention", "full_attention"] * 18,
}  # fmt: skip
QWEN3_NEXT = {
    "torch_dtype": "bfloat16", "hidden_size": 2048, "num_hidden_layers": 48,
    "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256,
    "full_attention_interval": 4, "linear_num_value_heads": 32, "linear_num_key_heads": 16,
    "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4,
}  # fmt: skip
KIB = 1024


@pytest.mark.parametrize(
    ("config", "kv_dtype", "kind", "bytes_"),
    [
        (LLAMA_8B, "auto", "gqa", 128 * KIB),
        (LLAMA_8B, "fp8", "gqa", 64 * KIB),
        (LLAMA_8B, "float32", "gqa", 256 * KIB),
        (LLAMA_70B, "auto", "gqa", 320 * KIB),
        (LLAMA2_7B, "auto", "mha", 512 * KIB),
        (QWEN3_32B, "auto", "gqa", 256 * KIB),
        (QWEN3_32B, "fp8_e4m3", "gqa", 128 * KIB),
        (DEEPSEEK_V3, "auto", "mla", 70272),  # 61 layers of 576 values
        (DEEPSEEK_V3, "fp8_ds_mla", "mla", 61 * 656),
    ],
)
def test_published_sizes(config: dict[str, Any], kv_dtype: str, kind: str, bytes_: float) -> None:
    size = kv_size(config, kv_dtype=kv_dtype)
    assert (size.kind, size.per_token, size.of(1000)) == (kind, bytes_, 1000 * bytes_)


def test_sliding_layers_keep_their_window_and_no_more() -> None:
    size = kv_size(GPT_OSS_120B)
    assert (size.kind, size.per_token, size.windowed) == ("hybrid", 36 * KIB, 36 * KIB)
    assert size.of(100) == 100 * 72 * KIB
    assert size.of(10_000) == 10_000 * 36 * KIB + 128 * 36 * KIB


def test_recurrent_layers_keep_a_state_that_does_not_grow() -> None:
    size = kv_size(QWEN3_NEXT)
    assert size.per_token == 12 * 2 * 2 * 256 * 2
    one = 2 * (32 * 128 * 128 + (32 * 128 + 2 * 16 * 128) * 3)
    assert size.fixed == 36 * one
    assert size.of(2000) - size.of(1000) == 1000 * size.per_token


@pytest.mark.parametrize(
    ("config", "tensor", "copies"),
    [
        (LLAMA_8B, 1, 1),
        (LLAMA_8B, 8, 1),
        (LLAMA_8B, 16, 2),
        (DEEPSEEK_V3, 8, 8),
        (QWEN3_NEXT, 8, 4),
    ],
)
def test_ranks_beyond_the_heads_move_the_same_again(
    config: dict[str, Any], tensor: int, copies: int
) -> None:
    size = kv_size(config, tensor=tensor)
    assert size.copies == copies
    assert size.moved(10) == copies * size.of(10)


@pytest.mark.parametrize(
    ("config", "kv_dtype", "why"),
    [
        ({}, "auto", "num_hidden_layers"),
        ({**LLAMA_8B, "torch_dtype": None}, "auto", "no dtype is told"),
        (LLAMA_8B, "turbo", "KV dtype 'turbo' is not known"),
        ({**LLAMA_8B, "layer_types": ["odd"] * 32}, "auto", "odd layers"),
        ({**LLAMA_8B, "layer_types": ["full_attention"]}, "auto", "names 1 of 32 layers"),
        ({**LLAMA_8B, "compress_ratios": [4] * 32}, "auto", "compress their KV"),
        ({**LLAMA_8B, "layer_types": ["mamba"] * 32}, "auto", "recurrent state"),
        ({"num_hidden_layers": 2, "torch_dtype": "half"}, "auto", "num_attention_heads"),
    ],
)
def test_what_is_not_told_is_not_guessed(config: dict[str, Any], kv_dtype: str, why: str) -> None:
    with pytest.raises(Untold, match=why):
        kv_size(config, kv_dtype=kv_dtype)


@pytest.mark.parametrize(
    ("config", "active", "total"),
    [(LLAMA_8B, 7.5e9, 8.03e9), (LLAMA_70B, 69.5e9, 70.6e9), (QWEN3_32B, 32e9, 32.8e9),
     (DEEPSEEK_V3, 37e9, 671e9)],
)  # fmt: skip
def test_parameters_are_counted_within_a_twentieth(
    config: dict[str, Any], active: float, total: float
) -> None:
    found = parameters(config)
    assert found is not None
    assert found[0] == pytest.approx(active, rel=0.05)
    assert found[1] == pytest.approx(total, rel=0.05)


def test_estimates_have_the_right_magnitude_and_are_left_out_for_unknown_cards() -> None:
    kv = kv_size(LLAMA_8B).of(1500)
    rates = estimated(LLAMA_8B, "NVIDIA H100 80GB HBM3", ranks=1, kv_bytes=kv)
    assert rates.prefill is not None
    assert rates.decode is not None
    assert 15_000 < rates.prefill < 60_000
    assert 1_500 < rates.decode < 8_000
    assert estimated(LLAMA_8B, "Sim 80G", ranks=1, kv_bytes=kv).prefill is None
    assert estimated({}, "H100", ranks=1, kv_bytes=kv).decode is None


@given(
    st.dictionaries(
        st.sampled_from([*DEEPSEEK_V3, *QWEN3_NEXT, *GPT_OSS_120B, "attn_layer_period"]),
        st.one_of(st.none(), st.integers(-3, 200), st.booleans(), st.text(max_size=9),
                  st.lists(st.sampled_from(["full_attention", "mamba", "x"]), max_size=4)),
    )
)  # fmt: skip
def test_any_configuration_has_a_size_or_a_reason(config: dict[str, Any]) -> None:
    try:
        assert kv_size(config, tensor=3).of(10) >= 0
    except Untold:
        return
