"""What a document would start, asked over the API: every role, every mode, no secret."""

from __future__ import annotations

import shlex
from typing import Any

import httpx
import pytest

from backend.services.backend import Backend

ENGINES = {
    "vllm-nixl": "vllm",
    "vllm-mooncake": "vllm",
    "sglang-mooncake": "sglang",
    "sglang-nixl": "sglang",
    "vllm-ascend-mooncake": "vllm-ascend",
}


def document(mode: str | None, **spec: Any) -> dict[str, Any]:
    body = {"model": "/models/m", "engine": ENGINES.get(mode or "", "vllm"), **spec}
    if mode:
        body["disaggregation"] = {"mode": mode}
    return {"metadata": {"name": "chat"}, "spec": body}


@pytest.mark.parametrize("mode", ENGINES)
async def test_every_role_of_every_mode(
    http: httpx.AsyncClient, backend: Backend, mode: str
) -> None:
    answer = await http.post("/render", json=document(mode))
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert [r["role"] for r in found] == ["prefill", "decode", "router"]
    for role in found:
        assert role["host"] == "HOST"
        words = shlex.split(role["command"])
        assert words[-len(role["argv"]) :] == role["argv"]
        assert not any("{{" in w for w in words)
    assert not backend.store.groups
    assert not backend.store.instances


async def test_a_plain_deployment_has_one_role(http: httpx.AsyncClient) -> None:
    (found,) = (await http.post("/render", json=document(None))).json()
    assert found["role"] == "replica"
    assert found["argv"][:2] == ["vllm", "serve"]


async def test_an_override_shows_in_its_role_only(http: httpx.AsyncClient) -> None:
    roles = {"decode": {"parameters": ["--seed", "7"], "env": {"A": "b c"}}}
    found = (await http.post("/render", json=document("vllm-nixl", roles=roles))).json()
    by_role = {r["role"]: r for r in found}
    assert "--seed" in by_role["decode"]["argv"]
    assert "--seed" not in by_role["prefill"]["argv"]
    assert "A='b c'" in by_role["decode"]["command"]


async def test_secrets_are_hidden_and_numbers_of_tokens_are_not(http: httpx.AsyncClient) -> None:
    spec = {
        "parameters": ["--api-key", "hush", "--max-num-batched-tokens", "8192", "--x-token=hush"],
        "env": {"HF_TOKEN": "hush"},
    }
    text = (await http.post("/render", json=document("vllm-nixl", **spec))).text
    assert "hush" not in text
    assert "8192" in text


async def test_what_cannot_be_rendered_is_refused_with_its_reason(http: httpx.AsyncClient) -> None:
    roles = {"router": {"parameters": ["--port", "1"]}}
    answer = await http.post("/render", json=document("vllm-nixl", roles=roles))
    assert answer.status_code == 422
    assert answer.json()["problems"][0]["rule"] == "router.owned_flag"
    assert (await http.post("/render", json={"spec": 1})).status_code == 400
