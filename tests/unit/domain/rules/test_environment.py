"""The decision tables of the environment of `vllm-nixl`, row by row."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.domain.rules.conftest import Court, brief

LAYOUT, MLA = "VLLM_KV_CACHE_LAYOUT", "VLLM_MLA_DISABLE"
SSM = "VLLM_SSM_CONV_STATE_LAYOUT"
CHUNKED = "VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE"
PLAIN = {"num_attention_heads": 8, "num_key_value_heads": 8}
LATENT = {"kv_lora_rank": 512}
WINDOWED = {**PLAIN, "sliding_window": 4096}
LISTED = {**PLAIN, "layer_types": ["full_attention", "sliding_attention"]}
RECURRENT = {**PLAIN, "mamba_d_state": 128}
CHUNKS = {**PLAIN, "attention_chunk_size": 8192}
OFF, ON = "--disable-hybrid-kv-cache-manager", "--no-disable-hybrid-kv-cache-manager"
PERMUTE = {"decode": {"enable_permute_local_kv": True}}
OWN = '--kv-transfer-config={"kv_connector":"Mine","kv_connector_module_path":"m"}'


def env(name: str, *values: str | None) -> list[dict[str, Any]]:
    return [{"env": {} if v is None else {name: v}} for v in values]


def known(config: Any) -> dict[str, Any]:
    return {} if config is None else {"config": config}


LAYOUTS = [
    (None, None, None, {}, []),
    ("HND", "HND", None, {}, []),
    ("HND", "lbhnc", None, {}, []),
    ("NHD", "LBNHC", None, {}, []),
    ("NHD", None, PLAIN, {}, ["unverified env_one_side"]),
    ("NHD", "XYZ", PLAIN, {}, ["unverified env_one_side"]),
    ("HND", "NHD", None, {}, ["unverified env_model_unknown"]),
    ("NHD", "HND", PLAIN, {}, ["refused env_differ"]),
    ("BHLNC", "BLHNC", PLAIN, {}, ["refused env_differ"]),
    ("HND", "NHD", PLAIN, {}, ["refused env_not_permuted"]),
    ("HND", "NHD", PLAIN, {"decode": {"enable_permute_local_kv": False}},
     ["refused env_not_permuted"]),
    ("HND", "NHD", PLAIN, {"prefill": {"enable_permute_local_kv": True}},
     ["refused env_not_permuted"]),
    ("HND", "NHD", PLAIN, {"decode": {"enable_permute_local_kv": "yes"}},
     ["unverified env_permute_unknown"]),
    ("HND", "NHD", PLAIN, PERMUTE, []),
    ("NHD", "HND", PLAIN, PERMUTE, ["refused env_differ"]),
    ("HND", "NHD", RECURRENT, PERMUTE, ["refused env_recurrent"]),
    ("HND", "NHD", WINDOWED, PERMUTE, ["unverified env_windowed_unknown"]),
    ("HND", "NHD", LISTED, PERMUTE, ["unverified env_windowed_unknown"]),
    ("HND", "NHD", PLAIN, {"prefill": {"kv_buffer_device": "cpu"}}, ["unverified env_buffer"]),
    ("HND", "HND", PLAIN, {"decode": {"kv_buffer_device": "cpu"}}, ["unverified env_buffer"]),
]  # fmt: skip


@pytest.mark.parametrize(("p", "d", "config", "extra", "expected"), LAYOUTS)
def test_kv_cache_layout(
    court: Court, p: str | None, d: str | None, config: Any, extra: Any, expected: list[str]
) -> None:
    found = court.pair(
        *env(LAYOUT, p, d), about=known(config), disaggregation={"connector_extra": extra}
    )
    assert brief(found, "pairing.kv_cache_layout") == expected
    elsewhere = court.pair(*env(LAYOUT, p, d), mode="vllm-mooncake", about=known(config))
    assert brief(elsewhere, "pairing.kv_cache_layout") == []


@pytest.mark.parametrize(
    ("version", "flags", "expected"),
    [
        ("0.29.0", [], ["refused env_windowed"]),
        ("0.29.0", [OFF], []),
        ("0.26.0", [], []),
        ("0.26.0", [ON], ["refused env_windowed"]),
        (None, [], ["unverified env_windowed_unknown"]),
        (None, [OFF], []),
    ],
)
def test_permuting_a_windowed_model(
    court: Court, version: str | None, flags: list[str], expected: list[str]
) -> None:
    found = court.pair(
        *env(LAYOUT, "HND", "NHD"), about=known(WINDOWED), engine_version=version,
        parameters=flags, disaggregation={"connector_extra": PERMUTE},
    )  # fmt: skip
    assert brief(found, "pairing.kv_cache_layout") == expected


@pytest.mark.parametrize(
    ("p", "d", "expected"),
    [
        ("0", "0", []),
        ("0", "00", []),
        ("0", "1", ["refused env_differ"]),
        ("1", "1", ["refused env_differ"]),
        ("0", None, ["unverified env_latent_unknown"]),
        ("0", "no", ["unverified env_latent_unknown"]),
        (None, None, ["unverified env_latent_unknown"]),
    ],
)
def test_layouts_of_a_latent_model(
    court: Court, p: str | None, d: str | None, expected: list[str]
) -> None:
    roles = [
        {"env": {LAYOUT: layout} | ({} if mla is None else {MLA: mla})}
        for layout, mla in (("NHD", p), ("HND", d))
    ]
    found = court.pair(*roles, about=known(LATENT))
    assert brief(found, "pairing.kv_cache_layout") == expected


MLAS = [
    (None, None, LATENT, []),
    ("0", "0", None, []),
    ("1", "2", None, []),
    ("0", "1", None, ["unverified model_unknown"]),
    ("0", "1", PLAIN, []),
    ("0", "1", LATENT, ["refused differ"]),
    ("0", None, LATENT, ["unverified one_side"]),
    ("x", "x", LATENT, ["unverified one_side"]),
    ("0", None, None, ["unverified model_unknown"]),
]


@pytest.mark.parametrize(("p", "d", "config", "expected"), MLAS)
def test_mla(court: Court, p: str | None, d: str | None, config: Any, expected: list[str]) -> None:
    found = court.pair(*env(MLA, p, d), about=known(config))
    assert brief(found, "pairing.mla") == expected
    elsewhere = court.pair(*env(MLA, p, d), mode="vllm-mooncake", about=known(config))
    assert brief(elsewhere, "pairing.mla") == []


SSMS = [
    (None, None, None, "0.29.0", []),
    (None, None, PLAIN, "0.29.0", []),
    (None, None, RECURRENT, "0.29.0", ["warning unset"]),
    ("DS", "DS", None, None, []),
    ("DS", "SD", None, "0.29.0", ["unverified model_unknown"]),
    ("DS", "SD", PLAIN, "0.29.0", []),
    ("DS", "SD", RECURRENT, None, ["unverified version_unknown"]),
    ("DS", "SD", RECURRENT, "0.27.0", ["unverified version_unknown"]),
    ("DS", "SD", RECURRENT, "0.27.1", ["refused differ"]),
    ("SD", "SD", RECURRENT, "0.29.0", ["refused differ"]),
    ("DS", "ds", RECURRENT, "0.29.0", ["unverified one_side"]),
    ("DS", None, RECURRENT, "0.29.0", ["unverified one_side"]),
    ("SD", None, RECURRENT, "0.29.0", ["refused differ"]),
]


@pytest.mark.parametrize(("p", "d", "config", "version", "expected"), SSMS)
def test_ssm_conv_state_layout(
    court: Court, p: str | None, d: str | None, config: Any, version: Any, expected: list[str]
) -> None:
    found = court.pair(*env(SSM, p, d), about=known(config), engine_version=version)
    assert brief(found, "pairing.ssm_conv_state_layout") == expected


MANAGERS = [
    # flags of prefill and decode, variable of both, config, version
    ([], [], None, None, None, "0.29.0", []),
    ([OFF], [OFF], None, None, None, None, []),
    ([ON], [ON], None, None, None, None, []),
    ([OFF], [ON], None, None, None, None, ["refused differ"]),
    ([OFF, ON], [ON], None, None, None, None, []),
    ([ON, OFF], [ON], None, None, None, None, ["refused differ"]),
    ([OFF], [], None, None, None, "0.29.0", ["unverified model_unknown"]),
    ([OFF], [], None, None, PLAIN, None, ["unverified unknown"]),
    ([OFF], [], None, None, PLAIN, "0.29.0", ["refused resolved"]),
    ([ON], [], None, None, PLAIN, "0.29.0", []),
    ([ON], [], None, None, None, "0.26.0", ["refused resolved"]),
    ([OFF], [], None, None, None, "0.26.0", []),
    ([], [], "1", "0", PLAIN, "0.29.0", []),
    ([], [], "1", "0", None, "0.29.0", ["unverified model_unknown"]),
    ([], [], "1", "0", CHUNKS, "0.29.0", ["refused resolved"]),
    ([], [], "1", "3", CHUNKS, "0.29.0", []),
    ([], [], "0", "0", CHUNKS, "0.29.0", []),
    ([], [], "1", None, CHUNKS, "0.29.0", ["unverified unknown"]),
    ([], [], "1", "x", CHUNKS, "0.29.0", ["unverified unknown"]),
    ([], [], "1", "0", CHUNKS, None, ["unverified unknown"]),
    ([OFF], [OFF], "1", "0", CHUNKS, "0.29.0", []),
    ([OFF], [], "1", "0", CHUNKS, "0.29.0", []),
    ([ON], [ON], "0", "0", CHUNKS, "0.29.0", ["refused no_effect"]),
    ([ON], [ON], "1", "1", CHUNKS, "0.29.0", []),
    ([OFF], [ON], "1", "1", CHUNKS, "0.29.0", ["refused differ"]),
]


@pytest.mark.parametrize(("p", "d", "ep", "ed", "config", "version", "expected"), MANAGERS)
def test_hybrid_kv_cache_manager(
    court: Court, p: Any, d: Any, ep: Any, ed: Any, config: Any, version: Any, expected: list[str]
) -> None:
    first, second = env(CHUNKED, ep, ed)
    found = court.pair(
        {**first, "parameters": p}, {**second, "parameters": d}, about=known(config),
        engine_version=version,
    )  # fmt: skip
    assert brief(found, "pairing.hybrid_kv_cache_manager") == expected


@pytest.mark.parametrize(
    "more",
    [
        {"parameters": ["--speculative-config", '{"method":"ngram"}']},
        {"extended_kv_cache": {"kind": "in_process"}},
        {"image": "mine"},
    ],
)
def test_what_makes_the_manager_unknown(court: Court, more: dict[str, Any]) -> None:
    first, second = env(CHUNKED, "1", "0")
    found = court.pair(first, second, about=known(CHUNKS), engine_version="0.29.0", **more)
    assert brief(found, "pairing.hybrid_kv_cache_manager") == ["unverified unknown"]


@pytest.mark.parametrize(
    ("name", "p", "d", "config", "rule", "expected"),
    [
        (LAYOUT, "HND", "NHD", PLAIN, "pairing.kv_cache_layout", "unverified env_buffer"),
        (MLA, "0", "1", LATENT, "pairing.mla", "unverified model_unknown"),
        (SSM, "SD", "DS", RECURRENT, "pairing.ssm_conv_state_layout", "unverified model_unknown"),
        (CHUNKED, "0", "1", CHUNKS, "pairing.hybrid_kv_cache_manager", "unverified unknown"),
    ],
)
def test_with_a_connector_of_ones_own_nothing_is_proven(
    court: Court, name: str, p: str, d: str, config: Any, rule: str, expected: str
) -> None:
    first, second = env(name, p, d)
    second["parameters"] = [OWN]
    found = court.pair(first, second, about=known(config), engine_version="0.29.0")
    assert brief(found, rule) == [expected]


def test_null_inherits_and_empty_replaces(court: Court) -> None:
    shared = {"env": {LAYOUT: "HND"}}
    assert brief(court.pair({}, {}, **shared)) == []
    emptied = court.pair({}, {"env": {}}, **shared)
    assert brief(emptied, "pairing.kv_cache_layout") == ["unverified env_one_side"]
    assert emptied[0].path == "spec.roles.decode.env"
    both = court.pair({"env": {}}, {"env": {}}, **shared)
    assert brief(both) == []


def test_addresses_ports_devices_and_performance_are_never_compared(court: Court) -> None:
    one = {"VLLM_HOST_IP": "10.0.0.1", "UCX_TLS": "rc", "CUDA_VISIBLE_DEVICES": "0",
           "OMP_NUM_THREADS": "4", "NCCL_IB_HCA": "mlx5_0"}  # fmt: skip
    assert brief(court.pair({"env": one}, {"env": {}}, about=known(PLAIN))) == []


def test_a_switch_of_prefill_alone_is_named(court: Court) -> None:
    for switch in (OFF, ON):
        found = court.pair({"parameters": ["--dtype", "auto", switch]}, {"parameters": []})
        (one,) = [p for p in found if p.rule == "pairing.hybrid_kv_cache_manager"]
        assert one.path == "spec.roles.prefill.parameters[2]"
