"""The transfers beside NIXL: Mooncake's bootstrap, Ascend's rank ports, SGLang's rooms."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.backend.sandbox.engines import (
    ADDRESS,
    Engine,
    destroy,
    failed,
    free_port,
    launch,
    running,
    sglang,
    write_model,
)

PROMPT = "how does prefill hand its work over to decode " * 6


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path / "model")


async def alone(tmp_path: Path, model: Path) -> str:
    """The answer of one engine that computes everything itself."""
    async with running(tmp_path, model) as engine:
        return str((await engine.ask(PROMPT, max_tokens=10)).json()["choices"][0]["text"])


class Mooncake:
    """A Mooncake pair and what the router tells each side."""

    def __init__(self, prefill: Engine, decode: Engine) -> None:
        self.prefill, self.decode = prefill, decode
        self.bootstrap = f"http://{ADDRESS}:{prefill.side}"

    async def query(self) -> dict[str, Any]:
        async with httpx.AsyncClient(trust_env=False) as http:
            found: dict[str, Any] = (await http.get(f"{self.bootstrap}/query")).json()
            return found

    async def ask(self, transfer: str, **more: Any) -> httpx.Response:
        engine = (await self.query())["0"]["engine_id"]
        told = {"do_remote_decode": True, "do_remote_prefill": False, "transfer_id": transfer}
        first = await self.prefill.ask(PROMPT, max_tokens=1, kv_transfer_params=told)
        assert first.status_code == 200
        assert first.json()["kv_transfer_params"] is None
        params = {
            "do_remote_prefill": True, "transfer_id": transfer,
            "remote_bootstrap_addr": self.bootstrap, "remote_engine_id": engine, **more,
        }  # fmt: skip
        return await self.decode.ask(PROMPT, max_tokens=10, kv_transfer_params=params)


@asynccontextmanager
async def mooncake(tmp_path: Path, model: Path, lease: str = "60") -> AsyncIterator[Mooncake]:
    async with AsyncExitStack() as stack:
        up = []
        for role in ("kv_producer", "kv_consumer"):
            side = free_port()
            env = {
                "VLLM_MOONCAKE_BOOTSTRAP_PORT": str(side),
                "VLLM_MOONCAKE_ABORT_REQUEST_TIMEOUT": lease,
                "PDTUI_SIM_HANDSHAKE_TIMEOUT": "0.5",
            }
            kv = {"kv_connector": "MooncakeConnector", "kv_role": role}
            engine = running(tmp_path, model, "--tensor-parallel-size", "2", kv=kv, side=side,
                             env=env)  # fmt: skip
            up.append(await stack.enter_async_context(engine))
        yield Mooncake(*up)


async def test_mooncake_moves_kv_by_the_routers_transfer_id(tmp_path: Path, model: Path) -> None:
    expected = await alone(tmp_path, model)
    async with mooncake(tmp_path, model) as pair:
        entry = (await pair.query())["0"]
        assert set(entry["worker_addr"]) == {"0", "1"}
        assert all(w["0"].startswith("tcp://") for w in entry["worker_addr"].values())
        answer = await pair.ask("xfer-1")
        assert answer.json()["choices"][0]["text"] == expected
        tokens = answer.json()["usage"]["prompt_tokens"]
        assert await pair.decode.sources() == (0, 0, tokens)
        assert await pair.prefill.metric("mooncake_bytes_transferred_count") == 1
        assert await pair.prefill.metric("mooncake_bytes_transferred_sum") > 0
        assert await pair.decode.metric("mooncake_bytes_transferred_count") == 0
        assert "nixl" not in (await pair.prefill.http.get("/metrics")).text


async def test_mooncake_refuses_an_engine_that_is_another_now(tmp_path: Path, model: Path) -> None:
    """What a router knows of a prefill that was restarted at the same address."""
    async with mooncake(tmp_path, model, lease="1") as pair:
        answer = await pair.ask("xfer-2", remote_engine_id="the-one-before")
        assert answer.status_code == 500
        assert await pair.decode.metric("mooncake_num_failed_recvs_total") == 1
        assert "remote engine the-one-before is not at" in pair.decode.text()
        async with asyncio.timeout(20):
            while not await pair.prefill.metric("mooncake_num_kv_expired_reqs_total"):
                await asyncio.sleep(0.05)
        assert "Request xfer-2 was not fetched in time" in pair.prefill.text()


async def test_mooncake_registers_each_rank_once(tmp_path: Path, model: Path) -> None:
    async with mooncake(tmp_path, model) as pair, httpx.AsyncClient(trust_env=False) as http:
        url = f"{pair.bootstrap}/register"
        engine = (await pair.query())["0"]["engine_id"]
        rank = {"engine_id": engine, "dp_rank": 1, "tp_rank": 0, "pp_rank": 0, "addr": "tcp://h:1"}
        assert (await http.post(url, json=rank)).json() == {"status": "ok"}
        assert (await http.post(url, json=rank)).status_code == 400
        other = await http.post(url, json={**rank, "engine_id": "x"})
        assert (other.status_code, other.json()["detail"]) == (
            400, "Engine ID mismatch for dp_rank=1",
        )  # fmt: skip
        assert (await http.post(url, json={"engine_id": engine})).status_code == 422
        assert (await pair.query())["1"]["worker_addr"] == {"0": {"0": "tcp://h:1"}}


async def test_an_image_without_mooncake_ends_the_start(tmp_path: Path, model: Path) -> None:
    kv = {"kv_connector": "MooncakeConnector", "kv_role": "kv_both"}
    env = {"PDTUI_SIM_WITHOUT": "MooncakeConnector"}
    engine = await launch(tmp_path, model, kv=kv, env=env)
    assert await failed(engine) == 1
    assert "Mooncake is not available" in engine.text()


def ascend(role: str, port: int, prefill: int, decode: int) -> dict[str, Any]:
    sizes = {"prefill": {"tp_size": prefill, "dp_size": 1}, "decode": {"tp_size": decode,
             "dp_size": 1}}  # fmt: skip
    return {
        "kv_connector": "MooncakeHybridConnector", "kv_role": role, "kv_port": port,
        "kv_connector_extra_config": sizes,
    }  # fmt: skip


@asynccontextmanager
async def ascend_pair(tmp_path: Path, model: Path, prefill: int, decode: int) -> Any:
    async with AsyncExitStack() as stack:
        up = []
        for role, tp in (("kv_producer", prefill), ("kv_consumer", decode)):
            side = free_port()
            env = {"HCCL_IF_IP": ADDRESS, "ASCEND_RT_VISIBLE_DEVICES": "0,1"}
            kv = ascend(role, side, prefill, decode)
            engine = running(tmp_path, model, "-tp", str(tp), kv=kv, side=side, env=env)
            up.append(await stack.enter_async_context(engine))
        yield up


async def test_ascend_hands_over_in_two_hops(tmp_path: Path, model: Path) -> None:
    expected = await alone(tmp_path, model)
    async with ascend_pair(tmp_path, model, 2, 1) as (prefill, decode):
        told = {"do_remote_decode": True}
        params = (await prefill.ask(PROMPT, max_tokens=1, kv_transfer_params=told)).json()[
            "kv_transfer_params"
        ]
        assert (params["remote_host"], params["remote_port"]) == (ADDRESS, prefill.side)
        answer = await decode.ask(PROMPT, max_tokens=10, kv_transfer_params=params)
        assert answer.json()["choices"][0]["text"] == expected
        assert (await decode.sources())[2] == answer.json()["usage"]["prompt_tokens"]


async def test_ascend_refuses_a_wider_decode(tmp_path: Path, model: Path) -> None:
    async with ascend_pair(tmp_path, model, 1, 2) as (prefill, decode):
        told = {"do_remote_decode": True}
        params = (await prefill.ask(PROMPT, max_tokens=1, kv_transfer_params=told)).json()[
            "kv_transfer_params"
        ]
        answer = await decode.ask(PROMPT, max_tokens=4, kv_transfer_params=params)
        assert answer.status_code == 500
        assert "prefill tp_size 1 must be a multiple of 2" in decode.text()


async def test_ascend_is_told_both_sizes_or_does_not_start(tmp_path: Path, model: Path) -> None:
    kv = ascend("kv_producer", free_port(), 1, 1)
    del kv["kv_connector_extra_config"]["decode"]
    engine = await launch(tmp_path, model, kv=kv)
    assert await failed(engine) == 1
    assert "must hold 'decode' with 'tp_size' and 'dp_size'" in engine.text()


@pytest.mark.parametrize("backend", ["mooncake", "nixl"])
async def test_sglang_meets_in_a_room(tmp_path: Path, model: Path, backend: str) -> None:
    expected = await alone(tmp_path, model)
    engines = []
    try:
        for side in ("prefill", "decode"):
            flags = ("--disaggregation-mode", side, "--disaggregation-transfer-backend", backend)
            engines.append(await sglang(tmp_path, model, *flags))
        prefill, decode = engines
        await prefill.until_ready()
        await decode.until_ready()
        room = {"bootstrap_host": ADDRESS, "bootstrap_port": prefill.side, "bootstrap_room": 77}
        first = await prefill.ask(PROMPT, max_tokens=10, **room)
        assert first.json()["usage"]["completion_tokens"] == 1
        answer = await decode.ask(PROMPT, max_tokens=10, **room)
        assert answer.json()["choices"][0]["text"] == expected
        assert await decode.metric("kv_transfer_bootstrap_ms_count") == 1
        assert await prefill.metric("kv_transfer_total_mb_count") == 1
        assert (await decode.http.get("/get_server_info")).json()["tp_size"] == 1
        lost = await decode.ask(PROMPT, max_tokens=10)
        assert lost.status_code == 400
        assert "without bootstrap room id" in lost.text
    finally:
        for engine in engines:
            await destroy(engine)


async def test_sglang_says_what_it_does_not_know(tmp_path: Path, model: Path) -> None:
    engine = await sglang(tmp_path, model, "--no-such-flag")
    assert await failed(engine) == 2
    assert "launch_server.py: error: unrecognized arguments: --no-such-flag" in engine.text()
