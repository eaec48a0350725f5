"""Structure, mode, router and extended cache."""

from __future__ import annotations

from typing import Any

import pytest

from backend.domain.group import Group
from backend.domain.rules.routing import settled
from backend.domain.rules.structure import scale_refusal
from tests.unit.domain.rules.conftest import Court, brief

LIMITS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "adapters": ({"parameters": ["--enable-lora"]}, ["refused structure.lora"]),
    "adapters of one role": (
        {"roles": {"decode": {"parameters": ["--lora-modules", "a=b"]}}},
        ["refused structure.lora"],
    ),
    "adapters on sglang": (
        {"mode": "sglang-nixl", "parameters": ["--lora-paths=a"]},
        ["refused structure.lora"],
    ),
    "adapters without disaggregation": ({"mode": None, "parameters": ["--enable-lora"]}, []),
    "a host of one's own": (
        {"parameters": ["--host=0.0.0.0"]},
        ["refused structure.reserved_flag owned"],
    ),
    "a name in a pasted line": (
        {"parameters": ["--dtype auto --served_model_name x"]},
        ["refused structure.reserved_flag owned"],
    ),
    "a path on sglang": (
        {"mode": "sglang-nixl", "parameters": ["--model-path", "/x"]},
        ["refused structure.reserved_flag owned"],
    ),
    "a key": ({"parameters": ["--api-key", "k"]}, ["refused structure.reserved_flag key"]),
    "a key without disaggregation": ({"mode": None, "parameters": ["--api-key", "k"]}, []),
    "a port without disaggregation": (
        {"mode": None, "parameters": ["--port", "1"]},
        ["refused structure.reserved_flag owned"],
    ),
    "a port of a command of one's own": (
        {"mode": None, "engine": "custom", "run_command": ["x"], "parameters": ["--port", "1"]},
        [],
    ),
    "image and version": (
        {"image": "i", "engine_version": "0.29.0"},
        ["refused structure.image_version"],
    ),
    "image and version of a role": (
        {"roles": {"decode": {"image": "i", "engine_version": "0.29.0"}}},
        ["refused structure.image_version", "unverified pairing.engine_version unknown"],
    ),
    "an image over the deployment's version": (
        {"mode": "vllm-mooncake", "engine_version": "0.29.0", "roles": {"decode": {"image": "i"}}},
        [],
    ),
    "image and version of a custom engine": (
        {"mode": None, "engine": "custom", "run_command": ["x"], "image": "i",
         "engine_version": "1"},
        [],
    ),
    "more ranks than accelerators": (
        {"accelerators": 2, "parameters": ["-tp", "2", "-pp", "2"]},
        ["refused structure.accelerators"],
    ),
    "as many ranks": ({"accelerators": 4, "parameters": ["-tp", "2", "-pp", "2"]}, []),
    "ranks without accelerators": ({"accelerators": 0, "parameters": ["-tp", "2"]}, []),
    "a policy the mode has": (
        {"disaggregation": {"kv_load_failure_policy": "recompute"}},
        [],
    ),
    "a policy it lacks": (
        {"mode": "sglang-nixl", "disaggregation": {"kv_load_failure_policy": "recompute"}},
        ["refused mode.kv_load_failure_policy mode"],
    ),
    "a policy nobody renders": (
        {"mode": "custom", "disaggregation": {"kv_load_failure_policy": "recompute"}},
        ["refused mode.kv_load_failure_policy custom"],
    ),
    "an old engine": ({"engine_version": "0.20.0"}, ["warning mode.version_range reason"]),
    "a suffixed version": ({"engine_version": "0.20.0+mine"}, []),
    "an old engine of a cache": (
        {"engine_version": "0.24.0", "extended_kv_cache": {"kind": "in_process"}},
        ["warning mode.version_range reason"] * 2,
    ),
    "an old engine of a service": (
        {"engine_version": "0.27.1", "mode": "vllm-mooncake",
         "extended_kv_cache": {"kind": "service", "service": "mc"}},
        ["warning mode.version_range reason"],
    ),
    "a variable of the mode": (
        {"env": {"UCX_NET_DEVICES": "mlx5_0"}},
        ["warning mode.shadowed env"],
    ),
    "a variable of the mode by role": (
        {"roles": {"prefill": {"env": {"UCX_NET_DEVICES": "a"}},
                   "decode": {"env": {"UCX_NET_DEVICES": "b"}}}},
        ["warning mode.shadowed env"] * 2,
    ),
    "an argument of the mode": (
        {"mode": "sglang-nixl", "parameters": ["--disaggregation-mode", "null"]},
        ["warning mode.shadowed flag"],
    ),
    "an engine of another mode": ({"mode": "sglang-nixl", "engine": "vllm"},
                                  ["refused mode.engine"]),
    "an unknown mode": ({"mode": "vllm-nix"}, ["refused mode.unknown"]),
}  # fmt: skip


