"""KV from prefill to decode: what moves, what is counted, and every way in which it does not."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.backend.sandbox.engines import ADDRESS, Engine, free_port, running, write_model

PREFILL = {"kv_connector": "NixlConnector", "kv_role": "kv_producer"}
DECODE = {"kv_connector": "NixlConnector", "kv_role": "kv_consumer"}
PROMPT = "the quick brown fox jumps over the lazy dog " * 6
MISMATCH = "RuntimeError: NIXL compatibility hash mismatch. Local: "


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path / "model")


class Pair:
    """One prefill and one decode engine, and the two hops that a router makes."""

    def __init__(self, prefill: Engine, decode: Engine) -> None:
        self.prefill, self.decode = prefill, decode

    async def hand_over(self, prompt: str = PROMPT) -> dict[str, Any]:
        r = await self.prefill.ask(
            prompt, max_tokens=1, kv_transfer_params={"do_remote_decode": True}
        )
        params: dict[str, Any] = r.json()["kv_transfer_params"]
        return params

    async def ask(self, prompt: str = PROMPT, **more: Any) -> Any:
        params = await self.hand_over(prompt)
        return await self.decode.ask(prompt, max_tokens=10, kv_transfer_params={**params, **more})


@pytest.fixture
async def pair(tmp_path, model):
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        yield Pair(
            await enter(running(tmp_path, model, kv=PREFILL)),
            await enter(running(tmp_path, model, kv=DECODE)),
        )


async def test_prefills_kv_gives_the_answer_of_one_engine_alone(tmp_path, model, pair):
    async with running(tmp_path, model) as alone:
        expected = (await alone.ask(PROMPT, max_tokens=10)).json()["choices"][0]["text"]
    answer = await pair.ask()
    assert answer.json()["choices"][0]["text"] == expected
    tokens = answer.json()["usage"]["prompt_tokens"]
    assert await pair.decode.sources() == (0, 0, tokens)
    assert await pair.prefill.sources() == (tokens, 0, 0)
    decode = pair.decode
    assert await decode.metric("external_prefix_cache_hits_total") == tokens
    assert await decode.metric("nixl_xfer_time_seconds_count") == 1
    assert await decode.metric("nixl_bytes_transferred_sum") == -(-tokens // 16) * 4096
    assert "NIXL compatibility check passed (hash: " in decode.text()


async def test_what_prefill_hands_over(pair):
    params = await pair.hand_over()
    assert params["do_remote_prefill"] is True
    assert params["do_remote_decode"] is False
    assert params["remote_host"] == ADDRESS
    assert params["remote_port"] == pair.prefill.side
    assert params["remote_request_id"].startswith("cmpl-")
    assert params["tp_size"] == 1
    answer = await pair.prefill.ask(PROMPT, max_tokens=1)
    assert answer.json()["kv_transfer_params"] is None


async def test_a_repeated_prompt_moves_only_what_decode_lacks(pair):
    tokens = (await pair.ask()).json()["usage"]["prompt_tokens"]
    await pair.ask()
    cached = (tokens - 1) // 16 * 16
    assert await pair.decode.sources() == (0, cached, 2 * tokens - cached)


async def test_without_params_decode_computes_by_itself(pair):
    answer = await pair.decode.ask(PROMPT, max_tokens=3)
    assert await pair.decode.sources() == (answer.json()["usage"]["prompt_tokens"], 0, 0)
    answer = await pair.decode.ask("x", kv_transfer_params={"do_remote_prefill": True})
    assert answer.status_code == 200
    assert "Got invalid KVTransferParams" in pair.decode.text()


async def test_damaged_kv_gives_another_answer(pair):
    right = (await pair.ask()).json()["choices"][0]["text"]
    await pair.prefill.switch(corrupt_kv=True)
    wrong = await pair.ask()
    assert wrong.status_code == 200
    assert wrong.json()["choices"][0]["text"] != right


async def test_kv_is_released_by_its_decode_and_else_by_its_lease(tmp_path, model):
    lease = {**PREFILL, "kv_connector_extra_config": {"kv_lease_duration": 0.3}}
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        pair = Pair(
            await enter(running(tmp_path, model, kv=lease)),
            await enter(running(tmp_path, model, kv=DECODE)),
        )
        assert (await pair.ask()).status_code == 200
        params = await pair.hand_over("another prompt")
        async with asyncio.timeout(10):
            while await pair.prefill.metric("nixl_num_kv_expired_reqs_total") == 0:
                await asyncio.sleep(0.02)
        assert await pair.prefill.metric("nixl_num_kv_expired_reqs_total") == 1
        request = params["remote_request_id"]
        line = f"Releasing expired KV blocks for request {request} which were retrieved by 0 "
        assert line in pair.prefill.text()
        late = await pair.decode.ask("another prompt", kv_transfer_params=params)
        assert late.status_code == 500


async def test_forgotten_kv_fails_the_request(pair):
    await pair.prefill.switch(drop_kv=True)
    assert (await pair.ask()).status_code == 500
    assert await pair.decode.metric("nixl_num_failed_transfers_total") == 1
    assert await pair.decode.metric("request_success_total", finished_reason="error") == 1


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (["--kv-cache-dtype", "fp8"], MISMATCH),
        (["--dtype", "float16"], MISMATCH),
        (["--attention-backend", "FLASHINFER"], MISMATCH),
        (["--disable-hybrid-kv-cache-manager"], MISMATCH),
        (["--block-size", "48"], "Local block size 48 is not divisible by remote block size 32"),
    ],
)
async def test_engines_that_do_not_fit_fail_each_request(tmp_path, model, flags, error):
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        pair = Pair(
            await enter(running(tmp_path, model, "--block-size", "32", kv=PREFILL)),
            await enter(running(tmp_path, model, "--block-size", "32", *flags, kv=DECODE)),
        )
        answer = await pair.ask()
        assert answer.status_code == 500
        assert answer.json()["error"]["message"] == "Internal server error"
        text = pair.decode.text()
        assert error in text
        assert "NIXL transfer failure: handshake_setup_failed | Context: {" in text
        assert "Failing 1 request(s) due to KV load failure (failure_policy=fail, " in text
        assert await pair.decode.metric("nixl_num_failed_transfers_total") == 1


async def test_the_models_path_must_be_the_same_string(tmp_path, model):
    other = write_model(tmp_path / "same-weights-elsewhere")
    recompute = {**DECODE, "kv_load_failure_policy": "recompute"}
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        pair = Pair(
            await enter(running(tmp_path, model, kv=PREFILL)),
            await enter(running(tmp_path, other, kv=recompute)),
        )
        answer = await pair.ask()
        assert answer.status_code == 200
        tokens = answer.json()["usage"]["prompt_tokens"]
        assert await pair.decode.sources() == (tokens, 0, 0)
        assert await pair.decode.metric("nixl_num_failed_transfers_total") == 1
        assert MISMATCH in pair.decode.text()


async def test_the_hash_check_can_be_waived(tmp_path, model):
    lax = {**DECODE, "kv_connector_extra_config": {"enforce_handshake_compat": False}}
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        pair = Pair(
            await enter(running(tmp_path, model, kv=PREFILL)),
            await enter(running(tmp_path, model, "--dtype", "half", kv=lax)),
        )
        assert (await pair.ask()).status_code == 200


@pytest.mark.parametrize(
    ("prefill", "decode", "error"),
    [
        ("2", "1", None),
        ("1", "2", None),
        ("4", "1", "AssertionError"),  # more ranks than KV heads
        ("3", "2", "Local tensor parallel size 2 is not divisible by remote tensor parallel size"),
    ],
)
async def test_tensor_parallel_sizes(tmp_path, prefill, decode, error):
    model = write_model(tmp_path / "model", num_attention_heads=12, num_key_value_heads=2)
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        pair = Pair(
            await enter(running(tmp_path, model, "-tp", prefill, kv=PREFILL)),
            await enter(running(tmp_path, model, "-tp", decode, kv=DECODE)),
        )
        answer = await pair.ask()
        assert answer.status_code == (500 if error else 200)
        assert (error or "Transfer plan: TransferTopology(tp_ratio=") in pair.decode.text()


async def test_an_unreachable_side_channel_and_a_stranger_behind_it(pair):
    await pair.decode.switch(handshake_timeout=0.2)
    assert (await pair.ask(remote_port=free_port())).status_code == 500
    assert "zmq.error.Again: Resource temporarily unavailable" in pair.decode.text()
    assert (await pair.ask(remote_engine_id="someone-else")).status_code == 500
    assert "Remote NIXL agent engine ID mismatch" in pair.decode.text()


async def test_a_failed_load_ends_a_stream_with_an_error(pair):
    params = await pair.hand_over()
    await pair.decode.switch(handshake_timeout=0.1)
    body = {"prompt": PROMPT, "stream": True, "kv_transfer_params": {**params, "remote_port": 1}}
    answer = await pair.decode.http.post("/v1/completions", json=body)
    assert "Internal server error" in answer.text
    assert answer.text.endswith("data: [DONE]\n\n")


async def test_a_restarted_prefill_is_met_again(tmp_path, model, pair):
    assert (await pair.ask()).status_code == 200
    await pair.prefill.end()
    async with running(tmp_path, model, kv=PREFILL, side=pair.prefill.side) as fresh:
        again = Pair(fresh, pair.decode)
        assert (await again.ask("something new entirely")).status_code == 200
        assert f"Remote engine at {ADDRESS}:{pair.prefill.side} changed from " in pair.decode.text()
