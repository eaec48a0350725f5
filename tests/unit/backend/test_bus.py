"""The stream of changes: numbered, resumable while kept, ended for a reader that falls behind."""

from __future__ import annotations

from backend.services.bus import KEPT, QUEUE, Bus


def publish(bus: Bus, count: int) -> list[int]:
    for n in range(count):
        bus.publish("host_gone", {"name": str(n)})
    return list(range(bus.seq - count + 1, bus.seq + 1))


async def test_what_came_before_and_what_comes_is_read_once_and_in_order() -> None:
    bus = Bus(lambda: 5.0)
    first = publish(bus, 3)
    stream = bus.subscribe(first[0])
    read = [(await anext(stream)).seq]
    first += publish(bus, 2)
    read += [(await anext(stream)).seq for _ in range(3)]
    assert read == first[1:]
    bus.close()
    assert [c async for c in stream] == []


async def test_numbers_grow_from_one_life_to_the_next() -> None:
    old, new = Bus(lambda: 5.0), Bus(lambda: 5.1)
    last = publish(old, 10)[-1]
    assert not new.resumable(last)
    publish(new, 1)
    assert not new.resumable(last)
    assert new.resumable(new.seq)
    assert new.resumable(new.seq - 1)
    assert not new.resumable(new.seq + 1)


async def test_only_what_is_kept_can_be_resumed() -> None:
    bus = Bus(lambda: 5.0)
    start = bus.seq
    publish(bus, KEPT)
    assert bus.resumable(start)
    publish(bus, 1)
    assert not bus.resumable(start)
    assert bus.resumable(start + 1)


async def test_a_reader_that_falls_behind_is_ended_without_a_gap() -> None:
    bus = Bus(lambda: 5.0)
    stream = bus.subscribe(bus.seq)
    publish(bus, 0)
    first = publish(bus, 1)
    stream = bus.subscribe(first[0] - 1)
    assert (await anext(stream)).seq == first[0]
    publish(bus, QUEUE + 1)
    rest = [c.seq async for c in stream]
    assert rest == []
    assert bus.resumable(first[0])
    again = bus.subscribe(first[0])
    assert (await anext(again)).seq == first[0] + 1
    await again.aclose()  # type: ignore[attr-defined]


async def test_closing_ends_a_full_reader_too() -> None:
    bus = Bus(lambda: 5.0)
    publish(bus, 1)
    stream = bus.subscribe(bus.seq - 1)
    await anext(stream)
    publish(bus, QUEUE)
    bus.close()
    assert len([c async for c in stream]) == QUEUE - 1
