"""KV from prefill to decode: what moves, what is counted, and every way in which it does not."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.backend.sandbox.engines import ADDRESS, Engine, free_port, running, write_model

PREFILL = {"kv_connector": "NixlConnector", "kv_role": "kv_producer"}
DECODE = {"kv_connector": "NixlConnector", "kv_role": "kv_consumer"}
PROMPT = "the quick brown fox jumps over the lazy dog " * 6
MISMATCH = "RuntimeError: NIXL compatibility hash mismatch. Local: "


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("transfer")


@pytest.fixture(scope="module")
def model(place: Path) -> Path:
    return write_model(place / "model")


@pytest.fixture
def prompt(request) -> str:
    """A prompt that no other test uses: engines remember what they have seen."""
    return f"{request.node.name}: {PROMPT}"


class Pair:
    """One prefill and one decode engine, and the two hops that a router makes."""

    def __init__(self, prefill: Engine, decode: Engine) -> None:
        self.prefill, self.decode = prefill, decode

    async def hand_over(self, prompt: str) -> dict[str, Any]:
        r = await self.prefill.ask(
            prompt, max_tokens=1, kv_transfer_params={"do_remote_decode": True}
        )
        params: dict[str, Any] = r.json()["kv_transfer_params"]
        return params

    async def ask(self, prompt: str, **more: Any) -> Any:
        params = await self.hand_over(prompt)
        return await self.decode.ask(prompt, max_tokens=10, kv_transfer_params={**params, **more})


class Sources:
    """Prompt tokens by source since it was made: computed, cached, transferred."""

    def __init__(self, engine: Engine, base: tuple[int, int, int]) -> None:
        self._engine, self._base = engine, base

    @classmethod
    async def of(cls, engine: Engine) -> Sources:
        return cls(engine, await engine.sources())

    async def now(self) -> tuple[int, ...]:
        pairs = zip(await self._engine.sources(), self._base, strict=True)
        return tuple(a - b for a, b in pairs)


@asynccontextmanager
async def joined(place: Path, *engines: tuple[Path, list[str], dict[str, Any]]):
    """A pair of engines of their own: (model, flags, transfer config) of prefill and of decode."""
    async with AsyncExitStack() as stack:
        up = [
            await stack.enter_async_context(running(place, model, *flags, kv=kv))
            for model, flags, kv in engines
        ]
        yield Pair(*up)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pair(place, model):
    async with joined(place, (model, [], PREFILL), (model, [], DECODE)) as one:
        yield one


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def prefill32(place, model):
    async with running(place, model, "--block-size", "32", kv=PREFILL) as one:
        yield one


async def test_prefills_kv_gives_the_answer_of_one_engine_alone(place, model, pair, prompt):
    async with running(place, model) as alone:
        expected = (await alone.ask(prompt, max_tokens=10)).json()["choices"][0]["text"]
    decode = pair.decode
    here, there = await Sources.of(pair.prefill), await Sources.of(decode)
    hits = await decode.metric("external_prefix_cache_hits_total")
    count = await decode.metric("nixl_xfer_time_seconds_count")
    size = await decode.metric("nixl_bytes_transferred_sum")
    answer = await pair.ask(prompt)
    assert answer.json()["choices"][0]["text"] == expected
    tokens = answer.json()["usage"]["prompt_tokens"]
    assert await there.now() == (0, 0, tokens)
    assert await here.now() == (tokens, 0, 0)
    assert await decode.metric("external_prefix_cache_hits_total") == hits + tokens
    assert await decode.metric("nixl_xfer_time_seconds_count") == count + 1
    moved = -(-tokens // 16) * 4096
    assert await decode.metric("nixl_bytes_transferred_sum") == size + moved
    assert "NIXL compatibility check passed (hash: " in decode.text()


async def test_what_prefill_hands_over(pair, prompt):
    params = await pair.hand_over(prompt)
    assert params["do_remote_prefill"] is True
    assert params["do_remote_decode"] is False
    assert params["remote_host"] == ADDRESS
    assert params["remote_port"] == pair.prefill.side
    assert params["remote_request_id"].startswith("cmpl-")
    assert params["tp_size"] == 1
    answer = await pair.prefill.ask(prompt, max_tokens=1)
    assert answer.json()["kv_transfer_params"] is None


async def test_a_repeated_prompt_moves_only_what_decode_lacks(pair, prompt):
    there = await Sources.of(pair.decode)
    tokens = (await pair.ask(prompt)).json()["usage"]["prompt_tokens"]
    await pair.ask(prompt)
    cached = (tokens - 1) // 16 * 16
    assert await there.now() == (0, cached, 2 * tokens - cached)


async def test_without_params_decode_computes_by_itself(pair, prompt):
    there = await Sources.of(pair.decode)
    answer = await pair.decode.ask(prompt, max_tokens=3)
    assert await there.now() == (answer.json()["usage"]["prompt_tokens"], 0, 0)
    answer = await pair.decode.ask("x", kv_transfer_params={"do_remote_prefill": True})
    assert answer.status_code == 200
    assert "Got invalid KVTransferParams" in pair.decode.text()


async def test_damaged_kv_gives_another_answer(pair, prompt):
    right = (await pair.ask(prompt)).json()["choices"][0]["text"]
    await pair.prefill.switch(corrupt_kv=True)
    wrong = await pair.ask(prompt)
    await pair.prefill.switch(corrupt_kv=False)
    assert wrong.status_code == 200
    assert wrong.json()["choices"][0]["text"] != right


async def test_forgotten_kv_fails_the_request(pair, prompt):
    decode = pair.decode
    failed = await decode.metric("nixl_num_failed_transfers_total")
    errors = await decode.metric("request_success_total", finished_reason="error")
    await pair.prefill.switch(drop_kv=True)
    answer = await pair.ask(prompt)
    await pair.prefill.switch(drop_kv=False)
    assert answer.status_code == 500
    assert await decode.metric("nixl_num_failed_transfers_total") == failed + 1
    assert await decode.metric("request_success_total", finished_reason="error") == errors + 1


async def test_an_unreachable_side_channel_and_a_stranger_behind_it(pair, prompt):
    await pair.decode.switch(handshake_timeout=0.2)
    assert (await pair.ask(prompt, remote_port=free_port())).status_code == 500
    assert "zmq.error.Again: Resource temporarily unavailable" in pair.decode.text()
    await pair.decode.switch(handshake_timeout=5)
    assert (await pair.ask(prompt, remote_engine_id="someone-else")).status_code == 500
    assert "Remote NIXL agent engine ID mismatch" in pair.decode.text()


async def test_a_failed_load_ends_a_stream_with_an_error(pair, prompt):
    params = await pair.hand_over(prompt)
    gone = {**params, "remote_request_id": "cmpl-never"}
    body = {"prompt": prompt, "stream": True, "kv_transfer_params": gone}
    answer = await pair.decode.http.post("/v1/completions", json=body)
    assert "Internal server error" in answer.text
    assert answer.text.endswith("data: [DONE]\n\n")


async def test_kv_is_released_by_its_decode_and_else_by_its_lease(place, model, pair, prompt):
    short = {**PREFILL, "kv_connector_extra_config": {"kv_lease_duration": 0.3}}
    async with running(place, model, kv=short) as prefill:
        mixed = Pair(prefill, pair.decode)
        assert (await mixed.ask(prompt)).status_code == 200
        params = await mixed.hand_over(prompt + "other")
        async with asyncio.timeout(10):
            while await prefill.metric("nixl_num_kv_expired_reqs_total") == 0:
                await asyncio.sleep(0.02)
        assert await prefill.metric("nixl_num_kv_expired_reqs_total") == 1
        request = params["remote_request_id"]
        line = f"Releasing expired KV blocks for request {request} which were retrieved by 0 "
        assert line in prefill.text()
        late = await pair.decode.ask(prompt + "other", kv_transfer_params=params)
        assert late.status_code == 500


async def test_a_restarted_prefill_is_met_again(place, model, pair, prompt):
    async with running(place, model, kv=PREFILL) as first:
        assert (await Pair(first, pair.decode).ask(prompt)).status_code == 200
        await first.end()
        async with running(place, model, kv=PREFILL, side=first.side) as second:
            assert (await Pair(second, pair.decode).ask(prompt + "again")).status_code == 200
            text = f"Remote engine at {ADDRESS}:{first.side} changed from "
            assert text in pair.decode.text()


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
async def test_engines_that_do_not_fit_fail_each_request(
    place, model, prefill32, prompt, flags, error
):
    async with running(place, model, "--block-size", "32", *flags, kv=DECODE) as decode:
        answer = await Pair(prefill32, decode).ask(prompt)
        assert answer.status_code == 500
        assert answer.json()["error"]["message"] == "Internal server error"
        text = decode.text()
        assert error in text
        assert "NIXL transfer failure: handshake_setup_failed | Context: {" in text
        assert "Failing 1 request(s) due to KV load failure (failure_policy=fail, " in text
        assert await decode.metric("nixl_num_failed_transfers_total") == 1


async def test_the_models_path_must_be_the_same_string(place, prefill32, prompt):
    other = write_model(place / "same-weights-elsewhere")
    recompute = {**DECODE, "kv_load_failure_policy": "recompute"}
    async with running(place, other, kv=recompute) as decode:
        answer = await Pair(prefill32, decode).ask(prompt)
        assert answer.status_code == 200
        assert await decode.sources() == (answer.json()["usage"]["prompt_tokens"], 0, 0)
        assert await decode.metric("nixl_num_failed_transfers_total") == 1
        assert MISMATCH in decode.text()


async def test_a_transfer_composed_with_a_local_cache(place, model, prefill32, prompt):
    parts = [DECODE, {"kv_connector": "OffloadingConnector", "kv_role": "kv_both"}]
    multi = {
        "kv_connector": "MultiConnector", "kv_role": "kv_consumer",
        "kv_connector_extra_config": {"connectors": parts},
    }  # fmt: skip
    async with running(place, model, "--block-size", "32", kv=multi) as decode:
        answer = await Pair(prefill32, decode).ask(prompt)
        assert await decode.sources() == (0, 0, answer.json()["usage"]["prompt_tokens"])


async def test_the_hash_check_can_be_waived(place, model, prefill32, prompt):
    lax = {**DECODE, "kv_connector_extra_config": {"enforce_handshake_compat": False}}
    async with running(place, model, "--dtype", "half", kv=lax) as decode:
        assert (await Pair(prefill32, decode).ask(prompt)).status_code == 200


@pytest.mark.parametrize(
    ("prefill", "decode", "error"),
    [
        ("2", "1", None),
        ("1", "2", None),
        ("4", "1", "AssertionError"),  # more ranks than KV heads
        ("3", "2", "Local tensor parallel size 2 is not divisible by remote tensor parallel size"),
    ],
)
async def test_tensor_parallel_sizes(place, prompt, prefill, decode, error):
    wide = write_model(place / "wide", num_attention_heads=12)
    sides = (wide, ["-tp", prefill], PREFILL), (wide, ["-tp", decode], DECODE)
    async with joined(place, *sides) as pair:
        answer = await pair.ask(prompt)
        assert answer.status_code == (500 if error else 200)
        assert (error or "Transfer plan: TransferTopology(tp_ratio=") in pair.decode.text()
