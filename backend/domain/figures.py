"""The figures that people read, made from a stretch of an instance's samples. Pure."""

from __future__ import annotations

from collections.abc import Callable

from backend.domain import rates
from backend.domain.rates import Samples

Figure = Callable[[Samples], float | None]


def _rate(key: str) -> Figure:
    return lambda s: rates.rate(s, key)


def _last(key: str) -> Figure:
    return lambda s: rates.last(s, key)


def _quantile(histogram: str, q: float) -> Figure:
    return lambda s: rates.quantile(s, histogram, q)


def _mean(histogram: str) -> Figure:
    return lambda s: rates.mean(s, histogram)


def _requests(s: Samples) -> float | None:
    """What a router or an engine answered a second; SGLang counts only with its histogram."""
    for key in ("router_requests", "requests_finished", "whole_request.count"):
        if (found := rates.rate(s, key)) is not None:
            return found
    return None


def external_share(s: Samples) -> float | None:
    """The part of the prompt tokens that had to come from somewhere, and came from a prefill."""
    moved, computed = (rates.increase(s, k) for k in ("tokens_external", "tokens_computed"))
    return rates.share(moved, computed)


def _transfers(s: Samples) -> float | None:
    for key in ("kv_bytes.count", "kv_bootstrap.count"):
        if (found := rates.rate(s, key)) is not None:
            return found
    return None


FIGURES: dict[str, Figure] = {
    "requests": _requests,
    "prompt_tokens": _rate("prompt_tokens"),
    "generation_tokens": _rate("generation_tokens"),
    "running": _last("requests_running"),
    "waiting": _last("requests_waiting"),
    "cache_usage": _last("cache_usage"),
    "first_token_p50": _quantile("first_token", 0.5),
    "first_token_p95": _quantile("first_token", 0.95),
    "next_token_p50": _quantile("next_token", 0.5),
    "next_token_p95": _quantile("next_token", 0.95),
    "transfers": _transfers,
    "kv_bytes": _rate("kv_bytes.sum"),
    "kv_seconds": _mean("kv_seconds"),
    "external_share": external_share,
}
"""By name: a second where it is a count or bytes, seconds where it is a time, 0 to 1 for shares."""


def figures(samples: Samples) -> dict[str, float]:
    """Every figure that the samples give, rounded to four digits."""
    found = {name: figure(samples) for name, figure in FIGURES.items()}
    return {name: float(f"{value:.4g}") for name, value in found.items() if value is not None}