@pytest.mark.parametrize("name", LIMITS)
def test_limits(court: Court, name: str) -> None:
    spec, expected = LIMITS[name]
    document = court.document(spec.get("mode", "vllm-nixl"),
                              **{k: v for k, v in spec.items() if k != "mode"})  # fmt: skip
    assert brief(court.judge(document, {"services": {"mc": "mooncake"}})) == expected


SERVICES = {"lm": "lmcache", "mc": "mooncake", "mf": "meshfusion", "odd": "oddity"}
IN = {"kind": "in_process"}


def service(name: str) -> dict[str, Any]:
    return {"kind": "service", "service": name}


CACHES = [
    ("vllm-nixl", IN, None, []),
    ("vllm-nixl", service("lm"), {"kind": "none"}, []),
    ("vllm-nixl", service("lm"), None, ["refused cache.role"]),
    ("vllm-nixl", service("mc"), None, ["refused cache.provider"]),
    ("vllm-nixl", service("nobody"), None, ["refused cache.service"]),
    ("vllm-mooncake", service("mc"), None, []),
    ("vllm-mooncake", service("lm"), None, ["refused cache.provider"]),
    ("vllm-ascend-mooncake", service("mc"), None, []),
    ("sglang-mooncake", service("lm"), service("mf"), ["refused cache.two_services"]),
    ("sglang-nixl", service("mf"), None, []),
    ("custom", IN, None, ["refused cache.mode"]),
    ("custom", service("lm"), None, ["refused cache.mode"]),
    (None, IN, None, ["refused cache.mode plain"]),
    ("vllm-nixl", {"kind": "service"}, None, ["refused cache.shape no_service"]),
    ("vllm-nixl", {"kind": "none", "service": "lm"}, None, []),
    ("vllm-nixl", {"kind": "in_process", "service": "lm"}, None,
     ["refused cache.shape not_a_service"]),
]  # fmt: skip


@pytest.mark.parametrize(("mode", "whole", "decode", "expected"), CACHES)
def test_caches(
    court: Court, mode: str | None, whole: Any, decode: Any, expected: list[str]
) -> None:
    spec: dict[str, Any] = {"extended_kv_cache": whole}
    if decode is not None:
        spec["roles"] = {"decode": {"extended_kv_cache": decode}}
    found = court.judge(court.document(mode, **spec), {"services": SERVICES})
    assert brief(found) == expected


def test_services_nobody_was_asked_about(court: Court) -> None:
    found = court.judge(court.document(extended_kv_cache=service("lm")))
    assert brief(found) == ["unverified cache.service unknown"]


ROUTERS = [
    ("vllm-nixl", [], []),
    ("vllm-nixl", ["--cache-threshold", "0.5"], []),
    ("vllm-nixl", ["--prefill", "http://x"], ["refused router.owned_flag peers"]),
    ("vllm-nixl", ["--worker_urls=http://x"], ["refused router.owned_flag peers"]),
    ("vllm-nixl", ["--worker-u=http://x"], ["refused router.owned_flag peers"]),
    ("sglang-nixl", ["--port=1"], ["refused router.owned_flag ports"]),
    ("vllm-nixl", ["--retry-max-retries", "0"], ["refused router.tunable minimum"]),
    ("vllm-nixl", ["--cache-threshold=1.5"], ["refused router.tunable maximum"]),
    ("vllm-nixl", ["--cache-threshold=nan"], ["refused router.tunable minimum"]),
    ("vllm-nixl", ["--queue-size many"], ["refused router.tunable number"]),
    ("vllm-nixl", ["--policy", "best"], ["refused router.tunable options"]),
    ("vllm-nixl", ["--policy", "power_of_two"], []),
    ("vllm-mooncake", ["--decode-policy", "power_of_two"], ["refused router.members members"]),
    ("vllm-mooncake", ["--prefill-policy", "power_of_two"], []),
    ("vllm-nixl", ["--prefill-policy", "random"], ["warning router.policy"]),
    ("vllm-ascend-mooncake", ["--decode-policy=random"], ["warning router.policy"]),
    ("vllm-mooncake", ["--decode-policy=random"], []),
    ("vllm-nixl", ["--intra-node-data-parallel-size", "2"],
     ["refused pairing.data_parallel router"]),
    ("vllm-nixl", ["--intra-node-data-parallel-size", "1"], []),
    ("vllm-nixl", ["--intra-node-data-parallel-size", "x"], []),
]  # fmt: skip


