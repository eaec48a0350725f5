"""Prefilled rows, what a save keeps of them, and what is really in effect."""

from __future__ import annotations

from typing import Any

import pytest

from backend.domain.rows import (
    effective_policies,
    prefilled_rows,
    strip_unmodified,
    switch_mode,
    tunable_problems,
)

SCOPE = {"host_ip": "10.0.0.1", "port": 40000, "ports.prometheus": 40001}


def rows(kit: Any, mode: str = "vllm-nixl", role: str = "router") -> Any:
    return prefilled_rows(kit.catalogue.mode(mode), role, connector_flag="--kv-transfer-config")


def test_router_rows_are_connection_then_tunables_and_never_peers(kit: Any) -> None:
    found = rows(kit)
    assert [r.text for r in found][:3] == [
        "--enable-igw", "--vllm-pd-disaggregation", "--kv-connector nixl",
    ]  # fmt: skip
    assert [r.text for r in found if r.kind == "tunable"] == [
        "--policy cache_aware", "--cb-failure-threshold 10", "--retry-max-retries 3",
    ]  # fmt: skip
    assert {r.name for r in found if r.locked} == {"--port", "--prometheus-port"}
    assert not {"--prefill", "--decode"} & {r.name for r in found}
    host = next(r for r in found if r.name == "--host")
    assert host.preview(SCOPE) == "--host 10.0.0.1"


def test_member_rows(kit: Any) -> None:
    found = rows(kit, role="prefill")
    assert found[0].kind == "connector"
    assert found[0].text.startswith('--kv-transfer-config {"kv_connector":"NixlConnector"')
    assert {r.name for r in found if r.kind == "env"} == {
        "VLLM_NIXL_SIDE_CHANNEL_HOST", "VLLM_NIXL_SIDE_CHANNEL_PORT", "UCX_NET_DEVICES",
    }  # fmt: skip
    sglang = rows(kit, "sglang-nixl", "prefill")
    assert "--disaggregation-bootstrap-port {{ports.bootstrap}}" in [r.text for r in sglang]
    assert rows(kit, "custom", "prefill") == ()


def test_an_untouched_form_stores_nothing(kit: Any) -> None:
    for mode in kit.catalogue.modes:
        for role in ("prefill", "decode", "router"):
            found = rows(kit, mode, role)
            params = [r.text for r in found if r.kind != "env"]
            env = {r.name: r.text for r in found if r.kind == "env"}
            assert strip_unmodified(found, params, env) == (
                None if params else [],
                None if env else {},
            )


@pytest.mark.parametrize(
    "written",
    [
        ["--policy cache_aware"], ["--policy=cache_aware"], ["--policy", "cache_aware"],
        ["--policy  cache_aware", "--enable_igw"], ["--host", "{{host_ip}}"],
    ],
)  # fmt: skip
def test_unmodified_in_any_spelling(kit: Any, written: list[str]) -> None:
    assert strip_unmodified(rows(kit), written, None) == (None, None)


def test_a_preview_that_comes_back_is_unmodified(kit: Any) -> None:
    assert strip_unmodified(rows(kit), ["--host 10.0.0.1"], None, SCOPE) == (None, None)
    assert strip_unmodified(rows(kit), ["--host 10.0.0.1"], None) == (["--host 10.0.0.1"], None)


@pytest.mark.parametrize(
    ("written", "left"),
    [
        (["--policy", "round_robin"], ["--policy", "round_robin"]),
        (["--enable-igw", "--policy=random", "--log-level debug"],
         ["--policy=random", "--log-level debug"]),
        (["--retry-max-retries", "3", "--queue-size", "3"], ["--queue-size", "3"]),
        ([], []),
    ],
)  # fmt: skip
def test_changed_rows_are_kept(kit: Any, written: list[str], left: list[str]) -> None:
    assert strip_unmodified(rows(kit), written, None)[0] == left


