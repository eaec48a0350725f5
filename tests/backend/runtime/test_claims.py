"""Claims on a real host: all or nothing, whoever asks, whatever listens."""

from __future__ import annotations

import asyncio
import socket

import pytest

from backend.adapters.facts import look
from backend.adapters.process import ClaimOrder
from backend.adapters.ssh.pool import SshPool
from backend.domain.errors import Conflict
from backend.domain.host import Claim
from tests.backend.runtime.conftest import Rig, free_ports


async def test_claims_are_read_back_and_shown_in_the_facts(rig: Rig, pool: SshPool) -> None:
    one, two = free_ports(2)
    await rig.runtime.claim(
        rig.host, [ClaimOrder("a.1", (0, 1), (one, two)), ClaimOrder("b", (), ())]
    )
    expected = [
        Claim(owner="me", instance="a.1", accelerators=(0, 1), ports=(one, two)),
        Claim(owner="me", instance="b"),
    ]
    assert await rig.runtime.claims(rig.host) == expected
    assert list((await look(pool, rig.host)).claims) == expected
    assert rig.folder("a.1").stat().st_mode & 0o777 == 0o700
    assert {s.state for s in await rig.runtime.statuses(rig.host)} == {"absent"}


async def test_all_or_nothing_and_every_clash_is_named(rig: Rig, rival: Rig) -> None:
    port, busy, fine = free_ports(3)
    await rival.runtime.claim(rival.host, [ClaimOrder("theirs", (3,), (port,))])
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", busy))
        listener.listen()
        orders = [ClaimOrder("x", (2,), (fine,)), ClaimOrder("y", (3,), (port, busy))]
        with pytest.raises(Conflict) as caught:
            await rig.runtime.claim(rig.host, orders)
    said = caught.value.problem.message
    assert "accelerator 3 is claimed by theirs of rival" in said
    assert f"port {port} is claimed by theirs of rival" in said
    assert f"port {busy} is listened on by a program that is not ours" in said
    assert [c["kind"] for c in caught.value.problem.values["clashes"]] == [
        "accelerator", "listener", "port",
    ]  # fmt: skip
    assert [c.instance for c in await rig.runtime.claims(rig.host)] == ["theirs"]
    assert not rig.folder("x").exists()


async def test_a_listener_on_a_port_we_hold_is_our_own(rig: Rig) -> None:
    (port,) = free_ports(1)
    await rig.claim("a", port)
    with socket.socket(socket.AF_INET6) as listener:
        listener.bind(("::1", port))
        listener.listen()
        await rig.claim("a", port)
        with pytest.raises(Conflict, match=f"port {port} is claimed by a of me"):
            await rig.claim("b", port)


async def test_two_orders_for_the_same_thing(rig: Rig) -> None:
    with pytest.raises(Conflict, match="accelerator 1 is claimed by a of the same request"):
        await rig.runtime.claim(rig.host, [ClaimOrder("a", (1,)), ClaimOrder("b", (1,))])


async def test_two_owners_at_once_exactly_one_wins(rig: Rig, rival: Rig) -> None:
    ports = free_ports(10)
    for number, port in enumerate(ports):
        results = await asyncio.gather(
            rig.runtime.claim(rig.host, [ClaimOrder(f"m{number}", (number,), (port,))]),
            rival.runtime.claim(rig.host, [ClaimOrder(f"r{number}", (number,), (port,))]),
            return_exceptions=True,
        )
        assert sorted(type(r).__name__ for r in results) == ["Conflict", "NoneType"]
    claims = await rig.runtime.claims(rig.host)
    assert sorted(c.ports[0] for c in claims) == sorted(ports)


async def test_anothers_instance_is_never_replaced(rig: Rig, rival: Rig) -> None:
    await rival.claim("a")
    with pytest.raises(Conflict, match="instance a belongs to rival"):
        await rig.claim("a")


async def test_a_crash_before_the_claim_leaves_nothing_held(rig: Rig) -> None:
    rig.folder("half").mkdir(parents=True)
    (rig.folder("half") / "claim.new").write_text("owner=rival\nports=1")
    assert await rig.runtime.claims(rig.host) == []
    await rig.claim("half")
    assert [c.owner for c in await rig.runtime.claims(rig.host)] == ["me"]


async def test_a_claim_of_the_same_instance_is_replaced(rig: Rig) -> None:
    one, two = free_ports(2)
    await rig.claim("a", one)
    await rig.claim("a", two)
    assert [c.ports for c in await rig.runtime.claims(rig.host)] == [(two,)]


async def test_names_that_are_paths_are_refused(rig: Rig) -> None:
    for name in ("../up", "a/b", "", ".x", "a;b", "a|b", "a b"):
        with pytest.raises(ValueError, match="instance id"):
            await rig.claim(name)
