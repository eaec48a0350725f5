"""The real router accepts what each mode passes it, and does with it what the panel says.

Runs the routers beside this Python; others can be named instead, as `NAME=/path/to/bin` pairs
separated by commas, in PD_ROUTERS (`sglang-router=/x/bin/python3`).
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import socket
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from backend.adapters.recipes import load_catalogue
from backend.domain.deployment import Deployment
from backend.domain.instance import Band
from backend.domain.mode import Mode
from backend.domain.render import Place, render_router
from backend.domain.rows import effective_policies
from backend.domain.worker_calls import (
    HttpCall,
    Peer,
    add_call,
    list_call,
    parse_workers,
    remove_call,
)

pytestmark = pytest.mark.slow

OTHERS = dict(p.split("=", 1) for p in os.environ.get("PD_ROUTERS", "").split(",") if "=" in p)
ROUTERS = {
    "vllm-router": str(Path(sys.executable).with_name("vllm-router")),
    "sglang-router": sys.executable,
} | OTHERS
ENGINE_OF = {"vllm": "vllm", "sglang": "sglang", "vllm-ascend": "vllm-ascend"}
REQUESTS = 12
CATALOGUE = load_catalogue()
MODES = [m for m in CATALOGUE.modes.values() if m.injects]


class StandIn:
    """A member as a router sees one: healthy, answering, counting what it was asked."""

    def __init__(self, role: str) -> None:
        self.role = role
        self.asked = 0
        self.server: uvicorn.Server | None = None
        self.port = 0

    async def __call__(self, scope: Any, receive: Callable[[], Any], send: Any) -> None:
        body = b""
        while scope["type"] == "http":
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        answer: Any = {"status": "ok"}
        if scope["path"] == "/query":
            answer = {"0": {"engine_id": f"e{self.port}", "worker_addr": {"0": {"0": "tcp://x:1"}}}}
        elif scope["path"] in ("/v1/completions", "/generate"):
            self.asked += 1
            answer = {
                "id": "x", "object": "text_completion", "model": "m", "created": 1,
                "choices": [{"index": 0, "text": "hello", "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
                "kv_transfer_params": {"remote_engine_id": "e", "remote_block_ids": [1]},
                "text": "hello", "meta_info": {},
            }  # fmt: skip
        text = json.dumps(answer).encode()
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": text})


@asynccontextmanager
async def stand_ins(*roles: str) -> AsyncIterator[list[StandIn]]:
    found, tasks = [], []
    for role in roles:
        app = StandIn(role)
        sock = socket.socket()
        sock.bind(("127.0.0.1", 0))
        app.port = sock.getsockname()[1]
        config = uvicorn.Config(app, log_level="critical", lifespan="off")
        app.server = uvicorn.Server(config)
        tasks.append(asyncio.create_task(app.server.serve(sockets=[sock])))
        found.append(app)
    try:
        yield found
    finally:
        for app in found:
            if app.server:
                app.server.should_exit = True
        await asyncio.gather(*tasks)


def free_ports(count: int) -> list[int]:
    held = [socket.socket() for _ in range(count)]
    try:
        for sock in held:
            sock.bind(("127.0.0.1", 0))
        return [sock.getsockname()[1] for sock in held]
    finally:
        for sock in held:
            sock.close()


def document(mode: Mode, parameters: list[str] | None = None) -> Deployment:
    spec = {
        "model": "/m",
        "engine": mode.engines[0],
        "served_model_name": "m",
        "disaggregation": {"mode": mode.name},
        "roles": {"router": {"parameters": parameters}},
    }
    return Deployment.model_validate({"metadata": {"name": "q"}, "spec": spec})


def as_peer(app: StandIn) -> Peer:
    bands = (Band(name="bootstrap", base=app.port),) if app.role == "prefill" else ()
    return Peer(f"{app.role}-{app.port}", app.role, "127.0.0.1", app.port, bands)


@asynccontextmanager
async def running(
    mode: Mode, peers: list[Peer], log: Path, parameters: list[str] | None = None
) -> AsyncIterator[tuple[str, str]]:
    """The real router, started as rendered; its base URL and its metrics URL."""
    executable = ROUTERS[mode.router.program]
    if not shutil.which(executable):
        pytest.fail(f"{executable} is not installed: the extra `demo` brings vllm-router")
    http, prometheus = free_ports(2)
    bands = (Band(name="http", base=http), Band(name="prometheus", base=prometheus))
    place = Place(host="h", address="127.0.0.1", bands=bands, executable=executable)
    launch = render_router(mode, CATALOGUE, document(mode, parameters), place, peers)
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(*launch.argv, stdout=out, stderr=out)
        try:
            await answering(process, f"{launch.url}{launch.health_path}", log)
            yield launch.url, f"http://127.0.0.1:{prometheus}{mode.router.metrics_path}"
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


async def answering(process: asyncio.subprocess.Process, url: str, log: Path) -> None:
    async with asyncio.timeout(60), httpx.AsyncClient(trust_env=False) as http:
        while process.returncode is None:
            try:
                if (await http.get(url)).status_code == 200:
                    return
            except httpx.TransportError:
                await asyncio.sleep(0.05)
    pytest.fail(f"the router ended with {process.returncode}:\n{log.read_text()[-2000:]}")


async def do(http: httpx.AsyncClient, base: str, call: HttpCall) -> httpx.Response:
    answer = await http.request(call.method, base + call.path, json=call.json)
    assert answer.status_code in (*call.accepted, *call.gone), answer.text
    return answer


async def registry(
    http: httpx.AsyncClient, base: str, mode: Mode, expected: set[tuple[str, str]]
) -> list[Any]:
    """The registry's rows, read until they are the expected ones or the dialect's time is over."""
    assert mode.router.api is not None
    rows: list[Any] = []
    try:
        async with asyncio.timeout(mode.router.api.settle_s * 3):
            while True:
                rows = list(parse_workers(mode, (await do(http, base, list_call(mode))).json()))
                if {(r.url, r.role) for r in rows} == expected:
                    return rows
                await asyncio.sleep(0.05)
    except TimeoutError:
        pytest.fail(f"the registry holds {rows}, not {expected}")


DECISIONS = r"(?:vllm_router_policy_decisions|smg_worker_selection)_total\{(.*)\} (\d+)"
"""One router counts them by worker, the other by the worker's role."""


