"""What connectors hash and compare by themselves, and the connectors themselves."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.domain.rules.conftest import Court, brief

LAX = {"prefill": {"enforce_handshake_compat": False}}
DRAFT = {"method": "eagle3", "model": "/m/eagle"}


def kv(name: str = "NixlConnector", role: str = "kv_both", **more: Any) -> dict[str, Any]:
    body = {"kv_connector": name, "kv_role": role, **more}
    return {"parameters": ["--kv-transfer-config", json.dumps(body)]}


def folded(*children: Any) -> dict[str, Any]:
    return kv("MultiConnector", kv_connector_extra_config={"connectors": list(children)})


def spec(**body: Any) -> dict[str, Any]:
    return {"parameters": [f"--speculative-config={json.dumps(body)}"]}


VERSIONS = [
    ({}, {}, {}, []),
    ({"engine_version": "0.29.0"}, {"engine_version": "0.29"}, {}, []),
    ({"engine_version": "0.29.0"}, {"engine_version": "0.30.0"}, {}, ["refused differ"]),
    ({"engine_version": "0.29.0"}, {"engine_version": "0.30.0"}, LAX, ["unverified differ"]),
    ({"engine_version": "0.29.0"}, {}, {}, ["unverified unknown"]),
    ({"engine_version": "edge"}, {"engine_version": "edge"}, {}, []),
    ({"image": "a"}, {"image": "a"}, {}, []),
    ({"image": "a"}, {"image": "b"}, {}, ["unverified unknown"]),
    ({"image": "a"}, {}, {}, ["unverified unknown"]),
    ({"executable": "/a"}, {"executable": "/b"}, {}, ["unverified unknown"]),
]


@pytest.mark.parametrize(("p", "d", "extra", "expected"), VERSIONS)
def test_engine_version(court: Court, p: Any, d: Any, extra: Any, expected: list[str]) -> None:
    found = court.pair(p, d, disaggregation={"connector_extra": extra})
    assert brief(found, "pairing.engine_version") == expected
    elsewhere = court.pair(p, d, mode="vllm-mooncake")
    assert brief(elsewhere, "pairing.engine_version") == []


def test_engine_versions_by_host(court: Court) -> None:
    hosts: dict[str, Any] = {"h1": {}, "h2": {}}
    about = {"hosts": hosts, "versions": {"h1": "0.29.0", "h2": "0.30.0"}}
    found = [p for p in court.pair(about=about) if p.rule == "pairing.engine_version"]
    assert [(p.case, p.values["host"], p.values["other_host"]) for p in found] == [
        ("hosts", "h1", "h2")
    ]
    apart = court.pair({"hosts": {"names": ["h1"]}}, {"hosts": {"names": ["h2"]}}, about=about)
    assert brief(apart, "pairing.engine_version") == ["refused hosts", "refused differ"]
    alike = {"hosts": hosts, "versions": {"h1": "0.29.0", "h2": "0.29.0"}}
    assert brief(court.pair(about=alike), "pairing.engine_version") == []
    one_known = {"hosts": hosts, "versions": {"h1": "0.29.0"}}
    assert brief(court.pair(about=one_known), "pairing.engine_version") == []
    images = court.pair(image="x", about=about)
    assert brief(images, "pairing.engine_version") == []


PATHS = [
    ("vllm-nixl", [], [], []),
    ("vllm-nixl", ["--model", "/a"], ["--model=/a"], []),
    ("vllm-nixl", ["--model", "/a"], [], ["refused differ"]),
    ("vllm-mooncake", ["--model", "/a"], [], ["unverified may_differ"]),
    ("vllm-nixl", ["--revision", "a"], ["--revision", "b"], ["refused revision"]),
    ("vllm-mooncake", ["--revision", "a"], ["--revision", "b"], ["refused revision"]),
    ("vllm-nixl", ["--revision", "a"], [], ["unverified revision"]),
    ("vllm-nixl", ["--revision", "a"], ["--revision=a"], []),
]


@pytest.mark.parametrize(("mode", "p", "d", "expected"), PATHS)
def test_model_path(
    court: Court, mode: str, p: list[str], d: list[str], expected: list[str]
) -> None:
    found = court.pair({"parameters": p}, {"parameters": d}, mode=mode)
    assert brief(found, "pairing.model_path") == expected


def test_paths_that_are_not_compared_are_not_proven(court: Court) -> None:
    found = court.pair({"parameters": ["--model", "/a"]}, disaggregation={"connector_extra": LAX})
    assert brief(found, "pairing.model_path") == ["unverified may_differ"]


BACKENDS = [
    (None, None, {}, []),
    ("FLASHINFER", "flashinfer", {}, []),
    ("FLASHINFER", "FLASH_ATTN", {}, ["refused differ"]),
    ("FLASHINFER", "MINE", {}, ["unverified unknown"]),
    ("FLASHINFER", None, {}, ["unverified unknown"]),
    ("FLASHINFER", "FLASH_ATTN", LAX, ["unverified unknown"]),
]


@pytest.mark.parametrize(("p", "d", "extra", "expected"), BACKENDS)
def test_attention_backend(
    court: Court, p: str | None, d: str | None, extra: Any, expected: list[str]
) -> None:
    roles = [{"parameters": ["--attention-backend", v] if v else []} for v in (p, d)]
    found = court.pair(*roles, disaggregation={"connector_extra": extra})
    assert brief(found, "pairing.attention_backend") == expected
    assert brief(court.pair(*roles, mode="vllm-mooncake"), "pairing.attention_backend") == []


@pytest.mark.parametrize(
    ("p", "d", "expected"),
    [("1", "1", []), ("1", None, ["unverified invariant"]), ("0", None, []),
     ("1", "x", ["unverified invariant"])],
)  # fmt: skip
def test_batch_invariance(court: Court, p: str | None, d: str | None, expected: list[str]) -> None:
    roles = [{"env": {"VLLM_BATCH_INVARIANT": v} if v else {}} for v in (p, d)]
    assert brief(court.pair(*roles), "pairing.attention_backend") == expected


DRAFTS = [
    ({}, {}, []),
    (spec(**DRAFT), spec(model="/m/eagle", method="EAGLE3", num_speculative_tokens=5), []),
    (spec(**DRAFT), {}, ["refused differ"]),
    (spec(**DRAFT), spec(method="eagle3", model="/m/other"), ["refused differ"]),
    (spec(**DRAFT), spec(**DRAFT, revision="x"), ["refused differ"]),
    (spec(model="/m/draft"), spec(method="draft_model", model="/m/draft"), []),
    (spec(method="ngram"), {}, ["unverified model_free"]),
    (spec(model="ngram"), spec(method="ngram", prompt_lookup_max=4), []),
    (spec(method="ngram"), spec(method="suffix"), ["refused differ"]),
    (spec(method="ngram"), spec(**DRAFT), ["refused differ"]),
    ({"parameters": ["--speculative-config", "[1]"]}, {}, ["unverified unreadable"]),
    ({"parameters": ["--speculative-config", "x"]}, {"parameters": ["--speculative-config=x"]}, []),
]


@pytest.mark.parametrize(("p", "d", "expected"), DRAFTS)
def test_speculative(court: Court, p: Any, d: Any, expected: list[str]) -> None:
    assert brief(court.pair(p, d), "pairing.speculative") == expected
    assert brief(court.pair(p, d, mode="vllm-mooncake"), "pairing.speculative") == []


@pytest.mark.parametrize(
    ("p", "d", "expected"),
    [
        ({}, {}, []),
        ({}, spec(num_speculative_tokens=3), ["warning tokens"]),
        (spec(num_speculative_tokens=3), spec(num_speculative_tokens=3), ["warning tokens"]),
        (spec(num_speculative_tokens=1), spec(num_speculative_tokens=3), []),
        (spec(num_speculative_tokens=2), {}, []),
        ({}, {"parameters": ["--speculative-config", "x"]}, []),
    ],
)
def test_draft_tokens_on_ascend(court: Court, p: Any, d: Any, expected: list[str]) -> None:
    found = court.pair(p, d, mode="vllm-ascend-mooncake")
    assert brief(found, "pairing.speculative") == expected


CROSS = {"enable_cross_layers_blocks": True}
CONNECTORS = [
    ("vllm-nixl", {}, {}, []),
    ("vllm-nixl", kv(), {}, []),
    ("vllm-nixl", kv("NixlPullConnector"), kv(), []),
    ("vllm-nixl", kv("NixlPushConnector"), kv(), ["refused kinds"]),
    ("vllm-nixl", kv("MooncakeConnector"), {}, ["refused kinds"]),
    ("vllm-nixl", kv(role="kv_consumer"), {}, ["refused role"]),
    ("vllm-nixl", kv(role="kv_producer"), kv(role="kv_producer"), ["refused role"]),
    ("vllm-nixl", kv(kv_connector_extra_config=CROSS), {}, ["refused extra"]),
    ("vllm-nixl", folded(kv_child := {"kv_connector": "NixlConnector"}), kv(), []),
    ("vllm-nixl", folded({**kv_child, "kv_connector_extra_config": CROSS}, {"kv_connector": "X"}),
     {}, ["refused extra"]),
    ("vllm-nixl", folded(), {}, ["refused unreadable"]),
    ("vllm-nixl", kv("Mine", kv_connector_module_path="m"), {}, ["unverified unknown"]),
    ("vllm-nixl", {"parameters": ["--kv-transfer-config", "x"]}, {}, ["refused unreadable"]),
    ("vllm-nixl", {"parameters": ["--kv_transfer_config=[]"]}, {}, ["refused unreadable"]),
    ("vllm-nixl", {"parameters": ["--kv-transfer-config.kv_connector", "MooncakeConnector"]}, {},
     ["refused kinds"]),
    ("vllm-mooncake", kv("MooncakeConnector"), kv("MooncakeConnector"), []),
    ("vllm-mooncake", kv("MooncakeConnector", kv_connector_extra_config=CROSS), {}, []),
    ("vllm-nixl", {"parameters": [
        '--kv-transfer-config={"kv_connector":"NixlConnector","kv_port":{{ports.x}}}']}, {}, []),
    ("sglang-nixl", {}, {}, []),
    ("custom", {}, {}, []),
    ("custom", kv("A"), kv("B"), ["refused kinds"]),
    ("custom", kv("A"), {}, []),
]  # fmt: skip


@pytest.mark.parametrize(("mode", "p", "d", "expected"), CONNECTORS)
def test_connector(court: Court, mode: str, p: Any, d: Any, expected: list[str]) -> None:
    assert brief(court.pair(p, d, mode=mode), "pairing.connector") == expected


@pytest.mark.parametrize(
    ("told", "expected"),
    [(4, []), (2, ["refused sizes"]), (0, []), ("4", [])],
)
def test_sizes_in_an_ascend_connector(court: Court, told: Any, expected: list[str]) -> None:
    extra = {"prefill": {"tp_size": told}, "decode": {"tp_size": 1}}
    own = kv("MooncakeConnectorV1", "kv_producer", kv_connector_extra_config=extra)
    also = kv("MooncakeConnectorV1", "kv_consumer")
    found = court.pair(
        {**own, "accelerators": 4}, {**also, "accelerators": 1}, mode="vllm-ascend-mooncake"
    )
    assert brief(found, "pairing.connector") == expected


def test_extra_keys_of_the_document_are_compared_too(court: Court) -> None:
    one = court.pair(disaggregation={"connector_extra": {"decode": CROSS}})
    assert [(p.case, p.path) for p in one] == [
        ("extra", "spec.disaggregation.connector_extra.decode")
    ]
    both = court.pair(disaggregation={"connector_extra": {"prefill": CROSS, "decode": CROSS}})
    assert brief(both) == []
