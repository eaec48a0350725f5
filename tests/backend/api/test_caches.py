"""Cache services and mode choices over the API: saved, chosen with reasons, refused, counted."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from backend.domain.documents import parse_deployment
from backend.services.backend import Backend


def cache(name: str = "shared", provider: str = "mooncake", **spec: Any) -> dict[str, Any]:
    body = {"provider": provider, "endpoint": "10.0.0.9:50051", **spec}
    return {
        "apiVersion": "pdtui/v1", "kind": "CacheService", "metadata": {"name": name}, "spec": body,
    }  # fmt: skip


def using(mode: str, service: str, engine: str = "vllm", **roles: Any) -> dict[str, Any]:
    spec = {
        "model": "/models/m", "engine": engine, "parameters": ["--max-model-len", "8192"],
        "extended_kv_cache": {"kind": "service", "service": service},
        "disaggregation": {"mode": mode}, "roles": roles,
    }  # fmt: skip
    return {"apiVersion": "pdtui/v1", "kind": "Deployment", "metadata": {"name": "chat"},
            "spec": spec}  # fmt: skip


async def rules(answer: httpx.Response) -> list[str]:
    return [p["rule"] for p in answer.json()["problems"]]


async def test_a_service_is_saved_comes_back_and_survives(
    http: httpx.AsyncClient, backend: Backend
) -> None:
    saved = await http.put("/caches/shared", json=cache(settings={"extra": {"a": 1}}))
    assert saved.status_code == 200, saved.text
    assert saved.json() == {
        "name": "shared", "etag": saved.headers["etag"],
        "provider": "mooncake", "endpoint": "10.0.0.9:50051",
        "settings": {"extra": {"a": 1}}, "used_by": [],
    }  # fmt: skip
    assert (await http.get("/caches/shared")).json() == cache(settings={"extra": {"a": 1}})
    assert [c["name"] for c in (await http.get("/caches")).json()] == ["shared"]
    other = type(backend.store)(backend.paths.store)
    await other.open()
    assert other.caches == backend.store.caches
    await other.close()
    assert (await http.delete("/caches/shared")).status_code == 204
    gone = await http.get("/caches/shared")
    assert (gone.status_code, await rules(gone)) == (404, ["cache.unknown"])


@pytest.mark.parametrize(
    ("document", "path"),
    [
        (cache(provider="redis"), "spec.provider"),
        (cache(endpoint="10.0.0.9"), "spec.endpoint"),
        (cache(endpoint="10.0.0.9:70000"), "spec.endpoint"),
        (cache(settings={"port": 1}), "spec.settings"),
        (cache(name="other"), "metadata.name"),
        (cache(replicas=2), "spec.replicas"),
    ],
)
async def test_what_is_wrong_is_named(
    http: httpx.AsyncClient, document: dict[str, Any], path: str
) -> None:
    answer = await http.put("/caches/shared", json=document)
    assert answer.status_code == 400, answer.text
    assert [p["path"] for p in answer.json()["problems"]] == [path]
    assert (await http.get("/caches")).json() == []


async def test_the_picker_says_why_a_service_does_not_fit(http: httpx.AsyncClient) -> None:
    for name, provider in (("lm", "lmcache"), ("store", "mooncake"), ("mesh", "meshfusion")):
        assert (await http.put(f"/caches/{name}", json=cache(name, provider))).status_code == 200

    async def choices(**asked: str) -> dict[str, str]:
        answer = await http.get("/caches-choices", params=asked)
        return {c["name"]: c["why_not"] for c in answer.json()}

    nixl = await choices(mode="vllm-nixl", role="prefill")
    assert nixl["lm"] == ""
    assert nixl["store"] == "vllm-nixl cannot use mooncake; it takes: lmcache"
    decode = await choices(mode="vllm-nixl", role="decode")
    assert decode["lm"].startswith("only prefill can use lmcache in vllm-nixl")
    assert (await choices(mode="vllm-mooncake", role="decode"))["store"] == ""
    custom = await choices(mode="custom")
    assert set(custom.values()) == {"custom attaches no cache service"}
    assert (await http.get("/caches-choices", params={"mode": "nose"})).status_code == 404


async def test_a_deployment_is_refused_a_service_it_may_not_use(http: httpx.AsyncClient) -> None:
    unknown = await http.put("/deployments/chat", json=using("vllm-mooncake", "shared"))
    assert "cache.service" in await rules(unknown)
    await http.put("/caches/shared", json=cache())
    wrong = await http.put("/deployments/chat", json=using("vllm-nixl", "shared"))
    assert "cache.provider" in await rules(wrong)
    await http.put("/caches/lm", json=cache("lm", "lmcache"))
    whole = await http.put("/deployments/chat", json=using("vllm-nixl", "lm"))
    assert await rules(whole) == ["cache.role"]
    (problem,) = whole.json()["problems"]
    assert "decode" in problem["message"]
    own = using("vllm-nixl", "lm", decode={"extended_kv_cache": {"kind": "none"}})
    assert (await http.put("/deployments/chat", json=own)).status_code == 200


async def test_a_service_in_use_is_kept_and_its_change_is_part_of_the_revision(
    http: httpx.AsyncClient,
) -> None:
    await http.put("/caches/shared", json=cache())
    saved = await http.put("/deployments/chat", json=using("vllm-mooncake", "shared"))
    assert saved.status_code == 200, saved.text
    first = saved.json()["revision"]
    kept = await http.delete("/caches/shared")
    assert (kept.status_code, await rules(kept)) == (409, ["cache.in_use"])
    turned = await http.put("/caches/shared", json=cache(provider="lmcache"))
    assert (turned.status_code, await rules(turned)) == (409, ["cache.in_use"])
    moved = await http.put("/caches/shared", json=cache(endpoint="10.0.0.8:50051"))
    assert moved.json()["used_by"] == ["chat"]
    after = (await http.get("/groups/chat")).json()["revision"]
    assert after != first
    await http.put("/caches/other", json=cache("other"))
    assert (await http.get("/groups/chat")).json()["revision"] == after
    await http.put("/caches/shared", json=cache())
    assert (await http.get("/groups/chat")).json()["revision"] == first


async def test_counting_again_as_a_start_does_gives_the_same(backend: Backend) -> None:
    await backend.caches.put("shared", cache(), "me")
    document = parse_deployment(using("vllm-mooncake", "shared"))
    view = await backend.groups.apply(document, "me")
    await backend.groups.refresh_revisions()
    assert backend.pictures.group("chat").revision == view.revision


async def test_which_modes_fit_an_engine(http: httpx.AsyncClient) -> None:
    answer = await http.get("/mode-choices", params={"engine": "vllm", "vendor": "nvidia"})
    found = {c["mode"]: c for c in answer.json()}
    assert found["vllm-nixl"]["recommended"]
    assert found["vllm-mooncake"]["why_not"] == ""
    assert found["sglang-nixl"]["why_not"] == "it is for sglang, not vllm"
    assert found["vllm-mooncake"]["membership"] == "restart"
    ascend = await http.get("/mode-choices", params={"engine": "vllm", "vendor": "ascend"})
    why = {c["mode"]: c["why_not"] for c in ascend.json()}
    assert why["vllm-nixl"] == "it needs nvidia accelerators; the hosts have ascend"
    assert (await http.get("/mode-choices", params={"engine": "nose"})).status_code == 404


async def test_which_modes_fit_a_draft_and_what_its_version_is_worth(
    http: httpx.AsyncClient,
) -> None:
    draft = using("vllm-nixl", "lm", router={"run_command": ["mine"]})
    draft["spec"] |= {"engine_version": "0.27.0", "extended_kv_cache": {"kind": "none"}}
    found = {c["mode"]: c for c in (await http.post("/mode-choices", json=draft)).json()}
    assert "0.27.0 is outside >=0.27.1" in found["vllm-nixl"]["warnings"][0]
    assert found["sglang-nixl"]["warnings"] == []
    assert found["vllm-nixl"]["membership"] == "manual"
    draft["spec"]["engine_version"] = "0.27.0+ours"
    found = {c["mode"]: c for c in (await http.post("/mode-choices", json=draft)).json()}
    assert found["vllm-nixl"]["warnings"] == []


async def test_the_list_repeats_no_secret_and_the_document_is_as_it_was_saved(
    http: httpx.AsyncClient,
) -> None:
    kept = cache(settings={"password": "sk-of-the-cache", "extra": {"a": 1}})
    saved = await http.put("/caches/shared", json=kept)
    listed = await http.get("/caches")
    assert listed.json()[0]["settings"] == {"password": "********", "extra": {"a": 1}}
    assert "sk-of" not in saved.text + listed.text
    assert (await http.get("/caches/shared")).json() == kept