async def decisions(
    http: httpx.AsyncClient, metrics: str, roles: dict[str, str]
) -> Counter[tuple[str, str]]:
    """The router's own count of decisions, by role and policy; `roles` are those of the urls."""
    text = (await http.get(metrics)).text
    counted: Counter[tuple[str, str]] = Counter()
    for line in text.splitlines():
        found = re.match(DECISIONS, line)
        if found:
            labels = dict(re.findall(r'(\w+)="([^"]*)"', found[1]))
            role = labels.get("worker_type") or roles[labels["worker"]]
            counted[role, labels["policy"]] += int(found[2])
    return counted


def ready(program: str) -> bool:
    return program in ROUTERS


@pytest.mark.parametrize("mode", MODES, ids=lambda m: m.name)
async def test_the_router_starts_serves_and_follows_its_members(mode: Mode, tmp_path: Path) -> None:
    if not ready(mode.router.program):
        pytest.skip(f"{mode.router.program} is not installed here; name it in PD_ROUTERS")
    roles = ("prefill", "prefill", "decode", "decode")
    async with stand_ins(*roles) as members, httpx.AsyncClient(trust_env=False) as http:
        peers = [as_peer(m) for m in members]
        first = peers[1:]
        async with running(mode, first, tmp_path / "log") as (base, metrics):
            if mode.router.membership_update == "dynamic":
                for peer in peers:
                    await do(http, base, add_call(mode, document(mode), peer))
                everyone = {(p.url, p.role) for p in peers}
                rows = await registry(http, base, mode, everyone)
                gone = next(r for r in rows if r.url == peers[0].url)
                await do(http, base, remove_call(mode, gone))
                await registry(http, base, mode, everyone - {(gone.url, gone.role)})
                again = await http.request("DELETE", base + remove_call(mode, gone).path)
                call = remove_call(mode, gone)
                assert again.status_code in (*call.accepted, *call.gone)
                await do(http, base, add_call(mode, document(mode), peers[0]))
                await registry(http, base, mode, everyone)
            for number in range(REQUESTS):
                body = {"model": "m", "prompt": f"{number} " * 40, "max_tokens": 4}
                answer = await http.post(f"{base}/v1/completions", json=body, timeout=20)
                assert answer.status_code == 200, answer.text
            for role in ("prefill", "decode"):
                assert sum(m.asked for m in members if m.role == role) == REQUESTS
            await check_policies(mode, http, metrics, members)


