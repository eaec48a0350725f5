"""Real vLLM on this machine's CPU, with NIXL, behind the real router: `make test-real`.

One story on one embedded host: 1P1D, then 2P1D, then what goes wrong. Each stage prints what was
seen and how long it took; the first that does not hold ends the run with exit code 1. It is no part
of continuous integration: three engines need 9 GB and some patience.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from backend.domain.errors import NotFound, PdError
from backend.domain.views import GroupView, MemberView
from pdtui.cli.demo import Broken, chat
from tests.live.lab import Lab, deployment, serving

PATIENCE_S = 900.0
CHAT_LIMIT_S = 180.0
TRIES = 5
STAGES = ("core", "port", "two", "mismatch", "path")
"""What follows on a 1P1D that works: EngineCore killed, a port taken while its prefill restarts,
2P1D, a KV dtype on one side only, a model's path on one side only."""
ENGINE_ENV = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "UCX_NET_DEVICES": "lo",
}
SETTINGS = {
    "PDTUI_START_LIMIT_S": "900",
    "PDTUI_HANG_LIMIT_S": "300",
    "PDTUI_CANARY_FORMED": "0",
    "PDTUI_CANARY_EVERY_S": "0",
    "PDTUI_CANARY_TIMEOUT_S": "180",
    "PDTUI_HEALTH_TIMEOUT_S": "60",
    "PDTUI_METRICS_TIMEOUT_S": "30",
}


class Story:
    """One laboratory with real engines, and what is kept of it."""

    def __init__(self, real: Path, keep: Path, root: Path) -> None:
        self.real, self.keep, self.root = real, keep, root
        self.lab = Lab(root, hosts=1, accelerators=4)
        self.lab.env |= SETTINGS
        self.lab.patience_s = PATIENCE_S
        self.began = time.monotonic()

    def say(self, text: str) -> None:
        """One line, with the seconds since the start."""
        print(f"[{time.monotonic() - self.began:5.0f} s] {text}", flush=True)

    def document(self, **roles: int) -> dict[str, Any]:
        """A deployment of the tiny model."""
        words = ["--max-model-len", "2k", "--enforce-eager"]
        document = deployment(
            self.real / "model", parameters=words, env=ENGINE_ENV, served_model_name="tiny", **roles
        )  # fmt: skip
        cpu = {"kv_buffer_device": "cpu"}
        document["spec"]["disaggregation"]["connector_extra"] = {"prefill": cpu, "decode": cpu}
        return document

    async def until(self, what: str, done: Callable[[GroupView], bool]) -> GroupView:
        """The group once `done`; says how long that took."""
        began = time.monotonic()
        group = await self.lab.until("chat", done, PATIENCE_S)
        self.say(f"{what} after {time.monotonic() - began:.0f} s")
        return group

    async def save(self, name: str, group: GroupView) -> None:
        """Keep every page and the end of every log as samples."""
        self.keep.mkdir(parents=True, exist_ok=True)
        async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
            for m in group.members:
                bands = {b.name: b.base for b in m.bands}
                port = bands.get("prometheus", m.port)
                try:
                    page = (await http.get(f"http://{m.address}:{port}/metrics")).text
                    (self.keep / f"{name}-{short(m)}.metrics.txt").write_text(page)
                except httpx.HTTPError as error:
                    self.say(f"no page of {m.id}: {error!r}")
        await self.save_logs(name, group)

    async def save_logs(self, name: str, group: GroupView) -> None:
        """Keep the end of every log, of each generation that wrote one."""
        self.keep.mkdir(parents=True, exist_ok=True)
        for m in group.members:
            for generation in range(1, m.generation + 1):
                try:
                    log = await self.lab.asked(
                        lambda c, key=m.id, g=generation: c.log(
                            key, generation=g, tail_bytes=48_000
                        )
                    )
                except NotFound:  # this one was never started
                    continue
                (self.keep / f"{name}-{short(m)}-g{generation}.log").write_text(log.text)


def short(m: MemberView) -> str:
    """`decode-3tmv`: a member's name without its group's."""
    return m.id.partition("-")[2]


def members(group: GroupView, role: str) -> list[MemberView]:
    return [m for m in group.members if m.role == role]


def verdict(group: GroupView) -> str:
    return group.effect.verdict if group.effect else ""


