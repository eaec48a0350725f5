"""Writes: what they are based on, what is refused of them, and one that is repeated."""

from __future__ import annotations

import asyncio
import copy
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from backend.api.app import create_app
from backend.api.bodies import MOST_BYTES
from backend.services.backend import Backend
from backend.store.answers import MOST
from tests.backend.api.test_api import DOCUMENT


@pytest.fixture
async def bare(backend: Backend) -> AsyncIterator[httpx.AsyncClient]:
    """A client that adds nothing to what a test sends."""
    transport = httpx.ASGITransport(create_app(backend, "0"))
    async with httpx.AsyncClient(transport=transport, base_url="http://pdtui/v1") as client:
        yield client


def edited(length: int) -> dict[str, Any]:
    document = copy.deepcopy(DOCUMENT)
    document["spec"]["parameters"] = ["--max-model-len", str(length)]
    return document


async def save(bare: httpx.AsyncClient, document: Any = DOCUMENT) -> str:
    answer = await bare.put("/deployments/chat", json=document, headers={"If-None-Match": "*"})
    assert answer.status_code == 200, answer.text
    return str(answer.headers["etag"])


def rule(answer: httpx.Response) -> str:
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert body["status"] == answer.status_code
    assert body["type"] == f"urn:pdtui:problem:{body['problems'][0]['rule']}"
    assert body["problems"][0]["remedy"]
    return str(body["problems"][0]["rule"])


WRITES = [
    ("PUT", "/deployments/chat", DOCUMENT),
    ("DELETE", "/deployments/chat", None),
    ("POST", "/deployments/chat/scale", {"counts": {"decode": 2}}),
    ("POST", "/deployments/chat/restart", {}),
    ("POST", "/deployments/chat/pause", {"paused": True}),
    ("POST", "/deployments/chat/rollback", {"version": 1}),
    ("DELETE", "/deployments/chat/instances/chat-prefill-aaaa", None),
    ("PUT", "/hosts/gpu-1", {"address": "127.0.0.1"}),
    ("DELETE", "/hosts/gpu-1", None),
    ("POST", "/hosts/gpu-1/accept-key", {"fingerprint": "SHA256:x"}),
    ("PUT", "/caches/shared", {}),
    ("DELETE", "/caches/shared", None),
]


@pytest.mark.parametrize(("method", "path", "body"), WRITES)
async def test_a_write_says_what_it_is_based_on(
    bare: httpx.AsyncClient, method: str, path: str, body: Any
) -> None:
    answer = await bare.request(method, path, json=body)
    assert (answer.status_code, rule(answer)) == (428, "write.unconditional")


@pytest.mark.parametrize(("method", "path", "body"), [w for w in WRITES if "/chat" in w[1]])
async def test_a_write_based_on_an_earlier_state_changes_nothing(
    bare: httpx.AsyncClient, method: str, path: str, body: Any
) -> None:
    old = await save(bare)
    now = await bare.put("/deployments/chat", json=edited(4096), headers={"If-Match": old})
    answer = await bare.request(method, path, json=body, headers={"If-Match": old})
    assert (answer.status_code, rule(answer)) == (412, "write.changed")
    values = answer.json()["problems"][0]["values"]
    assert values == {"expected": [old], "found": now.headers["etag"]}
    left = await bare.get("/deployments/chat")
    assert left.headers["etag"] == now.headers["etag"]


async def test_of_two_writers_that_read_the_same_one_wins_and_the_other_knows(
    bare: httpx.AsyncClient,
) -> None:
    tag = await save(bare)
    answers = await asyncio.gather(
        *(
            bare.put("/deployments/chat", json=edited(512 * n), headers={"If-Match": tag})
            for n in range(1, 9)
        )
    )
    assert sorted(a.status_code for a in answers) == [200, *[412] * 7]
    winner = next(a for a in answers if a.status_code == 200)
    assert (await bare.get("/deployments/chat")).headers["etag"] == winner.headers["etag"]
    assert winner.json()["version"] == 2


