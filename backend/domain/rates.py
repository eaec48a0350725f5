"""Increases, rates, means and quantiles over a stretch of kept samples. Pure.

Counters start anew with their process: a value below the one before, or another epoch (a start of
the process that we know of), means a reset, and what is there then has been counted since. A series
that a page did not have and then has counted from zero meanwhile: routers show a series only once
it was used. A series that no page of the stretch had is None, which is not zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Protocol

COUNT, SUM, LE = ".count", ".sum", ".le:"


class Samples(Protocol):
    """Pages in the order of time; `column` holds NaN where a page lacked the series."""

    times: Sequence[float]
    epochs: Sequence[float]

    def column(self, key: str) -> Sequence[float] | None: ...

    def names(self) -> Iterator[str]: ...


def increase(samples: Samples, key: str) -> float | None:
    """How much a counter grew from the first sample to the last; None when nobody can say."""
    column = samples.column(key)
    if column is None or len(column) < 2 or all(math.isnan(v) for v in column):
        return None
    total, before, epochs = 0.0, column[0], samples.epochs
    for n in range(1, len(column)):
        value = column[n]
        if math.isnan(value):
            continue
        fresh = epochs[n] != epochs[n - 1] or math.isnan(before) or value < before
        total += value if fresh else value - before
        before = value
    return total


def seconds(samples: Samples) -> float:
    """From the first sample to the last."""
    return samples.times[-1] - samples.times[0] if len(samples.times) > 1 else 0.0


def rate(samples: Samples, key: str) -> float | None:
    """A counter's growth a second."""
    grown, took = increase(samples, key), seconds(samples)
    return None if grown is None or took <= 0 else grown / took


def last(samples: Samples, key: str) -> float | None:
    """A gauge's newest value; None when the newest page lacked it."""
    column = samples.column(key)
    if column is None or not column or math.isnan(column[-1]):
        return None
    return column[-1]


def mean(samples: Samples, histogram: str) -> float | None:
    """The mean of what a histogram took in meanwhile; None when that was nothing."""
    count = increase(samples, histogram + COUNT)
    total = increase(samples, histogram + SUM)
    return total / count if count and total is not None else None


def quantile(samples: Samples, histogram: str, q: float) -> float | None:
    """The q-quantile (0 to 1) of what a histogram took in meanwhile, linear inside a bucket.

    Above the last finite bound it is that bound: the true value is not known there.
    """
    buckets = sorted(_buckets(samples, histogram))
    if not buckets or buckets[-1][1] <= 0:
        return None
    wanted = q * buckets[-1][1]
    low, below = 0.0, 0.0
    for bound, count in buckets:
        if count >= wanted:
            if math.isinf(bound):
                return low
            inside = count - below
            return bound if inside <= 0 else low + (bound - low) * (wanted - below) / inside
        low, below = bound, count
    return low


def _buckets(samples: Samples, histogram: str) -> Iterator[tuple[float, float]]:
    head = histogram + LE
    for key in samples.names():
        if key.startswith(head) and (grown := increase(samples, key)) is not None:
            yield float(key[len(head) :]), grown


def share(part: float | None, *others: float | None) -> float | None:
    """`part` of the sum of itself and the others; None when nothing was counted."""
    known = [v for v in (part, *others) if v is not None]
    whole = sum(known)
    return None if part is None or whole <= 0 else part / whole
