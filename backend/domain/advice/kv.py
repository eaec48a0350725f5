"""How many bytes of KV cache a prompt makes, from the model's configuration.

Sources of the formulas: attention keeps a key and a value of `head_dim` for each KV head of each
layer; multi-head latent attention keeps one latent of `kv_lora_rank` and one rotary key instead
(DeepSeek-V2, section 2.1); a sliding layer keeps no more than its window; a linear or state-space
layer keeps a state whose size does not grow with the prompt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backend.domain.rules.known import number_in
from backend.domain.words import both

WIDTHS: Mapping[str, float] = {
    "float32": 4, "float": 4, "bfloat16": 2, "float16": 2, "half": 2,
    "fp8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1, "fp8_inc": 1, "fp8_per_token_head": 1,
    "int8": 1, "int8_per_token_head": 1, "int4_per_token_head": 0.5, "nvfp4": 0.5625,
}  # fmt: skip
"""Bytes of one value by the engines' names of KV dtypes; scales beside the values are left out,
but for nvfp4, where they are a ninth of it."""
DS_MLA = 656.0
"""Bytes a token and layer of vLLM's `fp8_ds_mla`: 512 fp8 values, 16 of scales, 64 bf16 rotary."""
INDEXER = 4
"""Bytes of the scale beside each fp8 key of a sparse-attention indexer."""
FULL = ("full_attention", "attention", "global_attention", "global")
SLIDING = ("sliding_attention", "chunked_attention", "local_attention", "sliding", "local")
STATE = ("linear_attention", "mamba", "mamba2", "conv", "recurrent", "gated_deltanet", "kda")
UNTOLD = ("compress_ratios", "compress_rates", "hybrid_override_pattern")
"""Fields of layouts whose size the configuration alone does not tell."""


@dataclass(frozen=True)
class KvSize:
    """Bytes of KV of one request, all ranks together.

    `per_token` grows with every token, `windowed` with every token up to `window`, `fixed` is kept
    once a request. `copies` is how often a tensor-parallel member keeps the same bytes: its ranks
    repeat KV heads where there are fewer heads than ranks, and latent KV on every rank.
    """

    kind: str
    per_token: float
    windowed: float = 0.0
    window: int = 0
    fixed: float = 0.0
    copies: int = 1

    def of(self, tokens: float) -> float:
        """Bytes of a prompt of that many tokens, once."""
        return self.per_token * tokens + self.windowed * min(tokens, self.window) + self.fixed

    def moved(self, tokens: float) -> float:
        """Bytes that travel from a prefill to a decode for it: every rank fetches its own."""
        return self.of(tokens) * self.copies


class Untold(Exception):
    """The size cannot be told; `words` say why."""

    def __init__(self, en: str, zh: str, **values: object) -> None:
        self.words = both(en, zh, **values)
        super().__init__(self.words.en)


