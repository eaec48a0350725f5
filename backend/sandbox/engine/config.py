"""What one engine was started to be: flags, environment and the model's own config, checked.

The checks and their messages are those of vLLM 0.32.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from backend.sandbox.engine.failures import invalid, raised
from backend.sandbox.engine.transfer import KvTransfer, kv_transfer

VERSION = "0.32.0"
_CACHE_TOKENS = 291_271
"""KV cache tokens of the imagined accelerator at a memory utilisation of 1."""


@dataclass(frozen=True)
class Model:
    """What of the model's config.json matters here. `found` is False for a hub id."""

    name: str
    found: bool = False
    architecture: str = "Qwen3ForCausalLM"
    heads: int = 32
    kv_heads: int = 8
    head_dim: int = 128
    layers: int = 36
    longest: int = 40960
    dtype: str = "bfloat16"


@dataclass(frozen=True)
class EngineConfig:
    """Everything that decides how the engine behaves.

    `without` names a connector whose library the imagined image lacks.
    """

    model: Model
    names: tuple[str, ...]
    host: str
    port: int
    max_model_len: int
    given: Mapping[str, Any]
    tp: int = 1
    block_size: int = 16
    dtype: str = "bfloat16"
    cache_dtype: str = "auto"
    attention: str = "FLASH_ATTN"
    hybrid_manager: bool = True
    max_num_seqs: int = 256
    prefix_caching: bool = True
    cache_tokens: int = 262144
    shutdown_timeout: int = 0
    ready_timeout_s: float = 600.0
    speculative: str = ""
    api_keys: tuple[str, ...] = ()
    kv: KvTransfer | None = None
    without: str = ""
    flavor: Literal["vllm", "sglang"] = "vllm"
    shows_metrics: bool = True

    def compat_hash(self) -> str:
        """Digest of what two NIXL peers must agree on; the model's path is one of it."""
        mode = "push" if self.kv and "Push" in self.kv.connector else "pull"
        factors = [
            VERSION, "nixl-1", self.model.name, self.dtype, self.model.kv_heads,
            self.model.head_dim, self.model.layers, self.attention, self.cache_dtype,
            self.hybrid_manager, self.speculative, mode,
        ]  # fmt: skip
        return hashlib.sha256(json.dumps(factors).encode()).hexdigest()


def read_model(name: str) -> Model:
    """The model at a path of this host, or a hub id's defaults.

    Raises StartFailure when it is a path and holds no readable config.json.
    """
    path = Path(name)
    if not (name.startswith((".", "/", "~")) or path.is_dir()):
        return Model(name)
    try:
        data = json.loads((path / "config.json").read_text())
    except (OSError, ValueError):
        raise raised(
            f"ValueError: Invalid repository ID or local directory specified: '{name}'.\n"
            "Please verify the following requirements:\n"
            "1. Provide a valid Hugging Face repository ID.\n"
            "2. Specify a local directory that contains a recognized configuration file.\n"
            "   - For Hugging Face models: ensure the presence of a 'config.json'.\n"
            "   - For Mistral models: ensure the presence of a 'params.json'."
        ) from None
    text = data.get("text_config", data)
    plain = Model(name)
    heads = int(text.get("num_attention_heads", plain.heads))
    hidden = int(text.get("hidden_size", heads * plain.head_dim))
    return Model(
        name,
        True,
        (data.get("architectures") or [plain.architecture])[0],
        heads,
        int(text.get("num_key_value_heads") or heads),
        int(text.get("head_dim") or hidden // heads),
        int(text.get("num_hidden_layers", plain.layers)),
        int(text.get("max_position_embeddings", plain.longest)),
        str(data.get("dtype") or data.get("torch_dtype") or plain.dtype),
    )


def build(args: Mapping[str, Any], env: Mapping[str, str]) -> EngineConfig:
    """The engine's config. Raises StartFailure where vLLM refuses to start."""
    host = args.get("host") or "0.0.0.0"  # noqa: S104 (vLLM's default)
    kv = kv_transfer(args.get("kv_transfer_config"), env, host)
    name = args.get("model_tag") or args.get("model") or "Qwen/Qwen3-0.6B"
    model = read_model(name)
    tp = args.get("tensor_parallel_size") or 1
    dtype = args.get("dtype") or "auto"
    return EngineConfig(
        model=model,
        names=tuple(args.get("served_model_name") or [name]),
        host=host,
        port=8000 if args.get("port") is None else args["port"],
        max_model_len=_longest(args.get("max_model_len"), model, env),
        given={k: v for k, v in args.items() if v is not None},
        tp=_checked_tp(tp, model, env),
        block_size=args.get("block_size") or 16,
        dtype={"auto": model.dtype, "half": "float16", "float": "float32"}.get(dtype, dtype),
        cache_dtype=args.get("kv_cache_dtype") or "auto",
        attention=_backend(args.get("attention_backend")),
        hybrid_manager=not args.get("disable_hybrid_kv_cache_manager"),
        max_num_seqs=args.get("max_num_seqs") or 256,
        prefix_caching=args.get("enable_prefix_caching") is not False,
        cache_tokens=int(_CACHE_TOKENS * float(args.get("gpu_memory_utilization") or 0.92)),
        shutdown_timeout=args.get("shutdown_timeout") or 0,
        ready_timeout_s=float(env.get("VLLM_ENGINE_READY_TIMEOUT_S") or 600),
        speculative=str(args.get("speculative_config") or ""),
        api_keys=tuple(args.get("api_key") or [k for k in [env.get("VLLM_API_KEY")] if k]),
        kv=kv,
    )


def _backend(name: str | None) -> str:
    return "FLASH_ATTN" if name is None or name.lower() == "auto" else name.upper()


def _longest(asked: int | None, model: Model, env: Mapping[str, str]) -> int:
    if asked is None:
        return model.longest
    if asked > model.longest and env.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN") != "1":
        raise invalid(
            "ModelConfig",
            f"User-specified max_model_len ({asked}) is greater than the derived max_model_len "
            f"(max_position_embeddings={float(model.longest)} or model_max_length=None in model's "
            "config.json). To allow overriding this maximum, set the env var "
            "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1. VLLM_ALLOW_LONG_MAX_MODEL_LEN must be used with "
            "extreme caution. If the model uses relative position encoding (RoPE), positions "
            "exceeding derived_max_model_len lead to nan. If the model uses absolute position "
            "encoding, positions exceeding derived_max_model_len will cause a CUDA array "
            "out-of-bounds error.",
        )
    return asked


def _checked_tp(tp: int, model: Model, env: Mapping[str, str]) -> int:
    visible = env.get("CUDA_VISIBLE_DEVICES") or env.get("ASCEND_RT_VISIBLE_DEVICES")
    count = len(visible.split(",")) if visible else tp
    if tp > count:
        raise invalid(
            "ParallelConfig",
            f"World size ({tp}) is larger than the number of available GPUs ({count}) in this "
            "node. If this is intentional and you are using:\n- ray, set "
            "'--distributed-executor-backend ray'.\n- multiprocessing, set '--nnodes' "
            "appropriately.",
        )
    if model.heads % tp:
        raise invalid(
            "VllmConfig",
            f"Total number of attention heads ({model.heads}) must be divisible by tensor "
            f"parallel size ({tp}).",
        )
    return tp


def from_environment(args: Mapping[str, Any]) -> EngineConfig:
    """`build` with this process's own environment."""
    return build(args, os.environ)
