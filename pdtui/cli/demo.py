"""The demo: the main job on embedded hosts, with the console or as a story in lines."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from backend.domain.errors import Conflict, PdError
from backend.domain.views import EventView, GroupView, MemberView
from pdtui.cli.stage import NAME, Stage, document
from pdtui.cli.waiting import until, until_gone, until_ratio, until_restarted

if TYPE_CHECKING:
    from backend.client.http import HttpClient

PATIENCE_S = 60.0
CHAT_LIMIT_S = 30.0


class Broken(Exception):
    """The story did not go as it must."""


def interactive(hosts: int) -> None:
    """The console on a fresh stage; leaving it takes the stage down."""
    from pdtui.start import run

    stage = Stage(hosts)
    stage.up()

    async def connect() -> HttpClient:
        client = await stage.connect()
        await client.apply(document(stage.model))
        return client

    try:
        run(connect, ask_to_leave=False)
    finally:
        left = stage.down()
    if left:
        typer.echo(f"these processes of the demo still live: {left}", err=True)


def story(hosts: int) -> int:
    """The same job without a screen. Returns 0 only if every claim it prints was checked."""
    began = time.monotonic()
    # no canary: every token that is counted is one that the story asked for
    os.environ |= {"PDTUI_CANARY_FORMED": "0", "PDTUI_CANARY_EVERY_S": "0"}
    stage = Stage(hosts)
    try:
        stage.up()
        asyncio.run(_Story(stage, began).tell())
    except (Broken, PdError) as error:
        typer.echo(f"\nThe demo failed: {error}", err=True)
        return 1
    finally:
        left = stage.down()
    if left:
        typer.echo(f"\nThe demo failed: these processes still live: {left}", err=True)
        return 1
    typer.echo(f"\nDone in {time.monotonic() - began:.1f} s: no process and no port is left.")
    return 0


class _Story:
    """Tells one step after the other, each with its time and each checked."""

    def __init__(self, stage: Stage, began: float) -> None:
        self.stage, self.began = stage, began
        self.client: HttpClient
        self.last = ""

    def say(self, what: str, text: str) -> None:
        typer.echo(f"{time.monotonic() - self.began:6.2f} s  {what:<9} {text}")
        sys.stdout.flush()

    async def tell(self) -> None:
        self.client = await self.stage.connect()
        try:
            await self._hosts()
            await self._form()
            await self._ask("answer")
            await self._scale()
            await self._edit()
            await self._restart()
            await self._ask("answer")
            await self._delete()
        finally:
            await self.client.aclose()

    async def _hosts(self) -> None:
        hosts = await self.client.hosts()
        down = [f"{h.name}: {h.note}" for h in hosts if h.state != "up"]
        check(not down, "; ".join(down))
        cards = [a.type for h in hosts for a in h.accelerators]
        self.say("hosts", f"{', '.join(h.name for h in hosts)} answer over SSH: "
                 f"{len(cards)} x {cards[0]}")  # fmt: skip

    def _saw(self, g: GroupView) -> None:
        ratio = f"  Ratio {g.ratio}" + (f" (currently {g.currently})" if g.currently else "")
        phase = f"  [{g.phase.name} {g.phase.done}/{g.phase.total}]" if g.phase else ""
        line = f"{g.status}{ratio}{phase}"
        if line != self.last:
            self.last = line
            self.say("status", line)

    async def _form(self) -> None:
        self.say("save", f"{NAME}: 2 prefill, 1 decode, mode vllm-nixl")
        await self.client.apply(document(self.stage.model))
        serving = await until(
            self.client, NAME, lambda g: g.status == "Running" and not g.currently,
            PATIENCE_S, "form", self._saw,
        )  # fmt: skip
        events = await self.client.events(NAME)
        self._say_events(events, ("formed", "registered"))
        router = next(m for m in serving.members if m.role == "router")
        started = _first(events, "started", {router.id})
        for role in ("prefill", "decode"):
            ids = {m.id for m in serving.members if m.role == role}
            check(_first(events, "ready", ids).seq < started.seq,
                  f"the router started before a {role} was ready")  # fmt: skip
        self.say("order", "the router started after both roles had a ready member")

    def _say_events(self, events: Sequence[EventView], kinds: Sequence[str]) -> None:
        for event in events:
            if event.kind in kinds:
                self.say(event.kind, event.message)

    async def _ask(self, what: str) -> None:
        """One chat request from outside, and the proof that decode fetched its KV."""
        group = await self.client.group(NAME)
        check(group.endpoint is not None, "no endpoint is registered")
        decodes = [m for m in group.members if m.role == "decode"]
        before = sum([await fetched_tokens(m) for m in decodes])
        pair, answer, tokens = await chat(group)
        moved = sum([await fetched_tokens(m) for m in decodes]) - before
        names = {f"{m.address}:{m.port}": m.id for m in group.members}
        served = " -> ".join(names.get(p, p) for p in pair)
        check(len(pair) == 2 and all(p in names for p in pair), f"an unknown pair served: {pair}")
        check(moved >= tokens > 0, f"decode fetched {moved:.0f} of {tokens} prompt tokens")
        self.say(what, f"{answer!r}")
        self.say("pair", f"{served}; {moved:.0f} of {tokens} prompt tokens came as KV")

    async def _scale(self) -> None:
        before = await self.client.group(NAME)
        self.say("scale", "prefill 2 -> 3")
        await self.client.scale(NAME, {"prefill": 3})
        after = await until(
            self.client, NAME,
            lambda g: g.roles["prefill"].ready == 3 and all(
                m.in_router for m in g.members if m.role != "router"
            ),
            PATIENCE_S, "scale", self._saw,
        )  # fmt: skip
        self._check_unmoved(before, after)
        self.say("scaled", "3:1; the router knows the new member; every other pid is the same")

    def _check_unmoved(self, before: GroupView, after: GroupView) -> None:
        now = {m.id: m for m in after.members}
        for m in before.members:
            same = m.id in now and (now[m.id].pid, now[m.id].generation) == (m.pid, m.generation)
            check(same and alive(m.pid), f"{m.id} moved")

    async def _edit(self) -> None:
        before = await self.client.group(NAME)
        edited = document(self.stage.model, decode=("--max-num-seqs", "128"), prefills=3)
        after = await self.client.apply(edited)
        check(after.config_changed, "the edit did not mark the group")
        self._check_unmoved(before, after)
        self.say("edit", "Config changed, and nothing moved: " + "; ".join(after.changes))
        try:
            await self.client.scale(NAME, {"decode": 2})
        except Conflict as refusal:
            check(refusal.problem.rule == "life.stale", str(refusal))
            self.say("refused", f"{refusal.problem.message} {refusal.problem.remedy}")
        else:
            raise Broken("a scale-up was not refused while the configuration is changed")

    async def _restart(self) -> None:
        before = await self.client.group(NAME)
        since = (await self.client.events(NAME, 1))[-1].seq
        self.say("restart", f"the whole group: {len(before.members)} instances")
        await self.client.restart(NAME)
        await until_restarted(self.client, NAME, PATIENCE_S, self._saw)
        after = await until_ratio(self.client, NAME, PATIENCE_S)
        events = [e for e in await self.client.events(NAME) if e.seq > since]
        old = {m.id for m in before.members}
        gone = [e for e in events if e.kind == "gone" and e.instance in old]
        check({e.instance for e in gone} == old, "not every old instance was confirmed gone")
        check(not any(alive(m.pid) for m in before.members), "an old process still lives")
        first = min(started_at(m.pid) for m in after.members)
        last = max(e.at for e in gone)
        check(first >= last - TICK_S, "a new process started before the last old one was gone")
        check(not after.config_changed, "the group is still marked after the restart")
        check(after.endpoint == before.endpoint, "the endpoint moved")
        self._say_events(events, ("restart", "restarted"))
        self.say("restarted", f"{after.ratio}; the last old process was gone "
                 f"{max(first - last, 0):.2f} s before the first new one started")  # fmt: skip

    async def _delete(self) -> None:
        group = await self.client.group(NAME)
        await self.client.delete(NAME)
        await until_gone(self.client, NAME, PATIENCE_S)
        check(not any(alive(m.pid) for m in group.members), "a process outlived the deletion")
        for m in group.members:
            for port in (m.port, *(p for b in m.bands for p in b.ports)):
                check(not await listens(m.address, port), f"{m.address}:{port} is still open")
        self.say("deleted", f"{len(group.members)} instances; no process, no open port")


TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def check(held: bool, otherwise: str) -> None:
    """Go on only if it held."""
    if not held:
        raise Broken(otherwise)


def _first(events: Sequence[EventView], kind: str, ids: set[str]) -> EventView:
    found = [e for e in events if e.kind == kind and e.instance in ids]
    check(bool(found), f"no {kind} of {ids} is in the history")
    return found[0]


def alive(pid: int) -> bool:
    """Whether a process runs under this pid; a zombie does not."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def started_at(pid: int) -> float:
    """When the process started, epoch seconds, from the kernel's own record."""
    with open(f"/proc/{pid}/stat") as stat:
        ticks = int(stat.read().rpartition(")")[2].split()[19])
    with open("/proc/uptime") as uptime:
        up = float(uptime.read().split()[0])
    return time.time() - up + ticks * TICK_S


