"""Seats chosen over an older look, held against the hosts as they are now."""

from __future__ import annotations

from dataclasses import replace

from backend.domain.bands import BandDemand
from backend.domain.host import Accelerator
from backend.domain.placement import Need, Room, misfits, place


def room(name: str, chips: int) -> Room:
    cards = (Accelerator(index=n, uuid=f"{n}", vendor="nvidia", type="H100") for n in range(chips))
    return Room(name, "10.0.0.1", tuple(cards))


def test_a_seat_that_no_more_fits_its_host_is_named_with_what_is_in_the_way() -> None:
    """Chosen over an older look: each thing that may have changed meanwhile."""
    then = room("a", 2)
    (seat,) = place([then], [Need("prefill", 1, 1, (BandDemand("http", 1),))])
    assert misfits([then], [seat]) == ""
    port = seat.bands[0].base
    for now, said in (
        (replace(then, why_not="does not answer"), "a: does not answer"),
        (replace(then, busy={0: "chat-decode-x"}), "a: accelerators 0 are in use"),
        (replace(then, taken_ports=frozenset({port})), f"a: ports {port} are taken"),
        (replace(then, address="10.9.9.9"), "a: its address is 10.9.9.9 now"),
        (room("b", 2), "a: it is not in the inventory any more"),
    ):
        assert misfits([now], [seat]) == said
