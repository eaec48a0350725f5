"""Whole groups of the catalogue's modes, as the loop asks for them."""

from __future__ import annotations

from typing import Any

import pytest

from backend.adapters.recipes import load_catalogue
from backend.domain.bands import BandDemand
from backend.domain.deployment import Deployment
from backend.domain.errors import Refused
from backend.domain.host import Accelerator
from backend.domain.instance import Band
from backend.domain.placement import Need, Room, place
from backend.reconcile.world import need_of

CATALOGUE = load_catalogue()


def needs(mode: str, prefill: int, decode: int, **spec: Any) -> list[Need]:
    roles = {"prefill": {"replicas": prefill}, "decode": {"replicas": decode}}
    engine = CATALOGUE.mode(mode).engines[0]
    body = {"model": "/m", "engine": engine, "disaggregation": {"mode": mode}, "roles": roles}
    document = Deployment.model_validate({"metadata": {"name": "q"}, "spec": body | spec})
    found = CATALOGUE.mode(mode)
    counts = {"prefill": prefill, "decode": decode}
    return [need_of(found, CATALOGUE, document, r, n) for r, n in counts.items()]


def npus(name: str, count: int) -> Room:
    chips = (
        Accelerator(index=i, uuid=f"{name}-{i}", vendor="ascend", type="Ascend 910B3")
        for i in range(count)
    )
    return Room(name, "10.0.0.1", tuple(chips))


def test_seven_ascend_members_of_eight_ranks_fit_the_default_range_and_the_eighth_does_not() -> (
    None
):
    """Nine ports each: one of HTTP and a handshake port for every accelerator."""
    host = npus("npu1", 64)
    asked = needs("vllm-ascend-mooncake", 4, 3, accelerators=8)
    assert [n.ports for n in asked] == [9, 9]
    seats = place([host], asked, vendor="ascend")
    assert len(seats) == 7
    assert len({p for s in seats for b in s.bands for p in b.ports}) == 63
    assert {b.count for s in seats for b in s.bands if b.name == "kv_port"} == {8}
    with pytest.raises(Refused) as caught:
        place([host], needs("vllm-ascend-mooncake", 4, 4, accelerators=8), vendor="ascend")
    assert caught.value.problem.rule == "placement.ports"
    assert (
        "the group needs ports for 4 prefill x 8 + 4 decode x 8; npu1 has 64 of 72 ports free, "
        "8 missing."
    ) in caught.value.problem.message


@pytest.mark.parametrize(
    ("mode", "ports"),
    [
        ("vllm-nixl", [2, 2]),
        ("vllm-mooncake", [2, 1]),
        ("sglang-mooncake", [2, 1]),
        ("sglang-nixl", [2, 1]),
    ],
)
def test_ports_of_the_other_modes(mode: str, ports: list[int]) -> None:
    assert [n.ports for n in needs(mode, 1, 1)] == ports


def test_ranks_of_data_parallelism_take_a_port_each() -> None:
    found = needs("vllm-nixl", 1, 1, accelerators=4, parameters=["-dp", "4"])
    assert [n.ports for n in found] == [5, 5]


def gpus(name: str, count: int, kind: str) -> Room:
    cards = (
        Accelerator(index=i, uuid=f"{name}-{i}", vendor="nvidia", type=kind) for i in range(count)
    )
    return Room(name, "10.0.0.1", tuple(cards))


def test_mixed_types_are_refused_by_both_their_names_and_hosts() -> None:
    """Each side is kept to hosts of its own; nothing but a mix of types could hold the group."""
    roles = {
        "prefill": {"accelerators": 4, "hosts": {"names": ["a"]}},
        "decode": {"accelerators": 4, "hosts": {"names": ["b"]}},
    }
    rooms = [gpus("a", 8, "A100"), gpus("b", 8, "H100")]
    with pytest.raises(Refused) as caught:
        place(rooms, needs("vllm-nixl", 1, 1, roles=roles), vendor="nvidia")
    assert caught.value.problem.rule == "placement.accelerators"
    assert (
        "they would fit only on mixed types, which a group never runs on: prefill on a (A100), "
        "decode on b (H100)."
    ) in caught.value.problem.message
    with pytest.raises(Refused) as caught:  # more than both have: mixing is not what stands in it
        place(rooms, needs("vllm-nixl", 3, 3, accelerators=4), vendor="nvidia")
    assert "mixed types" not in caught.value.problem.message


@pytest.mark.parametrize(
    ("home", "fixed", "port"),
    [
        (50010, None, 50010),  # in the other host's range: clients find the same port there
        (40010, None, 50000),  # out of it: nobody opened that port on the other host
        (50063, None, 50000),  # its bands would end outside
        (40010, 40010, 40010),  # written in the document: wherever it goes
    ],
)
def test_a_router_that_moves_keeps_its_ports_where_the_other_hosts_range_has_them(
    home: int, fixed: int | None, port: int
) -> None:
    wished = (Band(name="http", base=home, count=2),)
    other = Room("b", "10.0.0.2", port_range=(50000, 50063))
    need = Need(
        "router", 1, 0, (BandDemand("http", 2),), wished=wished, wished_host="a", fixed_port=fixed
    )
    (seat,) = place([other], [need])
    assert (seat.host, seat.bands[0].base) == ("b", port)