async def working(story: Story, prefill: int) -> GroupView:
    """`prefill`P1D: a prompt's tokens are external on decode, and every pair moves KV."""
    lab, name = story.lab, f"{prefill}p1d"
    if prefill == 1:
        await lab.asked(lambda c: c.apply(story.document(prefill=1, decode=1)))
    else:
        await lab.asked(lambda c: c.scale("chat", {"prefill": prefill}))
    group = await story.until(f"{name} serves", serving(prefill, 1))
    (decode,) = members(group, "decode")
    before = (await lab.asked(lambda c: c.member_metrics(decode.id))).raw
    asked = 0
    for _ in range(3):
        pair, tokens = await answered(story, group)
        asked += tokens
        story.say(f"answered by {' -> '.join(pair)}, {tokens} prompt tokens")
    group = await story.until("effectiveness is good", lambda g: verdict(g) == "good")
    assert group.effect is not None
    grown = await grown_to(story, decode.id, before, asked)
    story.say(f"{grown} for {asked} prompt tokens; share {group.effect.numbers['share']}")
    assert group.effect.numbers["share"] >= 0.95
    run = await lab.asked(lambda c: c.canary("chat"))
    for p in (*run.pairs, run.router):
        story.say(f"canary {p.prefill} -> {p.decode}: {p.verdict} {p.seconds:.2f} s {p.text}")
    assert run.ok, run.note
    assert len(run.pairs) == prefill
    assert all(p.moved for p in run.pairs)
    await story.save(name, group)
    return group


async def answered(story: Story, group: GroupView) -> tuple[tuple[str, ...], int]:
    """The pair that answered one request, and its prompt tokens.

    Three engines on two cores can be too slow for NIXL's own limits; what a failure was is told,
    as the diagnosis names it, and the request is sent again."""
    for _ in range(TRIES):
        try:
            pair, _, tokens = await chat(group, limit_s=CHAT_LIMIT_S)
        except Broken as error:
            story.say(f"not answered: {str(error)[:200]}")
            told = await story.lab.asked(lambda c: c.diagnose_group("chat"))
            for found in (d.first for d in told.members if d.name in told.causes):
                story.say(f"diagnosis: {found.rule}: {found.cause.en}")
            await asyncio.sleep(5)
        else:
            return pair, tokens
    raise AssertionError(f"{TRIES} requests in a row were not answered")


async def grown_to(
    story: Story, decode: str, before: Mapping[str, float], tokens: int
) -> dict[str, float]:
    """A decode's token counters less `before`, once so many tokens came to it as KV."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            now = (await story.lab.asked(lambda c: c.member_metrics(decode))).raw
            grown = {k: now[k] - before.get(k, 0.0) for k in now if k.startswith("tokens_")}
            if grown.get("tokens_external", 0.0) >= tokens:
                return grown
            await asyncio.sleep(1)


def other_kv_dtype(story: Story, prefill: str = "") -> dict[str, Any]:
    """The same deployment, its decode with another KV dtype; `prefill` says its own aloud."""
    document = story.document(prefill=1, decode=1)
    common, roles = document["spec"]["parameters"], document["spec"]["roles"]
    roles["decode"]["parameters"] = [*common, "--kv-cache-dtype", "fp8"]
    if prefill:
        roles["prefill"]["parameters"] = [*common, "--kv-cache-dtype", prefill]
    return document


async def mismatched(story: Story) -> None:
    """A KV dtype on one side only: refused where both sides are known; where one is silent it can
    be run, and the canary then names what the engines say of each other."""
    spoken = other_kv_dtype(story, "bfloat16")
    with pytest.raises(PdError) as refusal:
        await story.lab.asked(lambda c: c.apply(spoken, dry_run=True))
    story.say(f"refused: {refusal.value.problem.rule}: {refusal.value.problem.message}")
    await stands_and_fails(story, other_kv_dtype(story), "kv-dtype")


async def other_path(story: Story) -> None:
    """Decode's own program hands the engine the same weights by another path, which no document
    says: only the engines can tell, and the canary repeats it."""
    link, program = story.root / "renamed-model", story.root / "renamed" / "bin" / "vllm"
    link.symlink_to(story.real / "model")
    program.parent.mkdir(parents=True)
    program.write_text(
        f'#!/bin/sh\nshift 2 # serve MODEL\nexec {story.real}/venv/bin/vllm serve {link} "$@"\n'
    )
    program.chmod(0o755)
    document = story.document(prefill=1, decode=1)
    document["spec"]["roles"]["decode"]["executable"] = str(program)
    await stands_and_fails(story, document, "model-path")


async def stands_and_fails(story: Story, document: dict[str, Any], name: str) -> None:
    """Every engine of the restarted group is healthy, and the canary says why no KV moves."""
    saved = await story.lab.asked(lambda c: c.apply(document))
    for mark in saved.marks:
        story.say(f"mark {mark.id}: {mark.text[:200]}")
    await story.lab.asked(lambda c: c.restart("chat"))
    group = await story.until("the engines of the mismatched group stand", engines_stand)
    run = await story.lab.asked(lambda c: c.canary("chat"))
    story.say(f"canary: {run.note}")
    assert not run.ok
    assert run.pairs[0].verdict in ("failed", "not_moved")
    told = await story.lab.asked(lambda c: c.diagnose_group("chat"))
    found = [d.first for d in told.members if d.first is not None]
    for one in found:
        story.say(f"diagnosis: {one.rule}: {one.cause.en} {' '.join(n.en for n in one.notes)}")
    assert "pairing.nixl_hash" in [one.rule for one in found], found
    await story.save(name, group)


def engines_stand(group: GroupView) -> bool:
    """One prefill and one decode of what was saved are healthy. The group does not come to Running:
    for that a request has to go through, and none can."""
    counts = [c for role, c in group.roles.items() if role != "router"]
    return not group.config_changed and all(c.ready == c.present == 1 for c in counts)


async def core_killed(story: Story, group: GroupView) -> GroupView:
    """Decode's EngineCore is killed: the member ends, is an alert, and comes back."""
    (decode,) = members(group, "decode")
    core = child(decode.pid, "EngineCore")
    story.say(f"kill -9 the EngineCore of {decode.id} (pid {core})")
    os.kill(core, signal.SIGKILL)
    seen = await story.until(
        "it is an alert", lambda g: any(a.instance == decode.id for a in g.alerts)
    )
    story.say(f"alert: {seen.alerts[0].text}")
    healed = await story.until(
        "it serves again",
        lambda g: serving(1, 1)(g) and members(g, "decode")[0].generation > decode.generation,
    )
    events = await story.lab.asked(lambda c: c.events("chat"))
    said = [e.message for e in events if e.instance == decode.id and e.level == "error"]
    for line in said:
        story.say(f"event: {line[:200]}")
    await story.save_logs("core-killed", healed)
    found = await story.lab.asked(
        lambda c: c.diagnose_instance(decode.id, generation=decode.generation)
    )
    assert found.first is not None
    story.say(f"diagnosis: {found.first.rule}: {found.first.cause.en}")
    assert found.first.rule == "program.core_gone", found.first
    return healed


