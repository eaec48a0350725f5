"""Earlier documents: listed, compared, saved again through the same rules."""

from __future__ import annotations

import copy
from typing import Any

import httpx

from tests.backend.api.test_api import DOCUMENT


async def _save(http: httpx.AsyncClient, actor: str, **spec: Any) -> dict[str, Any]:
    document = copy.deepcopy(DOCUMENT)
    document["spec"] |= spec
    answer = await http.put("/deployments/chat", json=document, headers={"x-pdtui-actor": actor})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def test_every_save_is_kept_with_who_and_what(http: httpx.AsyncClient) -> None:
    await _save(http, "ann")
    await _save(http, "bob", parameters=["--max-model-len", "4096"])
    await http.post("/deployments/chat/scale", json={"counts": {"decode": 3}})
    found = (await http.get("/deployments/chat/history")).json()
    assert [(v["version"], v["actor"]) for v in found][1:] == [(2, "bob"), (1, "ann")]
    between = (await http.get("/deployments/chat/diff", params={"older": 1})).json()
    assert (between["older"], between["newer"]) == (1, 3)
    assert between["changes"] == ["spec.parameters[1]: 8192 -> 4096", "decode: 1 -> 3"]
    one = (await http.get("/deployments/chat/diff", params={"older": 1, "newer": 2})).json()
    assert one["changes"] == ["spec.parameters[1]: 8192 -> 4096"]


async def test_a_rollback_is_a_save_like_any_other(http: httpx.AsyncClient) -> None:
    await _save(http, "ann")
    await _save(http, "bob", parameters=["--max-model-len", "4096"])
    back = await http.post(
        "/deployments/chat/rollback", json={"version": 1}, headers={"x-pdtui-actor": "cid"}
    )
    assert back.status_code == 200, back.text
    assert back.json()["version"] == 3
    now = (await http.get("/deployments/chat")).json()
    assert now["spec"]["parameters"] == ["--max-model-len", "8192"]
    told = (await http.get("/events", params={"group": "chat"})).json()
    assert [e["actor"] for e in told if e["kind"] == "rollback"] == ["cid"]
    same = await http.post("/deployments/chat/rollback", json={"version": 1})
    assert same.json()["version"] == 3  # nothing to change


async def test_a_rollback_to_what_is_refused_now_is_refused(
    http: httpx.AsyncClient, backend: Any
) -> None:
    """The document was right once; the rules of today decide."""
    await _save(http, "ann")
    await _save(http, "bob", parameters=["--max-model-len", "4096"])
    group = backend.store.groups["chat"].model_copy(update={"version": 9})
    document = group.document.model_copy(
        update={
            "spec": group.document.spec.model_copy(
                update={
                    "disaggregation": group.document.spec.disaggregation.model_copy(
                        update={"mode": "gone"}
                    )
                }
            )
        }
    )
    async with backend.store.write() as tx:
        tx.save_document(group.model_copy(update={"document": document}), "old")
    answer = await http.post("/deployments/chat/rollback", json={"version": 9})
    assert answer.status_code == 422
    assert answer.json()["problems"][0]["rule"] == "mode.unknown"
    assert (await http.get("/groups/chat")).json()["version"] == 2


async def test_a_version_that_is_not_there_is_named_with_those_that_are(
    http: httpx.AsyncClient,
) -> None:
    await _save(http, "ann")
    for answer in (
        await http.post("/deployments/chat/rollback", json={"version": 7}),
        await http.get("/deployments/chat/diff", params={"older": 7}),
    ):
        assert answer.status_code == 404
        (problem,) = answer.json()["problems"]
        assert problem["message"] == "chat has no version 7; it has 1."
    assert (await http.get("/deployments/nobody/history")).status_code == 404


async def test_endpoints_and_targets_of_a_group_that_has_none(http: httpx.AsyncClient) -> None:
    await _save(http, "ann")
    assert (await http.get("/endpoints")).json() == [
        {"group": "chat", "url": "", "model": "", "status": "Pending"}
    ]
    assert (await http.get("/prometheus/targets")).json() == []
