"""Where members go: never two on one place, all on one type, or a refusal that says what lacks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.domain.bands import BandDemand
from backend.domain.deployment import HostSelector, Pin
from backend.domain.errors import Problem, Refused
from backend.domain.host import Accelerator, HostFacts, Use, Vendor
from backend.domain.instance import Band
from backend.domain.picture import strangers
from backend.domain.placement import Need, Room, Seat, place, place_most, selects
from backend.domain.seats import SEARCH_LIMIT

HTTP = (BandDemand("http", 1),)
H100, A100, NPU = "H100", "A100", "910B3"


def room(name: str, chips: int = 8, kind: str = H100, **more: Any) -> Room:
    vendor: Vendor = "ascend" if kind == NPU else "nvidia"
    cards = tuple(
        Accelerator(index=n, uuid=f"{name}-{n}", vendor=vendor, type=kind) for n in range(chips)
    )
    return Room(name, f"10.0.0.{sum(map(ord, name)) % 250}", cards, **more)


def asks(role: str = "prefill", count: int = 1, width: int = 1, **more: Any) -> Need:
    return Need(role, count, width, more.pop("demands", HTTP), **more)


def refused(rooms: Sequence[Room], needs: Sequence[Need], **more: Any) -> Problem:
    with pytest.raises(Refused) as caught:
        place(rooms, needs, **more)
    return caught.value.problem


@st.composite
def rooms(draw: st.DrawFn) -> list[Room]:
    found = []
    for n in range(draw(st.integers(0, 4))):
        chips = draw(st.integers(0, 6))
        busy = draw(st.sets(st.integers(0, 5), max_size=3))
        first = draw(st.integers(40000, 40010))
        found.append(
            room(
                f"h{n}",
                chips,
                draw(st.sampled_from([H100, A100, NPU])),
                busy=dict.fromkeys(busy, "other"),
                port_range=(first, first + draw(st.integers(0, 12))),
                taken_ports=frozenset(draw(st.sets(st.integers(40000, 40015), max_size=5))),
                labels={"rack": draw(st.sampled_from("ab"))},
                why_not=draw(st.sampled_from(["", "", "", "does not answer"])),
            )
        )
    return found


@st.composite
def needs(draw: st.DrawFn) -> list[Need]:
    found = []
    for role in draw(st.sampled_from([("prefill",), ("prefill", "decode")])):
        selector = draw(
            st.sampled_from(
                [None, HostSelector(names=["h0", "h1"]), HostSelector(labels={"rack": "a"})]
            )
        )
        pins = draw(
            st.lists(
                st.builds(
                    Pin,
                    host=st.sampled_from(["h0", "h1", "h9"]),
                    accelerators=st.sampled_from([None, [0], [1], [0, 1]]),
                ),
                max_size=1,
            )
        )
        demands = (BandDemand("http", 1), BandDemand("side", draw(st.integers(1, 4))))
        found.append(
            asks(
                role, draw(st.integers(1, 4)), draw(st.integers(0, 3)),
                hosts=selector, pins=tuple(pins), demands=demands,
            )
        )  # fmt: skip
    return found


@settings(max_examples=300, deadline=None)
@given(rooms(), needs(), st.sampled_from([None, "nvidia", "ascend"]), st.sampled_from([None, A100]))
def test_seats_are_sound_or_refused_with_words(
    rooms: list[Room], needs: list[Need], vendor: Vendor | None, only: str | None
) -> None:
    try:
        seats = place(rooms, needs, vendor=vendor, only_type=only)
    except Refused as error:
        problem = error.problem
        assert problem.rule.startswith("placement.")
        assert any(n.role in problem.message for n in needs)
        assert problem.remedy
        assert problem.path.startswith("spec")
        if problem.rule != "placement.too_wide":
            assert all(r.host in problem.message for r in rooms)
            assert all(r.why_not in problem.message for r in rooms)
        return
    _check(rooms, needs, seats, vendor, only)


def _check(
    rooms: list[Room],
    needs: list[Need],
    seats: Sequence[Seat],
    vendor: Vendor | None,
    only: str | None,
) -> None:
    by_name = {r.host: r for r in rooms}
    assert sorted(s.role for s in seats) == sorted(n.role for n in needs for _ in range(n.count))
    chips = [(s.host, a) for s in seats for a in s.accelerators]
    ports = [(s.host, p) for s in seats for b in s.bands for p in b.ports]
    assert len(chips) == len(set(chips))
    assert len(ports) == len(set(ports))
    kinds = set()
    for seat in seats:
        at = by_name[seat.host]
        assert not at.why_not
        free = {a.index: a for a in at.free}
        kinds |= {free[a].type for a in seat.accelerators}
        assert {free[a].vendor for a in seat.accelerators} <= (
            {vendor} if vendor else {seat.vendor}
        )
        for band in seat.bands:
            assert at.port_range[0] <= band.base
            assert band.base + band.count - 1 <= at.port_range[1]
            assert not at.taken_ports & set(band.ports)
    assert len(kinds) <= 1
    assert kinds <= ({only} if only else kinds)
    for need in needs:
        mine = [s for s in seats if s.role == need.role]
        unpinned = list(mine)
        for pin in need.pins[: need.count]:
            sat = [
                s
                for s in unpinned
                if s.host == pin.host
                and (pin.accelerators is None or list(s.accelerators) == pin.accelerators)
            ]
            assert sat, f"nobody sits at {pin}"
            unpinned.remove(sat[0])
        loose = [s for s in unpinned if not selects(need.hosts, s.host, by_name[s.host].labels)]
        assert len(loose) <= len(need.pins)


def test_members_are_spread_over_the_hosts_with_most_room() -> None:
    seats = place([room("a"), room("b")], [asks(count=2, width=2), asks("decode", 2, 2)])
    assert sorted((s.host, s.accelerators) for s in seats) == [
        ("a", (0, 1)), ("a", (2, 3)), ("b", (0, 1)), ("b", (2, 3)),
    ]  # fmt: skip


def test_the_whole_group_is_on_one_type() -> None:
    both = [room("a", 4, A100), room("b", 3, H100), room("c", 3, H100)]
    seats = place(both, [asks(count=2, width=2), asks("decode", 1, 1)])
    assert {s.accelerator_type for s in seats} == {H100}
    assert {s.host for s in seats} == {"b", "c"}


def test_types_are_not_mixed_even_where_together_they_would_do() -> None:
    problem = refused([room("a", 4, A100), room("b", 4, H100)], [asks(count=3, width=2)])
    assert problem.rule == "placement.accelerators"
    assert "3 prefill x 2" in problem.message
    assert "4 free A100, 4 free H100; 2 missing; they would fit only on mixed types" in (
        problem.message
    )
    assert "prefill on a (A100), prefill on b (H100)" in problem.message
    assert problem.values["available"] == {A100: 4, H100: 4}


def test_additions_stay_on_the_groups_type() -> None:
    both = [room("a", 8, H100), room("b", 1, A100)]
    (seat,) = place(both, [asks()], only_type=A100)
    assert seat.host == "b"
    problem = refused(both, [asks(count=2)], only_type=A100)
    assert "of type A100, which the group runs on" in problem.message
    assert "1 free A100; 1 missing" in problem.message
    assert "a: has H100" in problem.message


def test_a_modes_vendor_is_kept() -> None:
    (seat,) = place([room("a", 8), room("b", 2, NPU)], [asks()], vendor="ascend")
    assert (seat.host, seat.vendor) == ("b", "ascend")
    assert "a: H100 is not ascend" in refused([room("a")], [asks()], vendor="ascend").message


def test_named_accelerators_are_given_before_another_sits_there() -> None:
    first = asks(pins=(Pin(host="a"),), width=2)
    named = asks("decode", width=2, pins=(Pin(host="a", accelerators=[0, 1]),))
    seats = {s.role: s.accelerators for s in place([room("a", 4)], [first, named])}
    assert seats == {"prefill": (2, 3), "decode": (0, 1)}


def test_a_pin_that_is_held_is_named_with_its_holder() -> None:
    pins = (Pin(host="a", accelerators=[1, 9]),)
    problem = refused([room("a", 4, busy={1: "chat-prefill-x"})], [asks(width=2, pins=pins)])
    assert "1 held by chat-prefill-x" in problem.message
    assert "9 not there" in problem.message


def test_a_narrow_selector_is_served_before_a_wide_one() -> None:
    only_b = asks("decode", 1, 4, hosts=HostSelector(names=["b"]))
    seats = {s.role: s.host for s in place([room("a", 4), room("b", 4)], [asks(width=4), only_b])}
    assert seats == {"prefill": "a", "decode": "b"}


def test_a_search_finds_what_greed_misses() -> None:
    first = asks("prefill", 1, 2, hosts=HostSelector(names=["a", "b"]))
    other = asks("decode", 1, 2, hosts=HostSelector(names=["a", "c"]))
    seats = place([room("a", 3), room("b", 2), room("c", 1)], [first, other])
    assert {s.role: s.host for s in seats} == {"prefill": "b", "decode": "a"}


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(1, 2), st.integers(1, 3)), min_size=2, max_size=2),
    st.lists(st.sets(st.sampled_from(["h0", "h1", "h2"])), min_size=2, max_size=2),
)
def test_what_can_be_placed_is_placed(
    chips: list[int], sizes: list[tuple[int, int]], selected: list[set[str]]
) -> None:
    hosts = [room(f"h{n}", c) for n, c in enumerate(chips)]
    roles = zip(("prefill", "decode"), sizes, selected, strict=True)
    wanted = [asks(r, c, w, hosts=HostSelector(names=sorted(s))) for r, (c, w), s in roles]
    members = [n for n in wanted for _ in range(n.count)]
    fits = any(
        all(selects(m.hosts, at.host, {}) for m, at in zip(members, way, strict=True))
        and all(
            sum(m.width for m, at in zip(members, way, strict=True) if at is h)
            <= len(h.accelerators)
            for h in hosts
        )
        for way in itertools.product(hosts, repeat=len(members))
    )
    try:
        place(hosts, wanted)
    except Refused:
        assert not fits
    else:
        assert fits


BANDS = (BandDemand("http", 1), BandDemand("kv", 8))


def test_seven_members_of_nine_ports_fit_in_64_and_the_eighth_is_told_how_many_lack() -> None:
    host = room("npu-1", 64, NPU)
    seats = place([host], [asks("prefill", 7, 8, demands=BANDS)], vendor="ascend")
    ports = {p for s in seats for b in s.bands for p in b.ports}
    assert len(ports) == 63
    problem = refused([host], [asks("prefill", 8, 8, demands=BANDS)], vendor="ascend")
    assert problem.rule == "placement.ports"
    assert "8 prefill x 8; npu-1 has 64 of 72 ports free, 8 missing" in problem.message
    full = room("npu-1", 64, NPU, busy=dict.fromkeys(range(56), "x"), taken_ports=frozenset(ports))
    problem = refused([full], [asks("prefill", 1, 8, demands=BANDS)], vendor="ascend")
    assert "npu-1 has 1 of 9 ports free, 8 missing" in problem.message


def test_ports_in_pieces_are_told_from_too_few() -> None:
    taken = frozenset(range(40000, 40064, 2))
    problem = refused([room("a", taken_ports=taken)], [asks(demands=BANDS)])
    assert "the free ports are not contiguous" in problem.message


def test_a_host_that_does_not_answer_is_explained_and_not_called_narrow() -> None:
    away = Room("b", "b", why_not="b does not answer: timed out.")
    problem = refused([room("a", 4), away], [asks(width=8)])
    assert problem.rule == "placement.accelerators"
    assert "b: b does not answer: timed out" in problem.message
    assert "a: 4 of 4 H100 free" in problem.message


def test_a_member_wider_than_every_host_is_told_the_widest() -> None:
    problem = refused([room("a", 4), room("b", 8)], [asks(), asks("decode", width=16)])
    assert problem.rule == "placement.too_wide"
    assert (
        "one decode member needs 16 accelerators, but the widest host (b) has 8" in problem.message
    )
    assert problem.path == "spec.roles.decode.accelerators"
    assert problem.values["widest"] == 8


def test_a_plain_deployments_path_is_its_own() -> None:
    assert refused([room("a", 1)], [asks("replica", width=2)]).path == "spec.accelerators"
    assert refused([room("a", 2)], [asks("replica", count=2, width=2)]).path == "spec"


def test_an_empty_inventory_is_said_so() -> None:
    message = refused([], [asks()]).message
    assert "there is no host" in message
    assert "The inventory is empty." in message


def test_a_router_needs_no_accelerator_and_prefers_a_host_without() -> None:
    router = asks("router", width=0)
    (seat,) = place([room("a"), room("b", 0)], [router])
    assert (seat.host, seat.accelerators, seat.accelerator_type, seat.vendor) == ("b", (), "", None)


def test_a_router_stays_where_it_was() -> None:
    home = (Band(name="http", base=40033),)
    router = asks("router", width=0, wished=home, wished_host="a")
    (seat,) = place([room("a"), room("b", 0)], [router])
    assert (seat.host, seat.bands) == ("a", home)
    (moved,) = place([room("a", taken_ports=frozenset({40033}))], [router])
    assert moved.bands[0].base == 40000


def test_a_routers_fixed_port_is_had_or_refused() -> None:
    router = asks("router", width=0, wished=(Band(name="http", base=80),), fixed_port=80)
    (seat,) = place([room("a")], [router])
    assert seat.bands[0].base == 80
    problem = refused([room("a", taken_ports=frozenset({80}))], [router])
    assert "the router is to have port 80, which is taken on a" in problem.message
    assert problem.path == "spec.roles.router.port"


def test_a_running_group_takes_what_fits() -> None:
    assert len(place_most([room("a", 5)], asks(count=9, width=2))) == 2
    assert len(place_most([room("a", 5)], asks(count=2, width=2))) == 2
    assert place_most([room("a", 5)], asks(count=0)) == ()
    with pytest.raises(Refused, match="1 prefill x 2"):
        place_most([room("a", 1), Room("b", "b", why_not="away")], asks(count=9, width=2))


def test_nothing_wanted_is_nothing_placed() -> None:
    assert place([], []) == ()
    assert place([room("a")], [asks(count=0)]) == ()


def test_the_largest_group_is_placed_and_a_hopeless_one_given_up() -> None:
    many = [room(f"h{n:03}", 8, port_range=(40000, 40063)) for n in range(128)]
    seats = place(many, [asks(count=512), asks("decode", 512)])
    assert len(seats) == 1024
    odd = [room(f"h{n}", 7) for n in range(12)]
    parts = [asks(count=12, width=3), asks("decode", 12, 4), asks("replica", 1, 1)]
    assert refused(odd, parts).rule == "placement.accelerators"
    assert SEARCH_LIMIT < 10_000


@pytest.mark.parametrize(
    ("selector", "passes"),
    [
        (None, True),
        (HostSelector(), True),
        (HostSelector(names=[]), False),
        (HostSelector(names=["a"]), True),
        (HostSelector(names=["b"]), False),
        (HostSelector(labels={}), True),
        (HostSelector(labels={"rack": "1"}), True),
        (HostSelector(labels={"rack": "2"}), False),
        (HostSelector(labels={"zone": "x"}), False),
        (HostSelector(names=["a"], labels={"rack": "2"}), False),
    ],
)
def test_selectors(selector: HostSelector | None, passes: bool) -> None:
    assert selects(selector, "a", {"rack": "1"}) is passes


def test_strangers_count_as_busy_and_are_named() -> None:
    """A process that claimed nothing, and a card that is cut into slices."""
    cards = tuple(
        Accelerator(index=i, uuid=f"GPU-{i}", vendor="nvidia", type="H100", mig=i == 3)
        for i in range(4)
    )
    uses = (
        Use(index=1, pid=77, name="python3", memory_mib=40000, user="bob"),
        Use(index=1, pid=78, name="python3", user="bob"),
        Use(index=2, pid=9, name="VLLM::Worker", instance="old-decode-bcdf"),
    )
    facts = HostFacts(boot_id="b", address="10.0.0.1", accelerators=cards, uses=uses)
    held = strangers(facts)
    assert held == {
        1: "python3 (pid 77, 40000 MiB, bob) and 1 more",
        2: "VLLM::Worker (pid 9, left over from old-decode-bcdf)",
        3: "MIG (it is cut into slices)",
    }
    room = Room(host="a", address="10.0.0.1", accelerators=cards, busy=held, foreign=held)
    with pytest.raises(Refused) as caught:
        place([room], [Need(role="prefill", count=2, width=1, demands=HTTP)])
    said = caught.value.problem.message
    assert "1 of 4 H100 free" in said
    assert "1 by python3 (pid 77, 40000 MiB, bob) and 1 more" in said
    assert "3 by MIG" in said
