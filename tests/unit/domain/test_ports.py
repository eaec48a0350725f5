"""Bands: contiguous, inside the range, never on a taken port; a wished one stays."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from backend.domain.bands import BandDemand
from backend.domain.instance import Band
from backend.domain.ports import allocate, free_in

WHOLE = (100, 109)


def demands(*counts: int) -> list[BandDemand]:
    return [BandDemand(f"b{n}", count) for n, count in enumerate(counts)]


def bases(bands: tuple[Band, ...] | None) -> list[int] | None:
    return None if bands is None else [b.base for b in bands]


def test_the_widest_comes_first_and_the_answer_keeps_the_order() -> None:
    assert bases(allocate(WHOLE, (), demands(1, 4, 2))) == [106, 100, 104]


def test_a_gap_of_one_goes_to_a_narrow_one() -> None:
    assert bases(allocate(WHOLE, {101}, demands(1, 3))) == [100, 102]


def test_the_whole_range_can_be_had_and_no_more() -> None:
    assert bases(allocate(WHOLE, (), demands(10))) == [100]
    assert allocate(WHOLE, (), demands(11)) is None
    assert allocate(WHOLE, {105}, demands(6)) is None


def test_a_wished_band_stays_even_outside_the_range() -> None:
    wished = [Band(name="b0", base=80)]
    assert bases(allocate(WHOLE, (), demands(1), wished)) == [80]
    assert bases(allocate(WHOLE, {80}, demands(1), wished)) == [100]


def test_a_wider_band_does_not_take_a_wished_ones_place() -> None:
    wished = [Band(name="b0", base=101)]
    assert bases(allocate(WHOLE, (), demands(1, 3), wished)) == [101, 102]


def test_a_wish_of_another_width_is_none() -> None:
    assert bases(allocate(WHOLE, (), demands(2), [Band(name="b0", base=105)])) == [100]


@given(
    st.sets(st.integers(100, 130), max_size=20),
    st.lists(st.integers(1, 5), max_size=5),
    st.lists(st.integers(95, 125), max_size=5),
)
def test_bands_never_meet(taken: set[int], counts: list[int], wishes: list[int]) -> None:
    wished = [
        Band(name=f"b{n}", base=b, count=c)
        for n, (b, c) in enumerate(zip(wishes, counts, strict=False))
    ]
    found = allocate((100, 120), taken, demands(*counts), wished)
    if found is None:
        assert free_in((100, 120), taken) < 21
        return
    assert [(b.name, b.count) for b in found] == [(f"b{n}", c) for n, c in enumerate(counts)]
    ports = [p for b in found for p in b.ports]
    assert len(ports) == len(set(ports))
    assert not taken & set(ports)
    for band in found:
        inside = band.base >= 100 and band.base + band.count - 1 <= 120
        assert inside or band in wished


def test_free_ports_are_counted_inside_the_range() -> None:
    assert free_in((100, 103), {99, 100, 104}) == 3
