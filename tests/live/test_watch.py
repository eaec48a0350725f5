"""The watch itself: it sees a mixed router, a double and a double booking, and nothing else."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from tests.live.lab import Lab, deployment, serving
from tests.live.watch import Found, Watch, both, doubles, known_to, mixed, urls


def member(name: str, revision: str = "r1", port: int = 1, **more: object) -> Found:
    about = {
        "host": "h", "instance": name, "owner": "o", "group": "g", "role": "prefill",
        "revision": revision, "generation": 1, "address": "127.0.0.1", "port": port,
        "alive": ((1, 10, 5),), **more,
    }  # fmt: skip
    return Found(**about)  # type: ignore[arg-type]


def test_two_generations_and_two_holders_are_doubles() -> None:
    twice = member("a", alive=((1, 10, 5), (2, 11, 9)), accelerators=(0,), ports=(7, 8))
    other = member("b", accelerators=(0, 1), ports=(8, 9))
    elsewhere = member("c", host="h2", accelerators=(0,), ports=(8,))
    assert len(doubles([twice, other, elsewhere])) == 3
    assert doubles([member("a", ports=(7,)), member("b", ports=(8,))]) == []


def test_only_what_lasted_counts() -> None:
    """A port handed on between two looks was never held twice."""
    gone, came = member("a", ports=(8,)), member("b", ports=(8,))
    assert doubles(both([gone], [came])) == []
    assert doubles(both([gone, came], [gone, came])) != []
    older, newer = member("a"), member("a", alive=((2, 11, 9),), generation=2)
    assert [f.alive for f in both([older], [newer])] == [()]


def test_a_router_may_hold_members_of_its_own_kind_only() -> None:
    router = member("r", role="router", port=3)
    old, new = member("p", port=1), member("d", "r2", port=2)
    assert mixed(router, [old.url], [router, old, new]) == []
    assert len(mixed(router, [old.url, new.url], [router, old, new])) == 1
    dead = member("d", "r2", port=2, alive=())
    assert mixed(router, [dead.url], [router, dead]) == []
    assert urls(["--prefill", "http://h:1/", "--decode=http://h:2", "x"]) == [
        "http://h:1",
        "http://h:2",
    ]


def test_a_router_knows_what_it_lists_and_what_it_was_started_with_where_it_lists_nothing() -> None:
    words = ("vllm-router", "--prefill", "http://h:1")
    static = member("r", role="router", told=words)
    assert known_to(static, ["http://h:2"]) == ["http://h:2"]
    assert known_to(static, None) == ["http://h:1"]
    assert known_to(member("r", role="router", told=(*words, "--enable-igw")), None) == []


@pytest.mark.slow
@pytest.mark.timeout(480)
async def test_it_sees_a_stranger_in_a_living_router(lab: Lab) -> None:
    """A member of another group is added behind the backend's back; the watch tells."""
    await lab.add_hosts()
    for name in ("one", "two"):
        await lab.asked(lambda c, n=name: c.apply(deployment(lab.model, n)))
    first = await lab.until("one", serving(1, 1))
    second = await lab.until("two", serving(1, 1))
    assert lab.watch.looks > 0
    assert lab.watch.registries > 0
    lab.watch.check()
    await lab.stop_backend()
    strange = next(m for m in second.members if m.role == "decode")
    router = next(m for m in first.members if m.role == "router")
    row = {
        "url": f"http://{strange.address}:{strange.port}",
        "model_id": "one",
        "worker_type": "decode",
    }
    async with httpx.AsyncClient(trust_env=False) as http:
        answer = await http.post(f"http://{router.address}:{router.port}/workers", json=row)
    assert answer.status_code == 200
    async with asyncio.timeout(20):
        while not lab.watch.problems:
            await asyncio.sleep(0.05)
    (said,) = lab.watch.problems
    assert router.id in said
    assert strange.id in said
    with pytest.raises(AssertionError, match=strange.id):
        lab.watch.check()
    lab.watch.problems.clear()


async def test_a_watch_that_dies_fails_the_test(tmp_path: Path) -> None:
    watch = Watch(tmp_path)
    watch.see = lambda: 1 / 0  # type: ignore[assignment, return-value]
    watch.start()
    await asyncio.sleep(0.05)
    with pytest.raises(AssertionError, match="the watch ended"):
        await watch.stop()
