"""Many groups saved at once, beside the same programs started bare on the same machine.

`python -m tests.bench.rollout [--groups N] [--hosts N] [--hung N] [--command]`. Bare means: the
very same commands without hosts between, one program after another, each waited for until it
answers. `--hung` hosts accept connections and never say anything; `--command` saves by one
`pdtui apply` of a folder. Nothing here asserts a time.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

from pdtui.state.yamltext import dump
from tests.bench.life import launch_of, until
from tests.bench.runner import BenchError
from tests.live.lab import Lab, deployment
from tests.live.watch import Found

PATIENCE_S = 900.0


@dataclass(frozen=True)
class Program:
    """One started program: its words, environment and health address; routers come last."""

    order: int
    argv: list[str]
    env: dict[str, str]
    health: str


async def rolled_out(lab: Lab, groups: int) -> float:
    """Seconds from the first save until every group is Running."""
    client = await lab.client()
    names = [f"g{n:02d}" for n in range(groups)]
    began = time.monotonic()
    await asyncio.gather(*(client.apply(deployment(lab.model, n)) for n in names))
    async with asyncio.timeout(PATIENCE_S):
        while not all(g.status == "Running" for g in await client.groups()):
            await asyncio.sleep(0.25)
    return time.monotonic() - began


async def applied(lab: Lab, groups: int) -> float:
    """Seconds of `pdtui apply -f FOLDER --yes --wait` on a file for each group."""
    await lab.client()
    folder = lab.root / "documents"
    folder.mkdir()
    for n in range(groups):
        name = f"g{n:02d}"
        (folder / f"{name}.yaml").write_text(dump(deployment(lab.model, name)))
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "pdtui", "--state-dir", str(lab.state),
        "apply", "-f", str(folder), "--yes", "--wait", "--timeout", str(PATIENCE_S),
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    _, said = await process.communicate()
    if process.returncode:
        raise BenchError(f"pdtui apply left with {process.returncode}: {said.decode()[-500:]}")
    return time.monotonic() - began


def programs(found: Iterable[Found]) -> list[Program]:
    """What runs on the hosts, members before routers, as it was asked for: routers rewrite what
    `/proc` shows of their words."""
    living = [(f, launch_of(f.alive[-1][1])[1]) for f in found if f.alive]
    made = [
        Program(f.role == "router", _found(f.told), env, f"{f.url}/health") for f, env in living
    ]
    return sorted(made, key=lambda p: p.order)


def _found(told: Sequence[str]) -> list[str]:
    """A command with its program where this Python's own are, if it is one of them."""
    here = Path(sys.executable).with_name(told[0])
    return [str(here) if here.exists() else told[0], *told[1:]]


async def bare(lab: Lab, wanted: list[Program], http: httpx.AsyncClient) -> float:
    """Seconds to start every program directly, one after another."""

    async def answers(url: str) -> bool:
        try:
            return (await http.get(url)).status_code == httpx.codes.OK
        except httpx.HTTPError:
            return False

    started = []
    began = time.monotonic()
    try:
        for p in wanted:
            started.append(
                await asyncio.create_subprocess_exec(
                    *p.argv, env=p.env, cwd=lab.root, start_new_session=True,
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                )
            )  # fmt: skip
            await until(lambda p=p: answers(p.health))  # type: ignore[misc]
        return time.monotonic() - began
    finally:
        for process in started:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
        await asyncio.gather(*(process.wait() for process in started))


async def measure(
    groups: int, hosts: int, hung: int, *, command: bool = False
) -> tuple[float, float, int]:
    """Seconds of ours and of bare, and how many programs."""
    with tempfile.TemporaryDirectory(prefix="pdtui-rollout-") as folder:
        lab = Lab(Path(folder), hosts=hosts)
        await lab.up()
        await lab.watch.stop()  # it would read every directory ten times a second
        try:
            await lab.add_hosts()
            for host in lab.inventory[-hung:] if hung else ():
                await lab.order(host["name"], faults={"mute": True})
                await lab.order(host["name"], drop=True)
            ours = await (applied if command else rolled_out)(lab, groups)
            client = await lab.client()
            views = await client.groups()
            wanted = programs(lab.watch.see())
            await asyncio.gather(*(client.delete(g.name) for g in views))
            await asyncio.gather(*(lab.until_gone(g.name, PATIENCE_S) for g in views))
            await lab.stop_backend()
            async with httpx.AsyncClient(trust_env=False, timeout=10) as http:
                return ours, await bare(lab, wanted, http), len(wanted)
        finally:
            await lab.down()


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.rollout")
    parser.add_argument("--groups", type=int, default=50)
    parser.add_argument("--hosts", type=int, default=100)
    parser.add_argument("--hung", type=int, default=0)
    parser.add_argument("--command", action="store_true", help="by `pdtui apply -f FOLDER`")
    options = parser.parse_args()
    ours, rival, count = asyncio.run(
        measure(options.groups, options.hosts, options.hung, command=options.command)
    )
    hung = f", {options.hung} of them hung" if options.hung else ""
    print(
        f"{options.groups} groups on {options.hosts} hosts{hung}: Running after {ours:.1f} s; "
        f"their {count} programs bare, one by one: {rival:.1f} s; ratio {ours / rival:.2f}"
    )


if __name__ == "__main__":
    main()
