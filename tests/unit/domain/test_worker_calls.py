"""Membership calls in each router's dialect."""

from __future__ import annotations

from typing import Any

import pytest

from backend.domain.errors import Invalid, Refused
from backend.domain.group import Instance
from backend.domain.instance import Band
from backend.domain.mode import membership
from backend.domain.worker_calls import (
    Peer,
    WorkerRow,
    add_call,
    list_call,
    parse_workers,
    remove_call,
)


def test_vllm_router(kit: Any) -> None:
    mode = kit.catalogue.mode("vllm-nixl")
    call = add_call(mode, kit.document(), kit.peers[2])
    assert (call.method, call.path) == ("POST", "/workers")
    assert call.json == {
        "url": "http://10.0.0.3:40000", "model_id": "qwen3-32b", "worker_type": "decode",
    }  # fmt: skip
    row = WorkerRow("0b-1", "http://10.0.0.3:40000", "decode")
    removal = remove_call(mode, row)
    assert (removal.method, removal.path) == ("DELETE", "/workers/http%3A%2F%2F10.0.0.3%3A40000")
    assert 400 in removal.gone
    assert list_call(mode).path == "/workers"


def test_sglang_router_has_a_number_for_prefill_only_and_removes_by_id(kit: Any) -> None:
    mode = kit.catalogue.mode("sglang-mooncake")
    document = kit.document("sglang-mooncake")
    assert add_call(mode, document, kit.peers[0]).json == {
        "url": "http://10.0.0.1:40000", "bootstrap_port": 40001, "worker_type": "prefill",
    }  # fmt: skip
    assert add_call(mode, document, kit.peers[2]).json == {
        "url": "http://10.0.0.3:40000", "worker_type": "decode",
    }  # fmt: skip
    assert 202 in add_call(mode, document, kit.peers[0]).accepted
    assert remove_call(mode, WorkerRow("0b-1", "http://a:1", "decode")).path == "/workers/0b-1"
    older = remove_call(mode, WorkerRow("", "http://a:1", "decode"))
    assert older.path == "/workers/http%3A%2F%2Fa%3A1"


def test_a_prefill_without_its_bootstrap_band_is_refused(kit: Any) -> None:
    mode = kit.catalogue.mode("sglang-nixl")
    with pytest.raises(Refused, match=r"peer\.ports\.bootstrap"):
        add_call(mode, kit.document("sglang-nixl"), Peer("p", "prefill", "10.0.0.1", 1))


def test_registry_rows(kit: Any) -> None:
    mode = kit.catalogue.mode("vllm-nixl")
    answer = {
        "workers": [
            {"id": "u1", "url": "http://a:1", "worker_type": "prefill", "is_healthy": True},
            {"url": "http://b:1", "worker_type": "regular"},
        ],
        "total": 2,
    }
    assert parse_workers(mode, answer) == (
        WorkerRow("u1", "http://a:1", "prefill", True),
        WorkerRow("", "http://b:1", "regular", None),
    )
    assert parse_workers(mode, {"workers": []}) == ()


@pytest.mark.parametrize("answer", [None, [], "x", {}, {"workers": {}}, {"workers": [{"id": 1}]}])
def test_an_unreadable_registry_is_not_an_empty_one(kit: Any, answer: object) -> None:
    with pytest.raises(Invalid) as caught:
        parse_workers(kit.catalogue.mode("vllm-nixl"), answer)
    assert caught.value.problem.rule == "router.registry"


def test_a_static_router_has_no_membership_api(kit: Any) -> None:
    with pytest.raises(Refused, match="no membership API"):
        list_call(kit.catalogue.mode("vllm-mooncake"))


def test_an_ipv6_peer_has_brackets() -> None:
    assert Peer("p", "prefill", "fd00::1", 8000).url == "http://[fd00::1]:8000"
    http = Band(name="http", base=8000, count=1)
    instance = Instance(
        id="p", group="g", role="prefill", host="h", revision="r", address="fd00::1", bands=(http,)
    )
    assert instance.url == instance.record().url == "http://[fd00::1]:8000"


@pytest.mark.parametrize(
    ("mode", "policy"),
    [
        ("vllm-nixl", "dynamic"), ("vllm-mooncake", "restart"), ("sglang-mooncake", "dynamic"),
        ("sglang-nixl", "dynamic"), ("vllm-ascend-mooncake", "dynamic"), ("custom", "manual"),
        (None, "none"),
    ],
)  # fmt: skip
def test_membership(kit: Any, mode: str | None, policy: str) -> None:
    spec = kit.document(mode).spec
    assert membership(kit.catalogue.mode_of(spec), spec) == policy
    if mode is not None:
        own = kit.document(mode, roles={"router": {"run_command": ["r"]}}).spec
        assert membership(kit.catalogue.mode_of(own), own) == "manual"