async def test_what_is_to_be_created_overwrites_nothing(bare: httpx.AsyncClient) -> None:
    await save(bare)
    answer = await bare.put("/deployments/chat", json=edited(4096), headers={"If-None-Match": "*"})
    assert (answer.status_code, rule(answer)) == (412, "write.exists")
    host = {"address": "127.0.0.1", "port": 1}
    for status in (200, 412):
        done = await bare.put("/hosts/h", json=host, headers={"If-None-Match": "*"})
        assert done.status_code == status


async def test_a_tag_of_what_was_deleted_does_not_bring_it_back(bare: httpx.AsyncClient) -> None:
    host = {"address": "127.0.0.1", "port": 1}
    tag = (await bare.put("/hosts/h", json=host, headers={"If-None-Match": "*"})).headers["etag"]
    assert (await bare.delete("/hosts/h", headers={"If-Match": tag})).status_code == 204
    answer = await bare.put("/hosts/h", json=host, headers={"If-Match": tag})
    assert (answer.status_code, rule(answer)) == (404, "write.gone")


@pytest.mark.parametrize(
    "headers",
    [
        {"If-Match": "7"},
        {"If-Match": 'W/"7"'},
        {"If-Match": '"7", x'},
        {"If-None-Match": '"7"'},
        {"If-None-Match": "*", "If-Match": "*"},
    ],
)
async def test_a_condition_that_is_none_is_refused(
    bare: httpx.AsyncClient, headers: dict[str, str]
) -> None:
    answer = await bare.put("/deployments/chat", json=DOCUMENT, headers=headers)
    assert (answer.status_code, rule(answer)) == (400, "request.precondition")


async def test_the_tag_stands_in_every_view(bare: httpx.AsyncClient) -> None:
    tag = await save(bare)
    assert (await bare.get("/groups/chat")).json()["etag"] == tag
    assert (await bare.get("/snapshot")).json()["groups"][0]["etag"] == tag
    counts = {"counts": {"decode": 2}}
    done = await bare.post("/deployments/chat/scale", json=counts, headers={"If-Match": tag})
    assert done.status_code == 200, done.text
    assert (await bare.get("/groups/chat")).json()["etag"] != tag


async def test_a_repeated_write_is_done_once_and_answered_twice(bare: httpx.AsyncClient) -> None:
    await save(bare)
    headers = {"If-Match": "*", "Idempotency-Key": "k1"}
    restart = [
        await bare.post("/deployments/chat/restart", json={}, headers=headers) for _ in range(2)
    ]
    assert [a.status_code for a in restart] == [202, 202]
    assert restart[0].content == restart[1].content
    assert "idempotency-replayed" not in restart[0].headers
    assert restart[1].headers["idempotency-replayed"] == "true"
    events = (await bare.get("/events", params={"group": "chat"})).json()
    assert len([e for e in events if e["kind"] == "restart" and e["actor"] != "system"]) == 1


async def test_two_at_once_with_one_key_act_once(bare: httpx.AsyncClient) -> None:
    await save(bare)
    headers = {"If-Match": "*", "Idempotency-Key": "k1"}
    answers = await asyncio.gather(
        *(bare.post("/deployments/chat/restart", json={}, headers=headers) for _ in range(4))
    )
    codes = {a.status_code for a in answers}
    assert 202 in codes
    assert codes <= {202, 409}
    assert {rule(a) for a in answers if a.status_code == 409} <= {"request.under_way"}
    events = (await bare.get("/events", params={"group": "chat"})).json()
    assert len([e for e in events if e["kind"] == "restart" and e["actor"] != "system"]) == 1


