"""The route on advice: a stored deployment, a document, and what a person says."""

from __future__ import annotations

import copy
from typing import Any

import httpx

from tests.backend.api.test_api import DOCUMENT
from tests.unit.domain.advice.test_kv import QWEN3_32B

SAID = {
    "prompt_tokens": 8000, "output_tokens": 400, "rps": 2, "link_gbit": 200,
    "config": QWEN3_32B, "accelerator": "NVIDIA H100 80GB HBM3",
}  # fmt: skip


async def ask(http: httpx.AsyncClient, **body: Any) -> httpx.Response:
    """POST /advice."""
    return await http.post("/advice", json=body)


async def test_a_document_is_advised_on_by_what_is_given(http: httpx.AsyncClient) -> None:
    answer = await ask(http, document=DOCUMENT, **SAID)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found["deployment"] == DOCUMENT["metadata"]["name"]
    assert {a["question"] for a in found["answers"]} == {"parameters", "ratio", "transfer"}
    facts = {f["name"]: f for f in found["facts"]}
    assert facts["kv_per_token"]["shown"] == "256 KiB"
    assert facts["prefill_rate"]["source"] == "estimated"
    assert facts["link"]["shown"] == "200 Gbit/s"
    assert "20:1" in next(a["text"]["en"] for a in found["answers"] if a["question"] == "ratio")


async def test_the_documents_own_kv_dtype_counts(http: httpx.AsyncClient) -> None:
    document = copy.deepcopy(DOCUMENT)
    document["spec"] |= {"parameters": ["--kv-cache-dtype", "fp8"], "roles": {}}
    found = (await ask(http, document=document, **SAID)).json()
    facts = {f["name"]: f["shown"] for f in found["facts"]}
    assert facts["kv_per_token"] == "128 KiB"


async def test_a_stored_deployment_without_traffic_says_what_is_missing(
    http: httpx.AsyncClient,
) -> None:
    assert (await http.put("/deployments/chat", json=DOCUMENT)).status_code == 200
    found = (await ask(http, name="chat")).json()
    assert found["worth"] == "unclear"
    said = " ".join(m["en"] for m in found["missing"])
    assert "--prompt-tokens" in said
    assert "configuration is not known" in said


async def test_what_cannot_be_asked_is_said(http: httpx.AsyncClient) -> None:
    assert (await ask(http, name="nobody")).status_code == 404
    assert (await ask(http)).status_code == 400
    assert (await ask(http, name="a", document=DOCUMENT)).status_code == 400
    assert (await ask(http, name="a", rps=-1)).status_code == 400
