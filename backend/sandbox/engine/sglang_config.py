"""The command line of `python3 -m sglang.launch_server`, as far as it decides anything here."""

from __future__ import annotations

import argparse
import json
import os
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from backend.sandbox.engine.config import EngineConfig, read_model
from backend.sandbox.engine.failures import StartFailure
from backend.sandbox.engine.transfer import KvTransfer

VERSION = "0.5.10"
_BACKENDS = ("mooncake", "nixl", "ascend", "fake", "mori")
_BOOTSTRAP_S = 300.0
_SAID = "usage: launch_server.py [-h] --model-path MODEL_PATH [options]\nlaunch_server.py: error: "
_WITH_VALUE = (
    "--tokenizer-path", "--quantization", "--schedule-policy", "--chunked-prefill-size",
    "--max-prefill-tokens", "--attention-backend", "--json-model-override-args", "--log-level",
    "--hicache-size", "--hicache-ratio", "--hicache-write-policy", "--hicache-io-backend",
    "--lmcache-config-file", "--disaggregation-ib-device", "--speculative-algorithm",
    "--cuda-graph-max-bs", "--watchdog-timeout", "--api-key", "--moe-a2a-backend",
)  # fmt: skip
_WITHOUT = (
    "--enable-metrics", "--trust-remote-code", "--disable-cuda-graph", "--disable-radix-cache",
    "--enable-hierarchical-cache", "--enable-lmcache", "--enable-dp-attention",
    "--enable-mixed-chunk", "--skip-server-warmup", "--log-requests", "--enable-cache-report",
    "--disable-overlap-schedule",
)  # fmt: skip


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise StartFailure(f"{_SAID}{message}\n", 2)


def _parser() -> _Parser:
    parser = _Parser(prog="launch_server.py", add_help=False, allow_abbrev=False)
    parser.add_argument("--model-path", "--model", required=True)
    parser.add_argument("--served-model-name")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=30000)
    parser.add_argument("--context-length", type=int)
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--kv-cache-dtype", default="auto")
    parser.add_argument("--page-size", type=int, default=1)
    parser.add_argument("--mem-fraction-static", type=float, default=0.9)
    parser.add_argument("--max-running-requests", type=int, default=256)
    for short in ("tp", "dp", "pp"):
        long = {"tp": "tensor", "dp": "data", "pp": "pipeline"}[short]
        parser.add_argument(
            f"--{long}-parallel-size", f"--{short}-size", f"--{short}",
            type=int, default=1, dest=short,
        )  # fmt: skip
    parser.add_argument(
        "--disaggregation-mode", choices=["null", "prefill", "decode"], default="null"
    )
    parser.add_argument("--disaggregation-bootstrap-port", type=int, default=8998)
    parser.add_argument("--disaggregation-transfer-backend", choices=_BACKENDS, default="mooncake")
    for flag in _WITH_VALUE:
        parser.add_argument(flag)
    for flag in _WITHOUT:
        parser.add_argument(flag, action="store_true")
    return parser


def build(argv: Sequence[str], env: Mapping[str, str] = os.environ) -> EngineConfig:
    """The engine's config. Raises StartFailure where SGLang refuses to start."""
    args = _parser().parse_args(list(argv))
    model = read_model(args.model_path)
    longest = args.context_length or model.longest
    if longest > model.longest and env.get("SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN") != "1":
        raise _raised(
            f"ValueError: User-specified context_length ({longest}) is greater than the derived "
            f"context_length ({model.longest}). This may lead to incorrect model outputs or CUDA "
            "errors. To allow overriding this maximum, set the env var "
            "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1"
        )
    visible = env.get("CUDA_VISIBLE_DEVICES", "")
    count = len(visible.split(",")) if visible else args.tp
    if args.tp > count:
        raise _raised(
            f"AssertionError: tp_size {args.tp} needs as many visible GPUs, there are {count}"
        )
    return EngineConfig(
        model=model,
        names=(args.served_model_name or args.model_path,),
        host=args.host,
        port=args.port,
        max_model_len=longest,
        given={k: v for k, v in vars(args).items() if v},
        tp=args.tp,
        block_size=args.page_size,
        dtype=model.dtype if args.dtype == "auto" else args.dtype,
        cache_dtype=args.kv_cache_dtype,
        max_num_seqs=args.max_running_requests,
        prefix_caching=not args.disable_radix_cache,
        api_keys=(args.api_key,) if args.api_key else (),
        kv=_transfer(args, env),
        flavor="sglang",
        shows_metrics=args.enable_metrics,
    )


def _transfer(args: argparse.Namespace, env: Mapping[str, str]) -> KvTransfer | None:
    if args.disaggregation_mode == "null":
        return None
    producer = args.disaggregation_mode == "prefill"
    return KvTransfer(
        connector=args.disaggregation_transfer_backend,
        role="kv_producer" if producer else "kv_consumer",
        engine_id=str(uuid.uuid4()),
        family="sglang",
        lease_s=float(env.get("SGLANG_DISAGGREGATION_BOOTSTRAP_TIMEOUT") or _BOOTSTRAP_S),
        side_host=args.host,
        side_port=args.disaggregation_bootstrap_port,
    )


def _raised(error: str) -> StartFailure:
    return StartFailure(
        "Traceback (most recent call last):\n"
        '  File "<frozen runpy>", line 198, in _run_module_as_main\n'
        f'  File "sglang/launch_server.py", line 29, in <module>\n{error}\n'
    )


def shown(config: EngineConfig) -> dict[str, Any]:
    """`/get_server_info`: the arguments in effect, and what else people read there."""
    given: dict[str, Any] = json.loads(json.dumps(dict(config.given), default=str))
    return {
        **given,
        "served_model_name": config.names[0],
        "tp_size": config.tp,
        "max_total_num_tokens": config.cache_tokens,
        "version": VERSION,
        "internal_states": [{"effective_max_running_requests_per_dp": config.max_num_seqs}],
    }
