"""The simulated engine's HTTP API, tried on one engine; counters are compared before and after."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest
import pytest_asyncio

from tests.backend.sandbox.engines import running, write_model

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(tmp_path_factory):
    place = tmp_path_factory.mktemp("api")
    model = write_model(place / "model")
    async with running(place, model, "--served-model-name", "m1", "m2") as one:
        yield one


@pytest.fixture(autouse=True)
def calm(engine):
    """Every test leaves the switches as it found them."""
    yield
    httpx.post(f"{engine.http.base_url}/sim", json=CALM, trust_env=False)


CALM = {"token_delay": 0, "fail": "", "unhealthy": False, "stale_metrics": False}


async def test_models_have_openai_shape(engine):
    data = (await engine.http.get("/v1/models")).json()
    assert data["object"] == "list"
    assert [m["id"] for m in data["data"]] == ["m1", "m2"]
    assert data["data"][0]["max_model_len"] == 4096
    assert (await engine.http.get("/version")).json() == {"version": "0.32.0"}


async def test_the_answer_follows_from_the_whole_prompt(engine):
    long = "x" * 400

    async def text(prompt: str) -> str:
        return (await engine.ask(prompt, max_tokens=12)).json()["choices"][0]["text"]

    assert await text("a" + long) == await text("a" + long)
    assert len({await text("a" + long), await text("b" + long), await text("a" + long + "y")}) == 3
    assert len((await text("a" + long)).split()) == 12


async def test_a_stream_says_the_same_as_a_whole_answer(engine):
    body = {"messages": [{"role": "user", "content": "hello"}], "model": "m2"}
    whole = (await engine.http.post("/v1/chat/completions", json=body)).json()
    assert whole["object"] == "chat.completion"
    assert whole["choices"][0]["finish_reason"] == "stop"
    body |= {"stream": True, "stream_options": {"include_usage": True}}
    answer = await engine.http.post(
        "/v1/chat/completions", json=body, headers={"X-Request-Id": "pair-7"}
    )
    events = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
    assert events[-1] == "[DONE]"
    chunks = [json.loads(e) for e in events[:-1]]
    assert {c["id"] for c in chunks} == {"chatcmpl-pair-7"}
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    text = "".join(c["choices"][0]["delta"]["content"] for c in chunks[:-1])
    assert text == whole["choices"][0]["message"]["content"]
    assert chunks[-1]["usage"] == whole["usage"]
    assert whole["usage"]["completion_tokens"] == len(chunks) - 1


async def test_token_limits_end_an_answer(engine):
    r = (await engine.ask("hello", max_tokens=60, ignore_eos=True)).json()
    assert r["usage"]["completion_tokens"] == 60
    assert r["choices"][0]["finish_reason"] == "length"
    r = (await engine.ask("hello", max_tokens=200, min_tokens=80)).json()
    assert r["usage"]["completion_tokens"] == 80
    assert r["choices"][0]["finish_reason"] == "stop"


async def test_too_long_a_prompt_is_refused_in_vllms_words(engine):
    r = await engine.ask("four" * 4096)
    assert r.status_code == 400
    assert r.json()["error"]["message"].startswith(
        "This model's maximum context length is 4096 tokens. However, your prompt contains at "
        "least 4097 input tokens"
    )
    r = await engine.ask("four", max_tokens=4096)
    assert r.status_code == 400
    assert "you requested 4096 output tokens" in r.json()["error"]["message"]


@pytest.mark.parametrize(
    ("path", "content", "status"),
    [
        ("/v1/completions", b'{"prompt": "a", "model": "other"}', 404),
        ("/v1/completions", b"{no", 400),
        ("/v1/completions", b"[]", 400),
        ("/v1/completions", b'{"prompt": ""}', 400),
        ("/v1/completions", b'{"prompt": 5}', 400),
        ("/v1/completions", b'{"prompt": "a", "max_tokens": "many"}', 400),
        ("/v1/chat/completions", b'{"messages": "hi"}', 400),
        ("/health", b"{}", 405),
        ("/nowhere", b"{}", 404),
    ],
)
async def test_bad_requests_get_an_error_body(engine, path, content, status):
    r = await engine.http.post(path, content=content)
    assert r.status_code == status
    assert r.json()["error"]["code"] == status


async def test_tokens_can_be_sent_counted_and_rendered(engine):
    tokens = (await engine.http.post("/tokenize", json={"prompt": "abcdefgh!"})).json()
    assert tokens["count"] == 3
    by_text = (await engine.ask("abcdefgh!", max_tokens=5)).json()["choices"][0]["text"]
    r = await engine.http.post(
        "/v1/completions", json={"prompt": tokens["tokens"], "max_tokens": 5}
    )
    assert r.json()["choices"][0]["text"] == by_text
    r = await engine.http.post("/v1/completions/render", json={"prompt": "abcdefgh!"})
    assert r.json()[0]["token_ids"] == tokens["tokens"]


async def test_a_repeated_prompt_is_found_in_the_prefix_cache(engine):
    prompt = "abcd" * 50  # 50 tokens: three full blocks of 16
    computed, cached, _ = await engine.sources()
    for _ in range(2):
        await engine.ask(prompt, max_tokens=2)
    assert await engine.sources() == (computed + 50 + 2, cached + 48, 0)
    assert await engine.metric("prefix_cache_hits_total") == cached + 48


async def test_a_client_that_leaves_ends_its_request(engine):
    before = await engine.metric("request_success_total", finished_reason="abort")
    await engine.switch(token_delay=0.02)
    body = {"prompt": "a", "max_tokens": 1000, "ignore_eos": True, "stream": True}
    async with engine.http.stream("POST", "/v1/completions", json=body) as answer:
        await anext(answer.aiter_lines())
    async with asyncio.timeout(10):
        while await engine.metric("request_success_total", finished_reason="abort") == before:
            await asyncio.sleep(0.01)


async def test_failures_are_switched_at_run_time(engine):
    await engine.switch(fail="500")
    r = await engine.ask("a")
    assert r.status_code == 500
    assert r.json()["error"]["message"] == "Internal server error"
    assert (await engine.http.get("/health")).status_code == 200
    await engine.switch(fail="hang")
    with pytest.raises(httpx.ReadTimeout):
        await engine.http.post("/v1/completions", json={"prompt": "a"}, timeout=0.3)
    await engine.switch(fail="", unhealthy=True)
    assert (await engine.http.get("/health")).status_code == 503
    await engine.switch(unhealthy=False, stale_metrics=True)
    before = (await engine.http.get("/metrics")).text
    count = await engine.metric("prompt_tokens_total")
    assert (await engine.ask("a")).status_code == 200
    assert (await engine.http.get("/metrics")).text == before
    await engine.switch(stale_metrics=False)
    assert await engine.metric("prompt_tokens_total") == count + 1


@pytest.mark.parametrize("body", [{"nose": 1}, {"fail": "maybe"}, {"token_delay": "slow"}, [1]])
async def test_an_unknown_switch_is_refused(engine, body):
    r = await engine.http.post("/sim", json={**body, "die_message": "x"} if body != [1] else body)
    assert r.status_code == 400
    assert (await engine.http.get("/sim")).json()["die_message"] == ""