@pytest.mark.parametrize(("mode", "parameters", "expected"), ROUTERS)
def test_router_rows(court: Court, mode: str, parameters: list[str], expected: list[str]) -> None:
    roles = {"prefill": {"replicas": 2}, "router": {"parameters": parameters}}
    assert brief(court.judge(court.document(mode, roles=roles))) == expected
    own = {**roles, "router": {"parameters": parameters, "run_command": ["mine"]}}
    left = [e for e in expected if "data_parallel" in e]
    assert brief(court.judge(court.document(mode, roles=own))) == left


def test_rows_left_as_they_were_are_not_saved(court: Court) -> None:
    rows = ["--policy cache_aware", "--retry-max-retries", "3", "--cb-failure-threshold=7"]
    document = court.document(roles={"router": {"parameters": rows}})
    kept = settled(document, court.catalogue)
    assert kept.spec.roles is not None
    assert kept.spec.roles.router.parameters == ["--cb-failure-threshold=7"]
    assert settled(kept, court.catalogue) is kept
    untouched = court.document(roles={"router": {"parameters": rows[:3]}})
    roles = settled(untouched, court.catalogue).spec.roles
    assert roles is not None
    assert roles.router.parameters is None
    own = court.document(roles={"router": {"parameters": rows, "run_command": ["mine"]}})
    assert settled(own, court.catalogue) is own
    plain = court.document(None)
    assert settled(plain, court.catalogue) is plain


def test_what_is_let_through_is_said(court: Court) -> None:
    document = court.document(
        disaggregation={"mode": "vllm-nixl", "allow": ["pairing.tensor_parallel"]},
        roles={"prefill": {"accelerators": 2}},
    )
    (found,) = court.judge(document)
    assert found.verdict == "unverified"
    assert found.values["allowed"] is True
    assert found.remedy == "It is let through by disaggregation.allow."


def test_what_is_fine_is_listed_on_demand(court: Court) -> None:
    every = court.judge(court.document(), every=True)
    fine = {p.rule for p in every if p.verdict == "fine"}
    assert {"structure.roles", "pairing.dtype", "router.tunable"} <= fine
    assert not any(rule.startswith("host.") for rule in fine)
    plain = court.judge(court.document(None), {"hosts": {"h1": {}}}, every=True)
    rules = {p.rule for p in plain}
    assert "host.port_budget" in rules
    assert not any(r.startswith("pairing.") for r in rules)


def test_roles_without_a_mode_are_left_to_the_rules(court: Court) -> None:
    document = court.document(None, roles={"router": {"parameters": ["--policy", "cache_aware"]}})
    assert settled(document, court.catalogue) is document


SCALES = [
    ({"prefill": 2, "decode": 512}, None),
    ({"router": 2}, "structure.scale_role:router"),
    ({"replica": 2}, "structure.scale_role:unknown"),
    ({"prefill": 0}, "structure.scale_count:"),
    ({"decode": 513}, "structure.scale_count:"),
]


@pytest.mark.parametrize(("counts", "expected"), SCALES)
def test_scaling(court: Court, counts: dict[str, int], expected: str | None) -> None:
    document = court.document()
    group = Group(name="chat", version=1, document=document, revision="r")
    found = scale_refusal(group, counts)
    assert (found and f"{found.rule}:{found.case}") == expected
    if found is not None:
        (role, count) = next(iter(counts.items()))
        assert found.path == f"spec.roles.{role}.replicas"
        assert role in found.message
        assert found.values.get("known", ["prefill", "decode"]) == ["prefill", "decode"]
        assert found.values.get("count", count) == count


def test_ranks_are_told_by_their_sizes(court: Court) -> None:
    document = court.document(accelerators=4, parameters=["-tp", "2", "-pp", "3"])
    (found,) = court.judge(document)
    assert found.message.startswith("prefill runs 6 ranks (tensor 2 x pipeline 3)")
