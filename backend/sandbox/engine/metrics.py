"""The engine's metrics, in vLLM 0.32's spelling."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Mapping

_INF = float("inf")
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
_TRANSFER = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 5.0)
_POST = (0.001, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0)
_BYTES = tuple(2.0 ** (10 + i) for i in range(1, 24, 2))
_DESCRIPTORS = (10, 20, 30, 50, 75, 100, 200, 400, 1000, 2000, 4000, 10000, 20000, 50000)
_LENGTHS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000)

SOURCES = ("local_compute", "local_cache_hit", "external_kv_transfer")
CACHED_SOURCES = ("device", "host", "p2p", "disk", "external_unspecified")
REASONS = ("stop", "length", "abort", "error", "repetition")


def _number(value: float) -> str:
    return "+Inf" if value == _INF else repr(float(value))


def _labels(pairs: Mapping[str, str]) -> str:
    def escaped(value: str) -> str:
        return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

    return "{" + ",".join(f'{k}="{escaped(pairs[k])}"' for k in sorted(pairs)) + "}"


class Family:
    """A counter or gauge, with one label beyond the common ones or none."""

    def __init__(
        self, name: str, kind: str, help_text: str, label: str = "", values: tuple[str, ...] = ()
    ) -> None:
        self.name, self.kind, self.help, self.label = name, kind, help_text, label
        self.created = time.time()
        self._values: dict[str, float] = dict.fromkeys(values or ("",), 0.0)

    def add(self, amount: float = 1.0, value: str = "") -> None:
        """Count."""
        self._values[value] += amount

    def set(self, amount: float, value: str = "") -> None:
        """Set a gauge."""
        self._values[value] = amount

    def get(self, value: str = "") -> float:
        """The present value."""
        return self._values[value]

    def render(self, common: Mapping[str, str]) -> list[str]:
        """The family in the exposition format."""
        out = [f"# HELP {self.name} {self.help}", f"# TYPE {self.name} {self.kind}"]
        made = []
        for value, amount in self._values.items():
            labels = _labels({**common, self.label: value} if self.label else common)
            out.append(f"{self.name}{labels} {_number(amount)}")
            made.append(labels)
        if self.kind == "counter":
            out += _created(self.name.removesuffix("_total"), self.help, self.created, made)
        return out


class Histogram:
    """A histogram with fixed bounds."""

    def __init__(self, name: str, help_text: str, bounds: tuple[float, ...]) -> None:
        self.name, self.help, self._bounds = name, help_text, (*bounds, _INF)
        self.created = time.time()
        self._counts = [0] * len(self._bounds)
        self.sum, self.count = 0.0, 0

    def observe(self, value: float) -> None:
        """Take one value in."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self.sum += value
        self.count += 1

    def render(self, common: Mapping[str, str]) -> list[str]:
        """The histogram in the exposition format."""
        out = [f"# HELP {self.name} {self.help}", f"# TYPE {self.name} histogram"]
        total = 0
        for bound, count in zip(self._bounds, self._counts, strict=True):
            total += count
            labels = _labels({**common, "le": _number(bound)})
            out.append(f"{self.name}_bucket{labels} {_number(total)}")
        labels = _labels(common)
        out.append(f"{self.name}_count{labels} {_number(self.count)}")
        out.append(f"{self.name}_sum{labels} {_number(self.sum)}")
        return out + _created(self.name, self.help, self.created, [labels])


def _created(name: str, help_text: str, at: float, labels: list[str]) -> list[str]:
    return [
        f"# HELP {name}_created {help_text}",
        f"# TYPE {name}_created gauge",
        *(f"{name}_created{one} {at!r}" for one in labels),
    ]


class Metrics:
    """Every metric of one engine. `transfer` adds those of the NIXL connector."""

    def __init__(self, model: str, transfer: bool, info: Mapping[str, str]) -> None:
        self._common = {"engine": "0", "model_name": model}
        self._info = dict(info)
        self.xfer_seconds = Histogram(
            "vllm:nixl_xfer_time_seconds", "Histogram of transfer duration for NIXL KV transfers.",
            _TRANSFER,
        )  # fmt: skip
        self.post_seconds = Histogram(
            "vllm:nixl_post_time_seconds", "Histogram of transfer post time for NIXL.", _POST
        )
        self.xfer_bytes = Histogram(
            "vllm:nixl_bytes_transferred", "Histogram of bytes transferred per NIXL transfer.",
            _BYTES,
        )  # fmt: skip
        self.descriptors = Histogram(
            "vllm:nixl_num_descriptors", "Histogram of descriptors per NIXL transfer.",
            _DESCRIPTORS,
        )  # fmt: skip
        self.failed_transfers = self._counter("nixl_num_failed_transfers", "Failed transfers.")
        self.failed_notifications = self._counter(
            "nixl_num_failed_notifications", "Failed notifications."
        )
        self.expired = self._counter("nixl_num_kv_expired_reqs", "Requests whose KV expired.")
        self.late_notifications = self._counter(
            "nixl_num_notifications_after_expiry", "Notifications after expiry."
        )
        self._transfer: list[Family | Histogram] = [
            self.xfer_seconds, self.post_seconds, self.xfer_bytes, self.descriptors,
            self.failed_transfers, self.failed_notifications, self.expired,
            self.late_notifications,
        ] if transfer else []  # fmt: skip
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
        self._families: list[Family | Histogram] = [
            v for v in vars(self).values()
            if isinstance(v, Family | Histogram) and not v.name.startswith("vllm:nixl_")
        ]  # fmt: skip

    def _counter(
        self, name: str, help_text: str, label: str = "", values: tuple[str, ...] = ()
    ) -> Family:
        return Family(f"vllm:{name}_total", "counter", help_text, label, values)

    def _gauge(self, name: str, help_text: str) -> Family:
        return Family(f"vllm:{name}", "gauge", help_text)

    def render(self) -> str:
        """All of them, as /metrics shows them."""
        lines: list[str] = []
        for family in (*self._transfer, *self._families):
            lines += family.render(self._common)
        lines += [
            "# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig",
            "# TYPE vllm:cache_config_info gauge",
            f"vllm:cache_config_info{_labels({**self._info, 'engine': '0'})} 1.0",
        ]
        return "\n".join(lines) + "\n"
