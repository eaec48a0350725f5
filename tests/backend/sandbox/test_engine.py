"""The simulated engine: its API, its command line, its ways to fail and to end."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
from pathlib import Path

import httpx
import pytest

from backend.sandbox.engine import kv
from backend.sandbox.engine.flags import parse
from tests.backend.sandbox.engines import (
    ADDRESS,
    Engine,
    destroy,
    failed,
    free_port,
    launch,
    running,
    write_model,
)  # fmt: skip

NIXL = {"kv_connector": "NixlConnector", "kv_role": "kv_both"}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path / "model")


# API of an engine of its own


async def test_metrics_are_spelled_as_the_real_ones(tmp_path, model):
    real = set((Path(__file__).with_name("vllm-0.32-series.txt")).read_text().splitlines())
    async with running(tmp_path, model, "--served-model-name", "m1", kv=NIXL) as engine:
        await engine.ask("hello", max_tokens=3)
        text = (await engine.http.get("/metrics")).text
        series = set()
        for line in text.splitlines():
            if not line.startswith("#"):
                name = re.sub(r'le="[^"]*"', 'le="*"', line.rsplit(" ", 1)[0])
                series.add(name.partition("{")[0] if "cache_config_info" in name else name)
        assert series - real == set()
        for name, value in (
            ("prompt_tokens_total", 2), ("generation_tokens_total", 3),
            ("num_requests_running", 0), ("e2e_request_latency_seconds_count", 1),
            ("nixl_bytes_transferred_count", 0), ("nixl_num_kv_expired_reqs_total", 0),
        ):  # fmt: skip
            assert await engine.metric(name) == value, name
        assert await engine.metric("request_success_total", finished_reason="length") == 1


async def test_requests_beyond_max_num_seqs_wait(tmp_path, model):
    async with running(tmp_path, model, "--max-num-seqs", "1") as engine:
        await engine.switch(token_delay=0.05)
        asks = [asyncio.create_task(engine.ask(p, max_tokens=8)) for p in "ab"]
        async with asyncio.timeout(10):
            while await engine.metric("num_requests_waiting") != 1:
                await asyncio.sleep(0.01)
        assert await engine.metric("num_requests_running") == 1
        assert [(await a).status_code for a in asks] == [200, 200]
        assert await engine.metric("num_requests_waiting") == 0


async def test_an_api_key_guards_v1(tmp_path, model):
    async with running(tmp_path, model, "--api-key", "s3cret") as engine:
        assert (await engine.ask("a")).status_code == 401
        assert (await engine.http.get("/health")).status_code == 200
        engine.http.headers["authorization"] = "Bearer s3cret"
        assert (await engine.ask("a")).status_code == 200


async def test_the_log_follows_the_real_sequence(tmp_path, model):
    async with running(tmp_path, model, kv=NIXL) as engine:
        text = engine.text()
    places = [
        text.index(part)
        for part in (
            "version 0.32.0\n", f"model   {model}", "non-default args: {",
            "Resolved architecture: Qwen3ForCausalLM", "Using max model len 4096",
            "Initializing a V1 LLM engine (v0.32.0)", "Loading weights took",
            "KV cache size: ", "NIXL is available",
            "Creating v1 connector with name: NixlPullConnector and engine_id:",
            "Backend UCX was instantiated", "init engine (profile, create kv cache, warmup model)",
            f"Starting vLLM server on http://{ADDRESS}:{engine.port}",
            "Application startup complete.",
        )
    ]  # fmt: skip
    assert places == sorted(places)
    assert re.search(
        r"^\(APIServer pid=\d+\) INFO \d\d-\d\d \d\d:\d\d:\d\d \[model.py:", text, re.M
    )


# Command line


@pytest.mark.parametrize(
    ("flags", "code", "text"),
    [
        (["--no-such-flag"], 2, "vllm: error: unrecognized arguments: --no-such-flag"),
        (["--max-model-len", "8000"], 1, "User-specified max_model_len (8000) is greater than the "
         "derived max_model_len (max_position_embeddings=4096.0"),
        (["-tp", "3"], 1, "Total number of attention heads (4) must be divisible by tensor "
         "parallel size (3)."),
        (["--kv-transfer-config", '{"kv_connector":"NixlConnector","kv_role":"producer"}'], 2,
         "kv_role\n  Input should be 'kv_producer', 'kv_both' or 'kv_consumer'"),
        (["--kv-transfer-config", '{"kv_connector":"NoSuchConnector","kv_role":"kv_both"}'], 1,
         "Unsupported connector type: NoSuchConnector"),
        (["--kv-transfer-config", '{"kv_connector":"NixlConnector"}'], 2, "specify kv_role"),
        (["--kv-transfer-config", '{"kv_nose":1}'], 2, "Unexpected keyword argument"),
        (["--kv-transfer-config", '{"kv_connector":"MultiConnector","kv_role":"kv_both",'
          '"kv_connector_extra_config":{"connectors":[{"kv_connector":"Nose","kv_role":"kv_both"}]}}'],
         1, "Unsupported connector type: Nose"),
        (["--kv-transfer-config", "{"], 2, "argument --kv-transfer-config: Value {"),
        (["--dtype", "int3"], 2, "argument --dtype: invalid choice: 'int3'"),
        (["--port"], 2, "argument --port: expected one argument"),
        (["--block-size", "many"], 2, "argument --block-size: invalid int value: 'many'"),
    ],
)  # fmt: skip
async def test_what_vllm_refuses_is_refused_in_its_words(tmp_path, model, flags, code, text):
    engine = await launch(tmp_path, model, *flags)
    assert await failed(engine) == code
    assert text in engine.text()
    assert engine.core is None


async def test_a_missing_model_folder_and_too_few_gpus(tmp_path, model):
    engine = await launch(tmp_path, tmp_path / "nothing")
    assert await failed(engine) == 1
    assert "Invalid repository ID or local directory specified" in engine.text()
    engine = await launch(tmp_path, model, "-tp", "4", env={"CUDA_VISIBLE_DEVICES": "0,1"})
    assert await failed(engine) == 1
    assert "World size (4) is larger than the number of available GPUs (2)" in engine.text()


async def test_a_taken_http_port_ends_the_start(tmp_path, model):
    with socket.socket() as other:
        other.bind((ADDRESS, 0))
        other.listen()
        engine = await launch(tmp_path, model, port=other.getsockname()[1])
        assert await failed(engine) == 1
    assert engine.text().endswith("OSError: [Errno 98] Address already in use\n")


@pytest.mark.parametrize(
    ("words", "tokens"),
    [("2k", 2000), ("2K", 2048), ("25.6k", 25600), ("1m", 10**6), ("auto", None), ("-1", None),
     ("512", 512)],
)  # fmt: skip
def test_lengths_are_read_as_vllm_reads_them(words, tokens):
    assert parse(["m", f"--max-model-len={words}"])["max_model_len"] == tokens


def test_spellings_of_one_flag():
    for argv in (
        ["--tensor-parallel-size", "2"], ["--tensor_parallel_size=2"], ["-tp", "2"], ["-tp=2"],
    ):  # fmt: skip
        assert parse(["m", *argv])["tensor_parallel_size"] == 2
    args = parse(
        ["m", "--kv-transfer-config.kv_connector=NixlConnector", "--kv-transfer-config.kv_role",
         "kv_both", "--kv_transfer_config.kv_connector_extra_config.kv_lease_duration=5",
         "--no-enable-prefix-caching", "--served-model-name", "a", "b"]
    )  # fmt: skip
    assert args["kv_transfer_config"] == {
        **NIXL, "kv_connector_extra_config": {"kv_lease_duration": 5}
    }  # fmt: skip
    assert args["enable_prefix_caching"] is False
    assert args["served_model_name"] == ["a", "b"]


def test_digests_depend_on_order_and_all_tokens():
    a = kv.chain(range(40))
    assert len(a) == 3
    assert kv.chain([*range(39), 99])[:2] == a[:2]
    assert kv.chain([1, *range(1, 40)])[2] != a[2]
    assert kv.last_state(kv.to_bytes(a)) == a[-1]


# Ends


async def test_sigterm_ends_an_idle_engine_and_its_core(tmp_path, model):
    async with running(tmp_path, model, kv=NIXL) as engine:
        assert engine.core
        assert await engine.end() == 0
        assert engine.core is None
        assert "[shutdown] EngineCore: trigger received signal=SIGTERM" in engine.text()


async def test_a_signal_to_the_whole_group_is_a_normal_stop(tmp_path, model):
    async with running(tmp_path, model, kv=NIXL) as engine:
        os.killpg(engine.process.pid, signal.SIGTERM)
        assert await asyncio.wait_for(engine.process.wait(), 10) == 0
        assert "died unexpectedly" not in engine.text()


async def test_the_core_outlives_a_killed_parent_and_holds_its_port(tmp_path, model):
    async with running(tmp_path, model, kv=NIXL) as engine:
        core = engine.core
        await engine.end(signal.SIGKILL)
        assert engine.core
        assert engine.core.pid == core.pid
        async with running(tmp_path, model) as other:  # its HTTP side knows nothing of it
            assert other.core
        wedged = await launch(tmp_path, model, kv=NIXL, side=engine.side)
        try:
            async with asyncio.timeout(20):
                while "zmq.error.ZMQError: Address already in use" not in wedged.text():
                    await asyncio.sleep(0.02)
            wedged.process.send_signal(signal.SIGTERM)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(wedged.process.wait(), 0.5)
            with pytest.raises(httpx.ConnectError):
                await wedged.http.get("/health")
        finally:
            await destroy(wedged)
        assert f"(addr='tcp://{ADDRESS}:{engine.side}')" in wedged.text()
        signal.pidfd_send_signal(_handle(engine), signal.SIGTERM)
        async with asyncio.timeout(10):
            while engine.core:
                await asyncio.sleep(0.01)


def _handle(engine: Engine) -> int:
    assert engine.core
    return os.pidfd_open(engine.core.pid)


async def test_a_wedged_start_gives_up_after_its_ready_timeout(tmp_path, model):
    with socket.socket() as other:
        other.bind((ADDRESS, 0))
        other.listen()
        engine = await launch(
            tmp_path, model, kv=NIXL, side=other.getsockname()[1],
            env={"VLLM_ENGINE_READY_TIMEOUT_S": "0.3"},
        )  # fmt: skip
        assert await failed(engine) == 1
    assert "TimeoutError: Timed out waiting for engine core processes" in engine.text()


async def _drain(lines) -> None:
    async for _ in lines:
        pass


async def test_a_stream_in_flight_is_left_hanging_at_sigterm(tmp_path, model):
    async with running(tmp_path, model) as engine:
        await engine.switch(token_delay=0.02)
        body = {"prompt": "a", "max_tokens": 1000, "ignore_eos": True, "stream": True}
        async with engine.http.stream("POST", "/v1/completions", json=body) as answer:
            lines = answer.aiter_lines()
            await anext(lines)
            engine.process.send_signal(signal.SIGTERM)
            rest = asyncio.create_task(_drain(lines))
            assert await asyncio.wait({rest}, timeout=1) == (set(), {rest})
            rest.cancel()
            assert engine.process.returncode is None
            assert engine.core is None
        assert await asyncio.wait_for(engine.process.wait(), 10) == 0
        assert "Waiting for connections to close" in engine.text()


async def test_a_shutdown_timeout_lets_requests_finish(tmp_path, model):
    async with running(tmp_path, model, "--shutdown-timeout", "20") as engine:
        await engine.switch(token_delay=0.02)
        ask = asyncio.create_task(engine.ask("a", max_tokens=30, ignore_eos=True))
        async with asyncio.timeout(10):
            while not await engine.metric("num_requests_running"):
                await asyncio.sleep(0.01)
        engine.process.send_signal(signal.SIGTERM)
        assert (await ask).json()["usage"]["completion_tokens"] == 30
        assert await asyncio.wait_for(engine.process.wait(), 10) == 0


async def test_a_killed_core_takes_the_engine_down(tmp_path, model):
    async with running(tmp_path, model) as engine:
        signal.pidfd_send_signal(_handle(engine), signal.SIGKILL)
        assert await asyncio.wait_for(engine.process.wait(), 10) == 1
        assert "EngineCore died unexpectedly" in engine.text()


# Switches


async def test_dying_at_start_and_later(tmp_path, model):
    engine = await launch(
        tmp_path, model, env={"PDTUI_SIM_DIE": "3", "PDTUI_SIM_DIE_MESSAGE": "CUDA error"}
    )
    assert await failed(engine) == 3
    assert engine.text() == "CUDA error\n"
    async with running(tmp_path, model) as engine:
        await engine.switch(die=9, die_message="later", die_after=0.01)
        assert await asyncio.wait_for(engine.process.wait(), 10) == 9
        assert engine.text().endswith("later\n")
        assert engine.core is None


async def test_a_control_file_switches_one_port(tmp_path, model):
    port = free_port()
    (tmp_path / ".pdtui-sim.json").write_text(
        json.dumps({"token_delay": 0.5, str(port): {"die": 4}})
    )
    assert await failed(await launch(tmp_path, model, port=port)) == 4
    async with running(tmp_path, model, env={"PDTUI_SIM_TOKEN_DELAY": "0"}) as engine:
        assert (await engine.http.get("/sim")).json()["token_delay"] == 0
    (tmp_path / ".pdtui-sim.json").write_text('{"nose": 1}')
    engine = await launch(tmp_path, model)
    assert await failed(engine) == 2
    assert "'nose' is no switch" in engine.text()


async def test_a_delayed_start_can_be_stopped(tmp_path, model):
    engine = await launch(tmp_path, model, env={"PDTUI_SIM_START_DELAY": "60"})
    try:
        async with asyncio.timeout(10):
            while "init engine" not in engine.text():
                await asyncio.sleep(0.01)
        with pytest.raises(httpx.ConnectError):
            await engine.http.get("/health")
        assert await engine.end() == 0
        assert engine.core is None
    finally:
        await destroy(engine)


async def test_an_orphaned_core_survives_a_normal_stop(tmp_path, model):
    async with running(tmp_path, model, kv=NIXL) as engine:
        await engine.switch(orphan=True)
        assert await engine.end() == 0
        assert engine.core


async def test_a_slow_stop_ignores_sigterm_for_its_time(tmp_path, model):
    async with running(tmp_path, model) as engine:
        await engine.switch(slow_stop=600)
        engine.process.send_signal(signal.SIGTERM)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(engine.process.wait(), 0.3)
        assert (await engine.http.get("/health")).status_code == 200
        await engine.switch(slow_stop=0)
        assert await engine.end() == 0
