"""A group's life timed beside the same steps done by hand on the same hosts, in the same run.

`python -m tests.bench.life [--rounds N]`. By hand means: the same program with the same arguments,
started with `ssh`, its health path and the router's membership asked with `curl` every 50 ms.
Nothing here asserts a time.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import httpx

from backend.domain.views import GroupView, MemberView
from tests.bench.hand import Hand, until
from tests.live.lab import Lab, deployment, serving
from tests.live.watch import Found

AIM = 1.2


@dataclass
class Figures:
    """Seconds of every round, by what was timed."""

    formed: list[float] = field(default_factory=list)
    formed_by_hand: list[float] = field(default_factory=list)
    scaled: list[float] = field(default_factory=list)
    scaled_by_hand: list[float] = field(default_factory=list)
    noticed: list[float] = field(default_factory=list)
    unlisted: list[float] = field(default_factory=list)


class Round:
    """One round in a laboratory of its own group."""

    def __init__(self, lab: Lab, http: httpx.AsyncClient, figures: Figures) -> None:
        self.lab, self.http, self.figures = lab, http, figures

    async def ok(self, url: str) -> bool:
        """Whether the address answers 200."""
        try:
            return (await self.http.get(url)).status_code == httpx.codes.OK
        except httpx.HTTPError:
            return False

    async def listed(self, router: str, member: str) -> bool:
        """Whether a router lists a member."""
        try:
            rows = (await self.http.get(f"{router}/workers")).json()["workers"]
        except (httpx.HTTPError, ValueError, KeyError):
            return False
        return any(r["url"] == member for r in rows)

    async def run(self) -> None:
        """Form, scale, lose a member; then the same router and member by hand."""
        client = await self.lab.client()
        await client.apply(deployment(self.lab.model))
        members = await self._placed(2)
        await until(lambda: self._all_healthy(members), 0.02)
        began = time.monotonic()
        group = await self.lab.until("chat", lambda g: g.status == "Running")
        self.figures.formed.append(time.monotonic() - began)
        await self._router_by_hand(members)

        began = time.monotonic()
        await client.scale("chat", {"prefill": 2})
        (new,) = [m for m in await self._placed(3) if m.id not in {x.id for x in members}]
        router = next(m for m in group.members if m.role == "router")
        at = f"http://{router.address}:{router.port}"
        url = f"http://{new.address}:{new.port}"
        self.figures.scaled.append(await until(lambda: self.listed(at, url)) - began)
        await self.lab.until("chat", serving(2, 1))
        line, env = launch_of(await self._pid(new.id))

        began = time.monotonic()
        os.kill(await self._pid(new.id), signal.SIGKILL)
        seen = asyncio.create_task(until(lambda: self._down(new.id), 0.02))
        self.figures.unlisted.append(await until(lambda: self._gone(at, url), 0.02) - began)
        self.figures.noticed.append(await seen - began)
        await self.lab.until("chat", serving(2, 1))
        await client.scale("chat", {"prefill": 1})
        left = await self.lab.until("chat", serving(1, 1))
        if all(m.id != new.id for m in left.members):
            await self._member_by_hand(new.host, line, env, at, url)
        await client.delete("chat")
        await self.lab.until_gone("chat")

    async def _placed(self, count: int) -> list[MemberView]:
        group: GroupView = await self.lab.until(
            "chat", lambda g: sum(m.role != "router" for m in g.members) == count
        )
        return [m for m in group.members if m.role != "router"]

    async def _all_healthy(self, members: list[MemberView]) -> bool:
        return all([await self.ok(f"http://{m.address}:{m.port}/health") for m in members])

    async def _pid(self, key: str) -> int:
        group = await self.lab.asked(lambda c: c.group("chat"))
        return int(next(m.pid for m in group.members if m.id == key))

    async def _down(self, key: str) -> bool:
        group = await self.lab.asked(lambda c: c.group("chat"))
        return all(m.state != "ready" or m.generation > 1 for m in group.members if m.id == key)

    async def _gone(self, router: str, member: str) -> bool:
        return not await self.listed(router, member)

    async def _router_by_hand(self, members: list[MemberView]) -> None:
        """The same router on other ports, its members added one by one, one request."""
        told: Found = next(f for f in self.lab.watch.see() if f.role == "router" and f.alive)
        argv = list(told.told)
        ports = {str(p): str(p + 30) for p in told.ports}
        argv = [ports.get(word, word) for word in argv]
        _, env = launch_of(await self._pid(members[0].id))
        hand = self._hand(told.host)
        began = time.monotonic()
        pid = await hand.start(argv, env, self.lab.root)
        try:
            at = f"http://{told.address}:{told.port + 30}"
            await until(lambda: hand.ok(f"{at}/health"))
            for m in members:
                await hand.add(at, f"http://{m.address}:{m.port}", m.role)
            body = {"model": "chat", "prompt": "Is it there?", "max_tokens": 2}
            await hand.post(f"{at}/v1/completions", body)
            self.figures.formed_by_hand.append(time.monotonic() - began)
        finally:
            os.killpg(pid, signal.SIGKILL)

    async def _member_by_hand(
        self, host: str, line: list[str], env: dict[str, str], router: str, url: str
    ) -> None:
        """The member that was there, where it was, waited for and added."""
        hand = self._hand(host)
        began = time.monotonic()
        pid = await hand.start(line, env, self.lab.root)
        try:
            await until(lambda: hand.ok(f"{url}/health"))
            await hand.add(router, url, "prefill")
            self.figures.scaled_by_hand.append(time.monotonic() - began)
        finally:
            os.killpg(pid, signal.SIGKILL)

    def _hand(self, host: str) -> Hand:
        row = next(h for h in self.lab.inventory if h["name"] == host)
        return Hand(row, self.lab.state / "known_hosts")


def launch_of(pid: int) -> tuple[list[str], dict[str, str]]:
    """A living process's own words and environment."""
    proc = Path(f"/proc/{pid}")
    words = [w.decode() for w in (proc / "cmdline").read_bytes().split(b"\0") if w]
    pairs = [x.decode().partition("=") for x in (proc / "environ").read_bytes().split(b"\0") if x]
    return words, {k: v for k, _, v in pairs}


