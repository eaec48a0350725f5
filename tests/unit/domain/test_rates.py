"""Counters, resets and quantiles over kept samples."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.domain import rates
from backend.observe.ring import CAPACITY, Ring

NAN = math.nan


def ring(*rows: tuple[float, float, dict[str, float]], capacity: int = 50) -> Ring:
    made = Ring(capacity)
    for at, epoch, values in rows:
        made.add(at, epoch, values)
    return made


def counted(*values: float | None, epochs: list[float] | None = None) -> Ring:
    rows = [
        (float(n), epochs[n] if epochs else 1.0, {} if v is None else {"c": v})
        for n, v in enumerate(values)
    ]
    return ring(*rows)


@pytest.mark.parametrize(
    ("values", "grown"),
    [
        ((3, 5, 9), 6),
        ((5, 9, 2, 4), 8),  # 4, then 2 and 2 after a reset
        ((None, None, 5), 5),  # a router shows a series once it was used
        ((4, None, 6), 2),  # one page lacked it
        ((7,), None),
        ((None, None), None),
        ((0, 0), 0),
    ],
)
def test_increase(values: tuple[float | None, ...], grown: float | None) -> None:
    assert rates.increase(counted(*values).whole(), "c") == grown


def test_a_start_that_is_known_is_a_reset_even_when_the_value_is_higher() -> None:
    assert rates.increase(counted(5, 6, epochs=[1, 2]).whole(), "c") == 6


def test_a_series_that_nobody_has_is_not_zero() -> None:
    stretch = counted(1, 2).whole()
    assert rates.increase(stretch, "other") is None
    assert rates.rate(stretch, "other") is None
    assert rates.last(stretch, "other") is None


@given(st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=8), min_size=1, max_size=5))
def test_increase_counts_everything_between_the_samples(lives: list[list[int]]) -> None:
    """Each life is a process that counts from zero; the samples see it after each of its steps."""
    rows, at, told = [], 0.0, 0.0
    for epoch, steps in enumerate(lives):
        value = 0.0
        for step in steps:
            value += step
            rows.append((at, float(epoch), {"c": value}))
            told += step if len(rows) > 1 else 0
            at += 5
    made = ring(*rows)
    expected = told if len(rows) > 1 else None
    assert rates.increase(made.whole(), "c") == expected


def test_rate_needs_time() -> None:
    assert rates.rate(ring((0, 1, {"c": 1}), (10, 1, {"c": 21})).whole(), "c") == 2
    assert rates.rate(ring((3, 1, {"c": 1}), (3, 1, {"c": 21})).whole(), "c") is None


def buckets(*counts: float) -> dict[str, float]:
    return {f"h.le:{b}": c for b, c in zip(("0.1", "0.5", "1.0", "inf"), counts, strict=True)}


def test_quantiles_of_what_came_meanwhile() -> None:
    stretch = ring((0, 1, buckets(100, 100, 100, 100)), (5, 1, buckets(100, 110, 110, 110))).whole()
    assert rates.quantile(stretch, "h", 0.5) == pytest.approx(0.3)
    assert rates.quantile(stretch, "h", 1.0) == pytest.approx(0.5)


def test_a_quantile_above_the_last_bound_is_that_bound() -> None:
    stretch = ring((0, 1, buckets(0, 0, 0, 0)), (5, 1, buckets(0, 0, 0, 3))).whole()
    assert rates.quantile(stretch, "h", 0.5) == 1.0


def test_no_requests_have_no_quantile_and_no_mean() -> None:
    stretch = ring((0, 1, buckets(1, 1, 1, 1)), (5, 1, buckets(1, 1, 1, 1))).whole()
    assert rates.quantile(stretch, "h", 0.5) is None
    assert rates.mean(stretch, "h") is None


def test_a_share_of_nothing_is_none() -> None:
    assert rates.share(0, 0) is None
    assert rates.share(None, 5) is None
    assert rates.share(3, 1, None) == 0.75


def test_the_ring_keeps_the_newest_and_forgets_what_no_page_has() -> None:
    made = Ring(4)
    for n in range(10):
        made.add(float(n), 1.0, {"always": n, **({"gone": n} if n < 2 else {})})
    whole = made.whole()
    assert list(whole.times) == [6, 7, 8, 9]
    assert whole.column("always") == [6, 7, 8, 9]
    assert "gone" not in set(whole.names())
    assert list(made.since(7.5).times) == [7, 8, 9]  # the one before counts what grew
    assert list(made.since(7.5).until(8).times) == [7, 8]
    assert [list(p.times) for p in whole.parts(3)] == [[6, 7], [7, 8], [8, 9]]


def test_an_hour_of_a_hundred_members_is_under_a_hundred_megabytes() -> None:
    made = Ring(CAPACITY)
    made.add(0.0, 1.0, {f"series {n}": 1.0 for n in range(110)})
    assert 100 * made.size < 100e6
