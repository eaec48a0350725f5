"""The port map: every port of the range in one run, and what nobody can manage beside it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from backend.domain.checkup import Listener
from backend.domain.group import Instance
from backend.domain.host import Claim, HostFacts
from backend.domain.instance import Band
from backend.domain.portmap import bindable, port_map

SPAN = (40000, 40015)
OURS = Instance(
    id="chat-decode-1", group="chat", role="decode", host="a", revision="r",
    bands=(Band(name="http", base=40000), Band(name="side_channel", base=40001, count=3)),
)  # fmt: skip


def facts(**more: object) -> HostFacts:
    return HostFacts.model_validate({"boot_id": "b", "address": "10.0.0.1", **more})


def test_each_holder_is_drawn_where_it_sits() -> None:
    seen = facts(
        listening={22, 40000, 40006, 15500, 36000},
        claims=[Claim(owner="x", instance="their-1", ports=(40008, 40009)),
                Claim(owner="me", instance=OURS.id, ports=OURS.ports)],
    )  # fmt: skip
    listeners = [Listener(port=40006, pid=7, name="jupyter"), Listener(port=15500, name="")]
    found = port_map("a", SPAN, seen, [OURS], listeners, {40011})
    assert [(r.first, r.last, r.kind, r.holder, r.band, r.listening) for r in found.runs] == [
        (40000, 40000, "ours", "chat-decode-1", "http", 1),
        (40001, 40003, "ours", "chat-decode-1", "side_channel", 0),
        (40004, 40005, "free", "", "", 0),
        (40006, 40006, "foreign", "jupyter (pid 7)", "", 1),
        (40007, 40007, "free", "", "", 0),
        (40008, 40009, "claimed", "their-1", "", 0),
        (40010, 40010, "free", "", "", 0),
        (40011, 40011, "stuck", "", "", 0),
        (40012, 40015, "free", "", "", 0),
    ]
    assert (found.free, found.widest, found.tried) == (8, 4, True)
    assert [(w.first, w.last, w.kind, w.overlaps, w.count) for w in found.windows] == [
        (15000, 17000, "engine", False, 1),
        (20000, 20800, "engine", False, 0),
        (32768, 60999, "ephemeral", True, 3),
    ]
    assert bindable(SPAN, seen, [OURS]) == (40004, 40005, 40007, *range(40010, 40016))


def test_reserved_ports_are_not_the_kernels_to_give() -> None:
    found = port_map("a", SPAN, facts(reserved=[SPAN]), [], [], None)
    assert [w.overlaps for w in found.windows] == [False, False, False]


def test_a_range_that_nobody_could_try() -> None:
    found = port_map("a", (15990, 16010), facts(), [], [], None)
    assert not found.tried
    assert (found.free, found.widest) == (21, 21)
    assert [w.overlaps for w in found.windows] == [True, False, False]


ports = st.integers(39990, 40030)


@given(st.sets(ports), st.sets(ports), st.lists(ports, max_size=9), st.sets(ports))
def test_every_port_is_in_one_run(
    listening: set[int], stuck: set[int], claimed: list[int], named: set[int]
) -> None:
    seen = facts(listening=listening, claims=[Claim(owner="x", instance="i", ports=claimed)])
    found = port_map("a", SPAN, seen, [OURS], [Listener(port=p, pid=1) for p in named], stuck)
    covered = [p for r in found.runs for p in range(r.first, r.last + 1)]
    assert covered == list(range(SPAN[0], SPAN[1] + 1))
    assert all((a.kind, a.holder, a.band) != (b.kind, b.holder, b.band)
               for a, b in zip(found.runs, found.runs[1:], strict=False))  # fmt: skip
    free = {p for r in found.runs if r.kind == "free" for p in range(r.first, r.last + 1)}
    assert free.isdisjoint(listening | stuck | set(claimed) | named | set(OURS.ports))