async def test_a_key_is_for_one_request_and_one_caller(bare: httpx.AsyncClient) -> None:
    await save(bare)
    key = {"If-Match": "*", "Idempotency-Key": "k1"}
    first = await bare.post("/deployments/chat/pause", json={"paused": True}, headers=key)
    assert first.status_code == 202
    other = await bare.post("/deployments/chat/pause", json={"paused": False}, headers=key)
    assert (other.status_code, rule(other)) == (422, "request.idempotency_key")
    mine = {**key, "x-pdtui-actor": "someone"}
    hers = await bare.post("/deployments/chat/pause", json={"paused": False}, headers=mine)
    assert hers.status_code == 202
    bad = await bare.post(
        "/deployments/chat/pause", json={"paused": False}, headers={**key, "Idempotency-Key": "a b"}
    )
    assert (bad.status_code, rule(bad)) == (400, "request.idempotency_key")


async def test_what_was_begun_when_the_backend_died_is_not_done_again_unseen(
    bare: httpx.AsyncClient, backend: Backend
) -> None:
    """What a kill leaves between what a request did and its answer's being kept."""
    await save(bare)
    headers = {"If-Match": "*", "Idempotency-Key": "k1", "x-pdtui-actor": "me"}
    first = await bare.post("/deployments/chat/restart", json={}, headers=headers)
    assert first.status_code == 202
    answers, now = backend.store.answers, time.time()
    kept = await answers.find("me", "k1", now)
    assert kept is not None
    await answers.begin("me", "k1", kept.digest, now)
    again = await bare.post("/deployments/chat/restart", json={}, headers=headers)
    assert (again.status_code, rule(again)) == (409, "request.unfinished")
    other = await bare.post("/deployments/chat/pause", json={"paused": True}, headers=headers)
    assert (other.status_code, rule(other)) == (422, "request.idempotency_key")
    fresh = {**headers, "Idempotency-Key": "k2"}
    assert (await bare.post("/deployments/chat/restart", json={}, headers=fresh)).status_code == 202


async def test_a_request_is_written_down_before_it_is_done(
    bare: httpx.AsyncClient, backend: Backend
) -> None:
    """So that a kill finds it there: the answer is asked for while the request waits."""
    await save(bare)
    headers = {"If-Match": "*", "Idempotency-Key": "k1", "x-pdtui-actor": "me"}
    async with backend.store.lock("chat"):
        asked = asyncio.create_task(
            bare.post("/deployments/chat/restart", json={}, headers=headers)
        )
        async with asyncio.timeout(20):
            while (begun := await backend.store.answers.find("me", "k1", time.time())) is None:
                await asyncio.sleep(0.01)
        assert begun.status == 0
    assert (await asked).status_code == 202


async def test_a_refusal_is_repeated_too(bare: httpx.AsyncClient) -> None:
    headers = {"If-Match": "*", "Idempotency-Key": "k1"}
    unknown = await bare.post("/deployments/chat/restart", json={}, headers=headers)
    assert unknown.status_code == 404
    again = await bare.post("/deployments/chat/restart", json={}, headers=headers)
    assert again.headers["idempotency-replayed"] == "true"


async def test_kept_answers_are_bounded(backend: Backend) -> None:
    from backend.store.answers import KEEP_S, Answer

    answers, now = backend.store.answers, 1e9
    gist = Answer("d", 200, {"a": "b"}, b"body")
    for n in range(3):
        await answers.keep("me", f"k{n}", gist, now + n)
    assert await answers.find("me", "k0", now) == gist
    assert await answers.find("you", "k0", now) is None
    assert await answers.find("me", "k0", now + KEEP_S) is None
    await answers.keep("me", "later", gist, now + KEEP_S + 1)
    assert await answers.find("me", "k2", now + 3) is not None
    assert await answers.find("me", "k1", now + 3) is None  # dropped, not only hidden
    assert MOST < 10_000


