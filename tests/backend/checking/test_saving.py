"""Saving asks the rules: refusals store nothing, doubts stay with the group, rows are stripped."""

from __future__ import annotations

from typing import Any

import httpx

from backend.services.backend import Backend


def document(*, parameters: Any = None, router: Any = None, **spec: Any) -> dict[str, Any]:
    roles: dict[str, Any] = {"decode": {"parameters": parameters}} if parameters is not None else {}
    if router is not None:
        roles["router"] = {"parameters": router}
    body = {
        "model": "/m", "engine": "vllm", "parameters": ["--max-model-len", "8192"],
        "disaggregation": {"mode": "vllm-nixl"}, "roles": roles, **spec,
    }  # fmt: skip
    return {"apiVersion": "pdtui/v1", "kind": "Deployment", "metadata": {"name": "chat"},
            "spec": body}  # fmt: skip


async def test_every_refusal_is_told_at_once_and_nothing_is_stored(
    http: httpx.AsyncClient, backend: Backend
) -> None:
    wrong = document(parameters=["--max-model-len", "4096", "--dtype", "half", "--port=1"])
    answer = await http.put("/deployments/chat", json=wrong)
    assert answer.status_code == 422
    rules = {p["rule"] for p in answer.json()["problems"]}
    assert rules == {"pairing.max_model_len", "structure.reserved_flag"}
    assert backend.store.groups == {}


async def test_doubts_stay_with_the_group_until_they_are_settled(
    http: httpx.AsyncClient, backend: Backend
) -> None:
    await http.put("/deployments/chat", json=document(parameters=[]))
    (doubt,) = backend.store.groups["chat"].unverified
    assert doubt.startswith("spec.roles.decode.parameters: prefill's context length is 8192")
    assert "make the model readable on a host" in doubt
    await http.put("/deployments/chat", json=document())
    assert backend.store.groups["chat"].unverified == ()


async def test_a_scaled_group_keeps_its_doubts(http: httpx.AsyncClient, backend: Backend) -> None:
    await http.put("/deployments/chat", json=document(parameters=[]))
    before = backend.store.groups["chat"].unverified
    await http.post("/deployments/chat/scale", json={"counts": {"decode": 2}})
    assert backend.store.groups["chat"].unverified == before != ()


async def test_doubts_that_changed_are_no_new_version(
    http: httpx.AsyncClient, backend: Backend
) -> None:
    await http.put("/deployments/chat", json=document(parameters=[]))
    group = backend.store.groups["chat"]
    async with backend.store.write() as tx:
        tx.put_group(group.model_copy(update={"unverified": ("something else",)}))
    await http.put("/deployments/chat", json=document(parameters=[]))
    again = backend.store.groups["chat"]
    assert (again.version, again.unverified) == (group.version, group.unverified)


async def test_rows_left_as_they_were_are_taken_out(http: httpx.AsyncClient) -> None:
    rows = ["--policy", "cache_aware", "--retry-max-retries", "5"]
    await http.put("/deployments/chat", json=document(router=rows))
    saved = (await http.get("/deployments/chat")).json()
    assert saved["spec"]["roles"]["router"]["parameters"] == ["--retry-max-retries", "5"]
    await http.put("/deployments/chat", json=document(router=rows[:2]))
    saved = (await http.get("/deployments/chat")).json()
    assert "router" not in saved["spec"].get("roles", {})


async def test_checking_answers_what_saving_would(http: httpx.AsyncClient) -> None:
    wrong = document(parameters=["--max-model-len", "4096"])
    body = (await http.post("/check", json=wrong)).json()
    assert [(v["verdict"], v["rule"], v["case"]) for v in body["verdicts"]] == [
        ("refused", "pairing.max_model_len", "differ")
    ]
    assert body["skipped"] == ["host.*: no host in the inventory"]
    every = (await http.post("/check", json=wrong, params={"every": True})).json()
    assert {"rule": "pairing.dtype", "verdict": "fine"}.items() <= next(
        v for v in every["verdicts"] if v["rule"] == "pairing.dtype"
    ).items()
    assert (await http.post("/check", json={"spec": 1})).status_code == 400


async def test_a_named_host_that_is_not_there(http: httpx.AsyncClient) -> None:
    answer = await http.put("/deployments/chat", json=document(hosts={"names": ["gpu-9"]}))
    assert [p["rule"] for p in answer.json()["problems"]] == ["host.unknown"]
