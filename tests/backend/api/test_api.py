"""The API: shapes, refusals, foreign callers, and the documents it hands back."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from backend.services.backend import Backend

DOCUMENT: dict[str, Any] = {
    "apiVersion": "pdtui/v1",
    "kind": "Deployment",
    "metadata": {"name": "chat"},
    "spec": {
        "model": "/models/m",
        "engine": "vllm",
        "parameters": ["--max-model-len", "8192"],
        "disaggregation": {"mode": "vllm-nixl"},
        "roles": {"decode": {"env": {}, "parameters": []}},
    },
}


async def test_health_says_who_answers(http: httpx.AsyncClient, backend: Backend) -> None:
    body = (await http.get("/health")).json()
    assert body["state_dir"] == str(backend.paths.state)
    assert (body["hosts"], body["groups"], body["embedded"]) == (0, 0, False)


async def test_a_document_comes_back_as_it_was_saved(http: httpx.AsyncClient) -> None:
    """An empty list or mapping of a role is a value of its own: it survives."""
    saved = await http.put("/deployments/chat", json=DOCUMENT)
    assert saved.status_code == 200, saved.text
    assert saved.json()["status"] == "Pending"
    back = (await http.get("/deployments/chat")).json()
    assert back["spec"]["roles"]["decode"] == {"env": {}, "parameters": []}
    assert back["spec"]["parameters"] == ["--max-model-len", "8192"]
    again = await http.put("/deployments/chat", json=back)
    assert again.json()["version"] == saved.json()["version"]


async def test_a_dry_run_stores_nothing(http: httpx.AsyncClient) -> None:
    answer = await http.put("/deployments/chat", json=DOCUMENT, params={"dry_run": True})
    assert answer.status_code == 200
    assert (await http.get("/groups")).json() == []


async def test_without_a_host_the_group_waits_and_says_so(
    http: httpx.AsyncClient, backend: Backend
) -> None:
    await http.put("/deployments/chat", json=DOCUMENT)
    loop = backend.reconciler.loops["chat"]
    while not backend.store.groups["chat"].placement_note:
        loop.hint()
        await asyncio.sleep(0.01)
    group = (await http.get("/groups/chat")).json()
    assert group["status"] == "Pending"
    assert [m["id"] for m in group["marks"]] == ["placement"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "kind"),
    [
        ("GET", "/groups/nobody", None, 404, "not_found"),
        ("GET", "/deployments/nobody", None, 404, "not_found"),
        ("DELETE", "/deployments/nobody", None, 404, "not_found"),
        ("POST", "/deployments/nobody/restart", {}, 404, "not_found"),
        ("POST", "/deployments/nobody/scale", {"counts": {"prefill": 1}}, 404, "not_found"),
        ("GET", "/instances/nobody/log", None, 404, "not_found"),
        ("POST", "/hosts/nobody/test", None, 404, "not_found"),
        ("PUT", "/hosts/A B", {"address": "x"}, 400, "invalid"),
        ("PUT", "/hosts/a", {"adress": "x"}, 400, "invalid"),
        ("PUT", "/deployments/chat", {"spec": {}}, 400, "invalid"),
        ("PUT", "/deployments/other", DOCUMENT, 400, "invalid"),
        ("POST", "/deployments/chat/scale", {"count": 1}, 400, "invalid"),
    ],
)
async def test_errors_have_a_kind_and_problems_with_a_rule(
    http: httpx.AsyncClient, method: str, path: str, body: Any, status: int, kind: str
) -> None:
    answer = await http.request(method, path, json=body)
    assert answer.status_code == status, answer.text
    error = answer.json()
    assert error["kind"] == kind
    assert error["problems"]
    for problem in error["problems"]:
        assert problem["rule"]
        assert problem["message"]
        assert problem["remedy"]


async def test_check_judges_without_saving(http: httpx.AsyncClient) -> None:
    wrong = {**DOCUMENT, "spec": {**DOCUMENT["spec"], "engine": "sglang"}}
    body = (await http.post("/check", json=wrong)).json()
    assert "mode.engine" in {v["rule"] for v in body["verdicts"]}
    assert any(s.startswith("host") for s in body["skipped"])
    assert (await http.get("/groups")).json() == []


@pytest.mark.parametrize(
    "headers",
    [{"host": "evil.example"}, {"origin": "http://pdtui"}, {"host": "pdtui.evil.example:80"}],
)
async def test_foreign_callers_are_refused(
    http: httpx.AsyncClient, headers: dict[str, str]
) -> None:
    answer = await http.get("/health", headers=headers)
    assert answer.status_code == 403
    assert answer.json()["kind"] == "denied"


async def test_the_openapi_document_describes_every_route(http: httpx.AsyncClient) -> None:
    document = (await http.get("/openapi.json")).json()
    assert {"/v1/groups", "/v1/deployments/{name}/restart", "/v1/changes"} <= set(document["paths"])
    for path, methods in document["paths"].items():
        for method, about in methods.items():
            assert about.get("description") or about.get("summary"), f"{method} {path}"


async def test_history_names_who_saved(http: httpx.AsyncClient) -> None:
    await http.put("/deployments/chat", json=DOCUMENT, headers={"x-pdtui-actor": "ada"})
    edited = {**DOCUMENT, "spec": {**DOCUMENT["spec"], "parameters": []}}
    await http.put("/deployments/chat", json=edited, headers={"x-pdtui-actor": "grace"})
    rows = (await http.get("/deployments/chat/history")).json()
    assert [(r["version"], r["actor"]) for r in rows] == [(2, "grace"), (1, "ada")]
    events = (await http.get("/events", params={"group": "chat"})).json()
    saved = [e for e in events if e["kind"] == "saved"]
    assert saved[-1]["actor"] == "grace"
    assert "spec.parameters" in saved[-1]["message"]