def test_a_changed_connector_is_kept_and_an_unchanged_one_is_not(kit: Any) -> None:
    found = rows(kit, role="decode")
    text = next(r.text for r in found if r.kind == "connector")
    flag, json_text = text.split(" ", 1)
    spaced = json_text.replace(":", ": ").replace(",", ", ")
    assert strip_unmodified(found, [flag, spaced], None) == (None, None)
    edited = [flag, json_text.replace("kv_consumer", "kv_both")]
    assert strip_unmodified(found, edited, None) == (edited, None)


def test_env_rows(kit: Any) -> None:
    found = rows(kit, role="decode")
    env = {"UCX_NET_DEVICES": "{{net_device}}", "VLLM_NIXL_SIDE_CHANNEL_HOST": "0.0.0.0", "A": ""}
    assert strip_unmodified(found, None, env)[1] == {
        "VLLM_NIXL_SIDE_CHANNEL_HOST": "0.0.0.0", "A": "",
    }  # fmt: skip
    assert strip_unmodified(found, None, {}) == (None, {})


def test_switching_mode_replaces_only_unmodified_rows(kit: Any) -> None:
    before, after = rows(kit), rows(kit, "sglang-nixl")
    listed = [r.text for r in before if r.kind != "env"]
    listed[listed.index("--retry-max-retries 3")] = "--retry-max-retries 7"
    found = switch_mode(before, after, [*listed, "--log-level debug"])
    assert found[-2:] == ["--retry-max-retries 7", "--log-level debug"]
    assert "--enable-igw" not in found
    assert "--pd-disaggregation" in found


@pytest.mark.parametrize(
    ("mode", "parameters", "line"),
    [
        ("vllm-nixl", [], "cache_aware on both sides; per-role policy flags have no effect"),
        ("vllm-nixl", ["--policy", "round_robin", "--decode-policy", "random"],
         "round_robin on both sides; per-role policy flags have no effect"),
        ("vllm-mooncake", [], "prefill cache_aware, decode round_robin"),
        ("vllm-mooncake", ["--decode-policy=random"], "prefill cache_aware, decode random"),
        ("sglang-nixl", [], "prefill cache_aware, decode round_robin"),
        ("vllm-ascend-mooncake", [],
         "cache_aware on both sides; per-role policy flags have no effect"),
        ("custom", [], "as your own router decides"),
        (None, [], ""),
    ],
)  # fmt: skip
def test_effective_policies(kit: Any, mode: str | None, parameters: list[str], line: str) -> None:
    more = {"roles": {"router": {"parameters": parameters}}} if mode else {}
    spec = kit.document(mode, **more).spec
    assert effective_policies(kit.catalogue.mode_of(spec), spec) == line


@pytest.mark.parametrize(
    ("mode", "parameters", "rule", "words"),
    [
        ("vllm-nixl", ["--retry-max-retries 0"], "router.tunable", "at least 1"),
        ("vllm-nixl", ["--retry-max-retries=many"], "router.tunable", "must be a number"),
        ("vllm-nixl", ["--cache-threshold 1.5"], "router.tunable", "at most 1"),
        ("vllm-nixl", ["--policy best"], "router.tunable", "must be one of"),
        ("vllm-mooncake", ["--decode-policy power_of_two"], "router.members",
         "at least 2 decode members, and there are 1"),
    ],
)  # fmt: skip
def test_rows_that_would_end_the_router(
    kit: Any, mode: str, parameters: list[str], rule: str, words: str
) -> None:
    document = kit.document(mode, roles={"router": {"parameters": parameters}})
    (problem,) = tunable_problems(kit.catalogue.mode(mode), document.spec)
    assert problem.rule == rule
    assert words in problem.message


def test_fine_rows(kit: Any) -> None:
    fine = ["--retry-max-retries 1", "--decode-policy power_of_two", "--log-level debug"]
    roles = {"decode": {"replicas": 2}, "router": {"parameters": fine}}
    document = kit.document("vllm-mooncake", roles=roles)
    assert tunable_problems(kit.catalogue.mode("vllm-mooncake"), document.spec) == ()
    for name in kit.catalogue.modes:
        assert tunable_problems(kit.catalogue.mode(name), kit.document(name).spec) == ()
