"""A store is lost, or there are two: groups are taken over whole, and nothing is held twice."""

from __future__ import annotations

import asyncio
import shutil

import pytest

from backend.domain.errors import Conflict, NotFound
from pdtui.cli.demo import chat
from tests.live.lab import Lab, deployment, serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]


def lose_store(lab: Lab) -> None:
    """What a lost disk leaves: the hosts' keys, which a person would accept again."""
    for path in lab.state.iterdir():
        if path.name == "known_hosts":
            continue
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize("mode", ["vllm-nixl", "vllm-mooncake"])
async def test_a_lost_store_is_rebuilt_from_the_hosts(lab: Lab, mode: str) -> None:
    """Same pids, generations, endpoint and document; and the group can be lived with as before."""
    await lab.add_hosts()
    document = deployment(lab.model, prefill=1, mode=mode, env={"API_TOKEN": "s3cret"})
    await lab.asked(lambda c: c.apply(document))
    await lab.until("chat", serving(1, 1))
    await lab.asked(lambda c: c.scale("chat", {"prefill": 2}))
    before = await lab.until("chat", serving(2, 1))
    saved = await lab.asked(lambda c: c.deployment("chat"))
    await lab.stop_backend()
    lose_store(lab)

    await lab.add_hosts()
    assert await lab.asked(lambda c: c.groups()) == ()
    found, unasked = await lab.asked(lambda c: c.adoptable())
    assert unasked == {}
    (one,) = found
    assert (one.group, one.living, set(one.instances)) == (
        "chat",
        4,
        {m.id for m in before.members},
    )
    client = await lab.client()
    with pytest.raises(NotFound, match=one.owner):
        await client.adopt("nobody")
    away = before.members[0].host
    await lab.order(away, faults={"refuse": True})
    await lab.order(away, drop=True)
    with pytest.raises(Conflict, match=away):
        await client.adopt(one.owner)
    await lab.order(away, faults={"refuse": False})
    async with asyncio.timeout(60):
        while True:
            try:
                done = await client.adopt(one.owner)
                break
            except Conflict:  # the host is back, and not yet asked again
                await asyncio.sleep(0.3)
    assert (done.groups, done.ended) == (("chat",), ())
    after = await lab.until("chat", serving(2, 1))
    assert {(m.id, m.pid, m.generation, m.port) for m in after.members} == {
        (m.id, m.pid, m.generation, m.port) for m in before.members
    }
    assert after.endpoint == before.endpoint
    assert not after.config_changed
    assert await lab.asked(lambda c: c.deployment("chat")) == saved
    await chat(after)

    await lab.asked(lambda c: c.scale("chat", {"prefill": 1, "decode": 2}))
    await lab.until("chat", serving(1, 2))
    await lab.asked(lambda c: c.delete("chat"))
    await lab.until_gone("chat")
    assert lab.living() == []
    assert lab.directories() == set()


async def test_two_backends_never_hold_the_same(lab: Lab) -> None:
    """Two stores, the same hosts, more wanted than there is: each gets what is whole, or waits."""
    other = Lab(lab.root)
    other.inventory, other.state = lab.inventory, lab.root / "state2"
    other.state.mkdir(mode=0o700)
    shutil.copy(lab.state / "known_hosts", other.state / "known_hosts")
    try:
        await asyncio.gather(lab.add_hosts(), other.add_hosts())
        wants = {lab: ("one", "two"), other: ("three", "four")}
        await asyncio.gather(
            *(
                b.asked(lambda c, n=name: c.apply(deployment(lab.model, n)))
                for b, names in wants.items()
                for name in names
            )
        )
        # eight members want six accelerators: three groups run, one waits for its turn
        async with asyncio.timeout(120):
            while True:
                groups = [g for b in wants for g in await b.asked(lambda c: c.groups())]
                lab.watch.check()
                up = [g for g in groups if g.status == "Running"]
                waits = [g for g in groups if any(m.id == "placement" for m in g.marks)]
                if len(up) == 3 and len(waits) == 1:
                    break
                await asyncio.sleep(0.2)
        assert len({m.owner for m in lab.watch.see()}) == 2
        assert waits[0].members == ()
        owner = {n: b for b, names in wants.items() for n in names}
        leaving = up[0].name
        await owner[leaving].asked(lambda c: c.delete(leaving))
        await owner[waits[0].name].until(waits[0].name, serving(1, 1))
    finally:
        await other.stop_backend()