@pytest.mark.parametrize(
    ("body", "kind", "status", "expected"),
    [
        (b'{"paused": true, "paused": false}', "application/json", 400, "request.json"),
        (b'{"paused": NaN}', "application/json", 400, "request.json"),
        (b'{"paused": "\\ud800"}', "application/json", 400, "request.json"),
        (b'{"paused": "\xff"}', "application/json", 400, "request.json"),
        (b"[" * 200_000, "application/json", 400, "request.json"),
        (b'{"a": ' + b"9" * 5000 + b"}", "application/json", 400, "request.json"),
        (b"{", "application/json", 400, "request.json"),
        (b"paused=true", "application/x-www-form-urlencoded", 415, "request.type"),
        (b'{"paused": true}', "text/plain", 415, "request.type"),
        (b" " * (MOST_BYTES + 1), "application/json", 413, "request.too_large"),
        (b"[]", "application/json", 400, "request.body"),
        (b"", "application/json", 400, "request.body"),
    ],
    ids=lambda v: str(v)[:24],
)
async def test_what_is_no_plain_json_is_refused(
    bare: httpx.AsyncClient, body: bytes, kind: str, status: int, expected: str
) -> None:
    await save(bare)
    answer = await bare.post(
        "/deployments/chat/pause",
        content=body,
        headers={"If-Match": "*", "Content-Type": kind},
    )
    assert (answer.status_code, rule(answer)) == (status, expected)


async def test_a_body_without_an_end_is_not_read_to_its_end(bare: httpx.AsyncClient) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while sent < 100 * MOST_BYTES:
            sent += 1 << 20
            yield b" " * (1 << 20)

    answer = await bare.post(
        "/check", content=endless(), headers={"Content-Type": "application/json"}
    )
    assert (answer.status_code, rule(answer)) == (413, "request.too_large")
    assert sent <= MOST_BYTES + (2 << 20)


@pytest.mark.parametrize(
    ("method", "path", "status", "expected"),
    [
        ("GET", "/nothing", 404, "request.address"),
        ("PATCH", "/deployments/chat", 405, "request.method"),
        ("TRACE", "/health", 405, "request.method"),
        ("GET", "/groups?limit=0", 400, "request.parameter"),
        ("GET", "/groups?cursor=%21", 400, "request.cursor"),
        ("GET", "/groups?cursor=MQ", 400, "request.cursor"),
        ("GET", "/instances?role=chief", 400, "request.parameter"),
        ("GET", "/instances?group=nobody", 404, "group.unknown"),
    ],
)
async def test_every_error_is_a_problem_document(
    bare: httpx.AsyncClient, method: str, path: str, status: int, expected: str
) -> None:
    answer = await bare.request(method, path)
    assert (answer.status_code, rule(answer)) == (status, expected)
    if status == 405:
        assert answer.headers["allow"]


async def test_a_wrong_method_is_told_every_right_one(bare: httpx.AsyncClient) -> None:
    answer = await bare.request("OPTIONS", "/tokens")
    assert answer.headers["allow"] == "GET, POST"
    assert answer.json()["detail"].endswith("it takes GET, POST. See /v1/openapi.json.")


async def test_lists_come_in_pages(bare: httpx.AsyncClient, backend: Backend) -> None:
    names = [f"g{n:02}" for n in range(7)]
    for name in names:
        document = {**DOCUMENT, "metadata": {"name": name}}
        await bare.put(f"/deployments/{name}", json=document, headers={"If-None-Match": "*"})
    for path, key in (("/groups", "name"), ("/endpoints", "group")):
        found, url, pages = [], f"{path}?limit=3", 0
        while url:
            answer = await bare.get(url)
            found += [row[key] for row in answer.json()]
            pages += 1
            link = answer.links.get("next")
            url = link["url"].removeprefix("/v1") if link else ""
            if pages == 1 and path == "/groups":  # what goes between two pages hides nothing
                await backend.groups.delete("g00", "me")
        assert found[-6:] == names[1:]
    rows: list[Any] = []
    url = "/events?limit=2"
    while url:
        answer = await bare.get(url)
        rows = answer.json() + rows
        link = answer.links.get("next")
        url = link["url"].removeprefix("/v1") if link else ""
    assert [e["seq"] for e in rows] == sorted({e["seq"] for e in rows})
    assert json.dumps(rows) == json.dumps((await bare.get("/events")).json())
