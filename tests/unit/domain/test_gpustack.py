"""GPUStack's models as documents of ours, and every field that has no place here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from backend.domain.documents import parse_deployment
from backend.domain.errors import Invalid
from backend.domain.gpustack import convert, models_in

DATA = Path(__file__).parents[2] / "data" / "gpustack"


def model(**fields: Any) -> dict[str, Any]:
    """A small model."""
    return {"name": "qwen", "source": "local_path", "local_path": "/m/q", "backend": "vLLM",
            **fields}  # fmt: skip


def test_a_model_with_roles_becomes_a_document_that_reads() -> None:
    (source,) = models_in(json.loads((DATA / "qwen3-2p1d.json").read_text()))
    found = convert(source)
    parsed = parse_deployment(found.document)
    spec = parsed.spec
    assert parsed.name == "qwen3-32b"
    assert (spec.model, spec.served_model_name) == ("/data/models/Qwen3-32B", "Qwen3_32B")
    assert spec.parameters == ["--max-model-len", "32768", "--gpu-memory-utilization=0.9"]
    assert spec.disaggregation is not None
    assert spec.disaggregation.mode == "vllm-nixl"
    assert spec.disaggregation.kv_load_failure_policy == "recompute"
    assert spec.roles is not None
    prefill, decode, router = spec.roles.prefill, spec.roles.decode, spec.roles.router
    assert (prefill.replicas, prefill.accelerators, prefill.parameters) == (2, 2, None)
    assert [(p.host, p.accelerators) for p in prefill.placement or ()] == [
        ("gpu-1", [0, 1]), ("gpu-2", [0, 1]),
    ]  # fmt: skip
    assert (decode.env, decode.accelerators) == ({}, 4)
    assert router.parameters == ["--retry-max-retries", "5"]
    assert spec.hosts is not None
    assert spec.hosts.labels == {"rack": "a"}
    assert {path: why for path, why, _ in found.dropped} == {
        "name": "renamed", "worker_selector": "labels", "disaggregation.vendor": "vendor",
        "disaggregation.readiness": "readiness", "gather": "no_place", "lora_list": "no_place",
        "speculative_config": "no_place", "roles[1].gpu_type_selector": "no_place",
        "roles[2].resources": "no_place",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "spec"),
    [
        ({"replicas": 0}, {"paused": True}),
        ({"replicas": 3}, {"replicas": 3}),
        ({"backend_parameters": ["--tensor-parallel-size 4"]},
         {"parameters": ["--tensor-parallel-size", "4"], "accelerators": 4}),
        ({"backend_parameters": ["-tp", "2", "--pp-size=2"]}, {"accelerators": 4}),
        ({"backend_parameters": ["--chat-template=a b"]}, {"parameters": ["--chat-template=a b"]}),
        ({"run_command": "serve '{{model_path}}' --x"},
         {"run_command": ["serve", "{{model_path}}", "--x"]}),
        ({"extended_kv_cache": {"enabled": True, "ram_size": 20, "chunk_size": 256}},
         {"extended_kv_cache": {"kind": "in_process", "ram_size_gib": 20, "chunk_size": 256}}),
        ({"extended_kv_cache": {"enabled": False, "ram_size": 20}},
         {"extended_kv_cache": {"kind": "none"}}),
        ({"backend": "Custom"}, {"engine": "custom"}),
        ({"disaggregation": {"mode": "vllm-ascend-mooncake"}}, {"engine": "vllm-ascend"}),
    ],
)  # fmt: skip
def test_fields_carry_over(fields: dict[str, Any], spec: dict[str, Any]) -> None:
    found = convert(model(**fields)).document["spec"]
    assert {k: found.get(k) for k in spec} == spec


def test_placeholders_get_our_names() -> None:
    found = convert(model(env={"IP": "{{worker_ip}}:{{port}}", "G": "{{group_id}}"}))
    assert found.document["spec"]["env"] == {"IP": "{{host_ip}}:{{port}}", "G": "{{group_id}}"}
    assert found.dropped == [("{{group_id}}", "placeholder", {})]


def test_accelerators_that_do_not_come_out_are_named() -> None:
    ids = ["gpu-1:cuda:0", "gpu-1:cuda:1", "gpu-2:cuda:0"]
    found = convert(model(gpu_selector={"gpu_ids": ids, "gpus_per_replica": 2}, replicas=2))
    assert "placement" not in found.document["spec"]
    assert [(p, w) for p, w, _ in found.dropped] == [("gpu_selector.gpu_ids", "gpu_ids")]


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        ({"items": []}, "convert.source"), ([1], "convert.source"), ("x", "convert.source"),
        ({"kind": "Deployment"}, "convert.source"),
    ],
)  # fmt: skip
def test_what_is_no_model_is_told(data: Any, rule: str) -> None:
    with pytest.raises(Invalid) as caught:
        models_in(data)
    assert caught.value.problem.rule == rule


@pytest.mark.parametrize(
    ("fields", "rule"),
    [({"backend": "VoxBox"}, "convert.engine"), ({"local_path": None}, "convert.model")],
)
def test_what_cannot_be_a_deployment_is_told(fields: dict[str, Any], rule: str) -> None:
    with pytest.raises(Invalid) as caught:
        convert(model(**fields))
    assert caught.value.problem.rule == rule