async def listens(address: str, port: int) -> bool:
    """Whether something takes a connection there."""
    try:
        async with asyncio.timeout(2):
            _, writer = await asyncio.open_connection(address, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


async def chat(
    group: GroupView, *, limit_s: float = CHAT_LIMIT_S
) -> tuple[tuple[str, ...], str, int]:
    """One chat request at the endpoint: the pair that served it, the answer, prompt tokens.

    Raises Broken when it is not answered well, within `limit_s` seconds."""
    import httpx

    if group.endpoint is None:
        raise Broken("no endpoint is registered")
    question = "What does a prefill hand to a decode, and over which network does it travel?"
    body: dict[str, Any] = {
        "model": group.endpoint.model,
        "messages": [{"role": "user", "content": question}],
        "max_tokens": 12,
    }
    async with httpx.AsyncClient(trust_env=False, timeout=limit_s) as http:
        try:
            reply = await http.post(f"{group.endpoint.url}/chat/completions", json=body)
        except httpx.HTTPError as error:
            raise Broken(f"the endpoint did not answer a chat request: {error!r}") from error
    check(reply.status_code == 200, f"the endpoint answered {reply.status_code}: {reply.text}")
    data = reply.json()
    _, _, rest = data["id"].partition("___prefill_addr_")
    prefill, _, rest = rest.partition("___decode_addr_")
    pair = tuple(p for p in (prefill, rest.partition("_")[0]) if p)
    return pair, data["choices"][0]["message"]["content"], data["usage"]["prompt_tokens"]


async def fetched_tokens(member: MemberView) -> float:
    """Prompt tokens that came to this member as KV from another."""
    import httpx
    from prometheus_client.parser import text_string_to_metric_families

    async with httpx.AsyncClient(trust_env=False, timeout=10) as http:
        page = await http.get(f"http://{member.address}:{member.port}/metrics")
    return sum(
        sample.value
        for family in text_string_to_metric_families(page.text)
        if family.name == "vllm:prompt_tokens_by_source"
        for sample in family.samples
        if sample.name.endswith("_total") and sample.labels["source"] == "external_kv_transfer"
    )
