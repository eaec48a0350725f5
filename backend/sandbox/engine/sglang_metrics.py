"""The engine's metrics in SGLang's spelling."""

from __future__ import annotations

import copy
from collections.abc import Mapping

from backend.sandbox.engine.metrics import Metrics
from backend.sandbox.engine.transfer import Family

_NAMES = {
    "running": "num_running_reqs",
    "waiting": "num_queue_reqs",
    "cache_usage": "token_usage",
    "prompt_tokens": "prompt_tokens_total",
    "generation_tokens": "generation_tokens_total",
    "cached": "cached_tokens_total",
    "first_token": "time_to_first_token_seconds",
    "next_token": "inter_token_latency_seconds",
    "e2e": "e2e_request_latency_seconds",
}
"""What is counted here as in vLLM, by SGLang's name for it."""


class SglangMetrics(Metrics):
    """The same counts under SGLang's names and labels."""

    def __init__(self, model: str, family: Family | None, info: Mapping[str, str]) -> None:
        super().__init__(model, family, info)
        self._common = {"engine_type": "unified", "model_name": model, "pp_rank": "0",
                        "tp_rank": "0"}  # fmt: skip

    def render(self) -> str:
        """All of them, as /metrics shows them."""
        lines: list[str] = []
        for family in self.transfer.families:
            lines += family.render(self._common)
        for attribute, name in _NAMES.items():
            shown = copy.copy(getattr(self, attribute))
            shown.name = f"sglang:{name}"
            lines += shown.render(self._common)
        return "\n".join(lines) + "\n"