async def check_policies(
    mode: Mode, http: httpx.AsyncClient, metrics: str, members: list[StandIn]
) -> None:
    """Exact counts: one decision per request and side, by the policy that the panel names."""
    counted = await decisions(http, metrics, {as_peer(m).url: m.role for m in members})
    line = effective_policies(mode, document(mode).spec)
    expected = Counter[tuple[str, str]]()
    for role in ("prefill", "decode"):
        stated = re.search(rf"{role} (\w+)", line) or re.match(r"(\w+) on both sides", line)
        assert stated is not None
        expected[role, stated[1]] = REQUESTS
    assert counted == expected


async def test_the_one_policy_flag_of_igw_rules_both_sides(tmp_path: Path) -> None:
    mode = CATALOGUE.mode("vllm-nixl")
    rows = ["--policy", "round_robin", "--decode-policy", "random"]
    assert effective_policies(mode, document(mode, rows).spec).startswith("round_robin on both")
    roles = ("prefill", "prefill", "decode", "decode")
    async with stand_ins(*roles) as members, httpx.AsyncClient(trust_env=False) as http:
        peers = [as_peer(m) for m in members]
        async with running(mode, peers, tmp_path / "log", rows) as (base, _):
            for peer in peers:
                await do(http, base, add_call(mode, document(mode), peer))
            for _ in range(REQUESTS):
                body = {"model": "m", "prompt": "the same words", "max_tokens": 4}
                await http.post(f"{base}/v1/completions", json=body, timeout=20)
        assert [m.asked for m in members] == [REQUESTS // 2] * 4


@pytest.mark.parametrize("name", ["vllm-mooncake", "sglang-mooncake"])
async def test_the_flags_of_each_side_rule_that_side(name: str, tmp_path: Path) -> None:
    """Turned round, so that neither router's own default can be what is counted."""
    mode = CATALOGUE.mode(name)
    rows = ["--prefill-policy", "round_robin", "--decode-policy", "random"]
    line = effective_policies(mode, document(mode, rows).spec)
    assert line == "prefill round_robin, decode random"
    roles = ("prefill", "prefill", "decode", "decode")
    async with stand_ins(*roles) as members, httpx.AsyncClient(trust_env=False) as http:
        peers = [as_peer(m) for m in members]
        async with running(mode, peers, tmp_path / "log", rows) as (base, metrics):
            if mode.router.api is not None:
                await registry(http, base, mode, {(p.url, p.role) for p in peers})
            for _ in range(REQUESTS):
                body = {"model": "m", "prompt": "the same words", "max_tokens": 4}
                await http.post(f"{base}/v1/completions", json=body, timeout=20)
            counted = await decisions(http, metrics, {p.url: p.role for p in peers})
        assert counted == {
            ("prefill", "round_robin"): REQUESTS, ("decode", "random"): REQUESTS,
        }  # fmt: skip
        assert [m.asked for m in members if m.role == "prefill"] == [REQUESTS // 2] * 2
