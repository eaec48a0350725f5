"""The engine's metrics, in vLLM 0.32's spelling."""

from __future__ import annotations

from collections.abc import Mapping

from backend.sandbox.engine.series import Counts, Histogram, labels_of
from backend.sandbox.engine.transfer import Family
from backend.sandbox.engine.transfer_metrics import for_family

_SECONDS = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0,
    240.0, 480.0, 960.0, 1920.0, 7680.0,
)  # fmt: skip
_FIRST_TOKEN = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
    20.0, 40.0, 80.0, 160.0, 640.0, 2560.0,
)  # fmt: skip
_NEXT_TOKEN = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
    20.0, 40.0, 80.0,
)  # fmt: skip
_LENGTHS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000)

SOURCES = ("local_compute", "local_cache_hit", "external_kv_transfer")
CACHED_SOURCES = ("device", "host", "p2p", "disk", "external_unspecified")
REASONS = ("stop", "length", "abort", "error", "repetition")


class Metrics:
    """Every metric of one engine; `family` decides which of them count transfers."""

    def __init__(self, model: str, family: Family | None, info: Mapping[str, str]) -> None:
        self._common = {"engine": "0", "model_name": model}
        self._info = dict(info)
        self.transfer = for_family(family)
        self._plain()

    def _plain(self) -> None:
        gauge = self._gauge
        self.running = gauge("num_requests_running", "Number of requests in execution.")
        self.waiting = gauge("num_requests_waiting", "Number of requests waiting.")
        self.cache_usage = gauge("kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent.")
        self.prefix_queries = self._counter("prefix_cache_queries", "Tokens looked up.")
        self.prefix_hits = self._counter("prefix_cache_hits", "Tokens found.")
        self.external_queries = self._counter("external_prefix_cache_queries", "Tokens looked up.")
        self.external_hits = self._counter("external_prefix_cache_hits", "Tokens found.")
        self.preemptions = self._counter("num_preemptions", "Preemptions.")
        self.prompt_tokens = self._counter("prompt_tokens", "Prefill tokens processed.")
        self.by_source = self._counter(
            "prompt_tokens_by_source", "Prompt tokens by source.", "source", SOURCES
        )
        self.cached = self._counter("prompt_tokens_cached", "Cached prompt tokens.")
        self.cached_by_source = self._counter(
            "prompt_tokens_cached_by_source", "Cached prompt tokens.", "source", CACHED_SOURCES
        )
        self.generation_tokens = self._counter("generation_tokens", "Generation tokens.")
        self.success = self._counter(
            "request_success", "Successfully processed requests.", "finished_reason", REASONS
        )
        self.request_prompt = Histogram(
            "vllm:request_prompt_tokens", "Prefill tokens processed.", _LENGTHS
        )
        self.request_generation = Histogram(
            "vllm:request_generation_tokens", "Generation tokens processed.", _LENGTHS
        )
        self.first_token = Histogram(
            "vllm:time_to_first_token_seconds", "Time to first token in seconds.", _FIRST_TOKEN
        )
        self.next_token = Histogram(
            "vllm:inter_token_latency_seconds", "Inter-token latency in seconds.", _NEXT_TOKEN
        )
        self.e2e = Histogram(
            "vllm:e2e_request_latency_seconds", "End to end request latency.", _SECONDS
        )
        self.queue_time = Histogram(
            "vllm:request_queue_time_seconds", "Time spent WAITING.", _SECONDS
        )
        self.prefill_time = Histogram(
            "vllm:request_prefill_time_seconds", "Time spent in PREFILL.", _SECONDS
        )
        self.decode_time = Histogram(
            "vllm:request_decode_time_seconds", "Time spent in DECODE.", _SECONDS
        )
        self._families: list[Counts | Histogram] = [
            v for v in vars(self).values()
            if isinstance(v, Counts | Histogram)
        ]  # fmt: skip

    def _counter(
        self, name: str, help_text: str, label: str = "", values: tuple[str, ...] = ()
    ) -> Counts:
        return Counts(f"vllm:{name}_total", "counter", help_text, label, values)

    def _gauge(self, name: str, help_text: str) -> Counts:
        return Counts(f"vllm:{name}", "gauge", help_text)

    def render(self) -> str:
        """All of them, as /metrics shows them."""
        lines: list[str] = []
        for family in (*self.transfer.families, *self._families):
            lines += family.render(self._common)
        lines += [
            "# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig",
            "# TYPE vllm:cache_config_info gauge",
            f"vllm:cache_config_info{labels_of({**self._info, 'engine': '0'})} 1.0",
        ]
        return "\n".join(lines) + "\n"