def kv_size(
    config: Mapping[str, Any], *, kv_dtype: str = "auto", dtype: str = "auto", tensor: int = 1
) -> KvSize:
    """The KV cache of a model. `tensor` is the tensor parallel size. Raises Untold."""
    for name in UNTOLD:
        if config.get(name):
            raise Untold(
                "the model's layers compress their KV ({name})",
                "模型的层会压缩 KV（{name}）",
                name=name,
            )
    layers = _number(config, "num_hidden_layers", "n_layer", "num_layers")
    width = _width(config, kv_dtype, dtype)
    kinds = _layer_kinds(config, layers)
    full = sum(k in FULL for k in kinds)
    sliding = sum(k in SLIDING for k in kinds)
    state = layers - full - sliding
    if config.get("kv_lora_rank"):
        return _latent(config, full or layers, kv_dtype, width, tensor)
    heads = _number(config, "num_attention_heads", "n_head", "num_heads")
    kv_heads = number_in(config, "num_key_value_heads", "num_kv_heads", "n_head_kv") or (
        1 if config.get("multi_query") else heads
    )
    head = number_in(config, "head_dim") or _number(config, "hidden_size", "n_embd") // heads
    one = 2 * kv_heads * head * width
    plain = "gqa" if kv_heads < heads else "mha"
    return KvSize(
        kind="hybrid" if state or sliding else plain,
        per_token=full * one,
        windowed=sliding * one,
        window=number_in(config, "sliding_window", "attention_chunk_size") or 0,
        fixed=state * _state(config) if state else 0.0,
        copies=max(1, tensor // kv_heads),
    )


def _latent(
    config: Mapping[str, Any], layers: int, kv_dtype: str, width: float, tensor: int
) -> KvSize:
    latent = _number(config, "kv_lora_rank") + _number(config, "qk_rope_head_dim")
    one = DS_MLA if kv_dtype == "fp8_ds_mla" else latent * width
    if config.get("index_topk") and (index := number_in(config, "index_head_dim")):
        one += index + INDEXER
    return KvSize(kind="mla", per_token=layers * one, copies=max(1, tensor))


def _width(config: Mapping[str, Any], kv_dtype: str, dtype: str) -> float:
    name = kv_dtype if kv_dtype != "auto" else dtype
    if name == "auto":
        name = str(config.get("torch_dtype") or config.get("dtype") or "")
    if name == "fp8_ds_mla":
        return 1
    width = WIDTHS.get(name.removeprefix("torch."))
    if width is None:
        if not name:
            raise Untold("no dtype is told", "未说明 dtype")
        raise Untold(
            "the size of KV dtype {name!r} is not known", "KV dtype {name!r} 的大小未知", name=name
        )
    return width


def _layer_kinds(config: Mapping[str, Any], layers: int) -> Sequence[str]:
    """The kind of every layer; without any word of it all keep full attention."""
    kinds = config.get("layer_types") or config.get("layers_block_type")
    if isinstance(kinds, list):
        strange = {str(k) for k in kinds} - {*FULL, *SLIDING, *STATE}
        if strange:
            names = ", ".join(sorted(strange))
            raise Untold(
                "the size of {names} layers is not known", "{names} 层的大小未知", names=names
            )
        if len(kinds) != layers:
            raise Untold(
                "layer_types names {told} of {layers} layers",
                "layer_types 只列出 {layers} 层中的 {told} 层",
                told=len(kinds),
                layers=layers,
            )
        return [str(k) for k in kinds]
    every = number_in(config, "full_attention_interval")
    if every:
        return ["full_attention" if (n + 1) % every == 0 else "mamba" for n in range(layers)]
    period = number_in(config, "attn_layer_period")
    if period:
        at = config.get("attn_layer_offset") or 0
        return ["full_attention" if n % period == at else "mamba" for n in range(layers)]
    if _windows(config):
        pattern = number_in(config, "sliding_window_pattern")
        if pattern:
            return [FULL[0] if (n + 1) % pattern == 0 else SLIDING[0] for n in range(layers)]
        return [SLIDING[0]] * layers
    return [FULL[0]] * layers


def _windows(config: Mapping[str, Any]) -> bool:
    return bool(config.get("sliding_window")) and config.get("use_sliding_window") is not False


def _state(config: Mapping[str, Any]) -> float:
    """Bytes of one layer's state: the recurrent matrices and the convolution's tail, in two-byte
    values. Raises Untold."""
    heads = number_in(config, "linear_num_value_heads", "mamba_num_heads")
    if heads is None:
        raise Untold(
            "the size of the model's recurrent state is not told", "未说明模型循环状态的大小"
        )
    key = number_in(config, "linear_key_head_dim", "ssm_state_size", "mamba_d_state") or 0
    value = number_in(config, "linear_value_head_dim", "mamba_head_dim") or 0
    keys = number_in(config, "linear_num_key_heads") or 0
    kernel = number_in(config, "linear_conv_kernel_dim", "conv_kernel", "mamba_d_conv") or 1
    inner = heads * value + 2 * keys * key
    return 2.0 * (heads * key * value + inner * (kernel - 1))


def _number(config: Mapping[str, Any], *names: str) -> int:
    found = number_in(config, *names)
    if found is None:
        raise Untold("the configuration does not tell {name}", "配置未说明 {name}", name=names[0])
    return found