async def port_taken(story: Story, group: GroupView) -> GroupView:
    """A stranger takes the side channel's port while its prefill restarts: it is named."""
    (prefill,) = members(group, "prefill")
    side = next(b.base for b in prefill.bands if b.name != "http")
    os.killpg(os.getpgid(prefill.pid), signal.SIGKILL)
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        deadline = time.monotonic() + 30
        while True:
            try:
                taken.bind((prefill.address, side))
                break
            except OSError:
                assert time.monotonic() < deadline, f"port {side} was never free"
                await asyncio.sleep(0.05)
        taken.listen()
        story.say(f"{prefill.id} is killed and its port {side} is taken")
        seen = await story.until(
            "the port is named",
            lambda g: any(str(side) in m.note for m in g.members if m.id == prefill.id),
        )
        story.say(f"note: {members(seen, 'prefill')[0].note[:300]}")
        await story.save_logs("port-taken", seen)
    healed = await story.until("the prefill serves again", serving(1, 1))
    run = await story.lab.asked(lambda c: c.canary("chat"))
    story.say(f"after the prefill's restart: canary {'well' if run.ok else run.note}")
    assert run.ok, run.note
    return healed


def child(pid: int, title: str) -> int:
    """The descendant whose process title holds `title`. Raises AssertionError when none does."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name = stat.with_name("cmdline").read_bytes().replace(b"\0", b" ").decode()
            group = int(stat.read_text().rpartition(")")[2].split()[2])
        except (OSError, ValueError):
            continue
        if title in name and group == os.getpgid(pid):
            return int(stat.parent.name)
    raise AssertionError(f"no {title} in the process group of {pid}")


async def run(real: Path, keep: Path, stages: Collection[str]) -> None:
    """The whole story."""
    venv, ours = str(real / "venv"), str(Path(sys.executable).parent.parent)
    with tempfile.TemporaryDirectory(prefix="pdtui-real-") as folder:
        story = Story(real, keep, Path(folder))
        await story.lab.up()
        story.lab.inventory = [
            {**h, "executables": {"vllm": venv, "vllm-router": ours}} for h in story.lab.inventory
        ]
        try:
            await story.lab.add_hosts()
            group = await working(story, 1)
            if "core" in stages:
                group = await core_killed(story, group)
            if "port" in stages:
                group = await port_taken(story, group)
            if "two" in stages:
                await working(story, 2)
                await story.lab.asked(lambda c: c.scale("chat", {"prefill": 1}))
                await story.until("1p1d again", serving(1, 1))
            if "mismatch" in stages:
                await mismatched(story)
            if "path" in stages:
                await other_path(story)
        except Exception:
            print(story.lab.told())
            await story.save("failed", await story.lab.asked(lambda c: c.group("chat")))
            raise
        finally:
            await story.lab.down()
        story.say("everything held")


def main() -> None:
    """`python -m tests.real [--real DIR] [--keep DIR] [--stages core port two mismatch path]`."""
    parser = argparse.ArgumentParser(prog="tests.real")
    parser.add_argument("--real", type=Path, default=Path(".real"))
    parser.add_argument("--keep", type=Path, default=Path("tests/data/real"))
    parser.add_argument("--stages", nargs="*", default=STAGES, choices=STAGES)
    args = parser.parse_args()
    if not (args.real / "venv/bin/vllm").exists():
        sys.exit(f"{args.real} holds no real engines: make real-venv builds them (3 GB)")
    asyncio.run(run(args.real.resolve(), args.keep, args.stages))


main()