async def measure(rounds: int) -> Figures:
    """Every round in one laboratory."""
    figures = Figures()
    with tempfile.TemporaryDirectory(prefix="pdtui-bench-") as folder:
        lab = Lab(Path(folder))
        await lab.up()
        try:
            await lab.add_hosts()
            async with httpx.AsyncClient(trust_env=False, timeout=10) as http:
                for _ in range(rounds):
                    await Round(lab, http, figures).run()
                    lab.watch.problems.clear()  # the router by hand is none of the backend's
        finally:
            await lab.down()
    return figures


def report(f: Figures) -> str:
    """The medians as lines."""
    lines = []
    for what, ours, hand in (
        ("last member healthy -> Running", f.formed, f.formed_by_hand),
        ("scale command -> in the router", f.scaled, f.scaled_by_hand),
    ):
        text = f"{what:<38} {median(ours):6.2f} s"
        if hand:
            ratio = median(ours) / median(hand)
            text += f"   by hand {median(hand):6.2f} s   ratio {ratio:.2f} (aim {AIM})"
        lines.append(text)
    lines += [
        f"{'kill -9 of an idle member -> state':<38} {median(f.noticed):6.2f} s   (aim 3 s)",
        f"{'kill -9 of an idle member -> unlisted':<38} {median(f.unlisted):6.2f} s   (aim 3 s)",
    ]
    return "\n".join(lines)


def main() -> None:
    """Prints the medians."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.life")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    found: Any = asyncio.run(measure(options.rounds))
    print(report(found))


if __name__ == "__main__":
    main()
