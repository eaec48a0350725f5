"""The decision tables of pairing, row by row."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.domain.rules.conftest import Court, brief

MODES = ("vllm-nixl", "vllm-mooncake", "sglang-mooncake", "sglang-nixl", "vllm-ascend-mooncake",
         "custom")  # fmt: skip
DENSE = {"num_attention_heads": 64, "num_key_value_heads": 8, "max_position_embeddings": 40960,
         "torch_dtype": "bfloat16"}  # fmt: skip


def role(*parameters: str, **more: Any) -> dict[str, Any]:
    return {"parameters": list(parameters), **more}


def flag(mode: str, vllm: str, sglang: str) -> str:
    return sglang if mode.startswith("sglang") else vllm


LENGTHS = [
    ("8192", "8192", None, []),
    ("8192", "4096", None, ["refused differ"]),
    ("8k", "8000", None, []),
    ("8K", "8192", None, []),
    ("8k", "8K", None, ["refused differ"]),
    ("25.6k", "25600", None, []),
    ("1m", "1M", None, ["refused differ"]),
    ("1g", "1000000000", None, []),
    (None, None, None, []),
    (None, None, DENSE, []),
    ("8192", None, None, ["unverified silent"]),
    (None, "8192", None, ["unverified silent"]),
    ("40960", None, DENSE, []),
    (None, "8192", DENSE, ["refused differ"]),
    ("auto", "auto", None, []),
    ("-1", "-1", None, []),
    ("auto", "8192", None, ["unverified auto"]),
    ("auto", None, DENSE, ["unverified auto"]),
    ("lots", "lots", None, []),
    ("lots", "8192", None, ["unverified unreadable"]),
    ("lots", "many", None, ["unverified unreadable"]),
    ("lots", "auto", None, ["unverified unreadable"]),
    ("0", "8192", None, ["unverified unreadable"]),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("p", "d", "config", "expected"), LENGTHS)
def test_context_length(
    court: Court, mode: str, p: str | None, d: str | None, config: Any, expected: list[str]
) -> None:
    name = flag(mode, "--max-model-len", "--context-length")
    found = court.pair(
        role(*([name, p] if p else [])), role(*([name, d] if d else [])), mode=mode,
        about={"config": config} if config else {},
    )  # fmt: skip
    assert brief(found, "pairing.max_model_len") == expected


def test_auto_on_unequal_sizes_is_what_fits_beside_other_weights(court: Court) -> None:
    both = {"parameters": ["--max-model-len", "auto"], "mode": "vllm-mooncake"}
    found = court.pair({"accelerators": 1}, {"accelerators": 2}, **both)
    assert brief(found, "pairing.max_model_len") == ["unverified auto"]
    assert brief(court.pair(accelerators=4, **both)) == []


def test_a_context_length_is_never_let_through(court: Court) -> None:
    document = court.document(
        disaggregation={"mode": "vllm-nixl", "allow": ["pairing.max_model_len", "pairing.nought"]},
        roles={"prefill": role("--max-model-len", "1"), "decode": role("--max-model-len", "2")},
    )
    assert brief(court.judge(document)) == [
        "refused structure.allow never",
        "refused structure.allow unknown",
        "refused pairing.max_model_len differ",
    ]


SCALED = [
    (None, 40960),
    ({"rope_type": "llama3", "factor": 8.0}, 40960),
    ({"type": "longrope", "factor": 2}, 40960),
    ({"rope_type": "default"}, 40960),
    ({"rope_type": "linear", "factor": 1.0}, 40960),
    ({"rope_type": "linear"}, 40960),
    ({"rope_type": "yarn", "factor": 4.0}, None),
    ({"type": "dynamic", "factor": 2.0}, None),
    ({"full_attention": {"rope_type": "default"}}, None),
    ("odd", None),
]


@pytest.mark.parametrize(("scaling", "length"), SCALED)
@pytest.mark.parametrize("field", ["rope_scaling", "rope_parameters"])
def test_the_length_a_model_is_made_for(
    court: Court, field: str, scaling: Any, length: int | None
) -> None:
    config = {**DENSE, field: scaling, "seq_length": 99999}
    found = court.pair(role("--max-model-len", "40960"), role(), about={"config": config})
    expected = [] if length else ["unverified silent"]
    assert brief(found, "pairing.max_model_len") == expected


@pytest.mark.parametrize("nested", ["text_config", "llm_config", "language_config"])
def test_a_language_model_inside_another(court: Court, nested: str) -> None:
    config = {"max_position_embeddings": 77, nested: DENSE}
    found = court.pair(role("--max-model-len", "40960"), role(), about={"config": config})
    assert found == ()


def test_overrides_count_as_the_configuration(court: Court) -> None:
    over = '--hf-overrides={"max_position_embeddings": 1000}'
    about = {"config": DENSE}
    short = court.pair(role("--max-model-len", "1000"), role(over), about=about)
    assert brief(short) == []
    long = court.pair(role("--max-model-len", "1001"), role(over), about=about)
    assert brief(long, "pairing.max_model_len") == ["refused differ"]
    broken = court.pair(role("--max-model-len", "1001"), role("--hf-overrides", "[]"), about=about)
    assert brief(broken, "pairing.max_model_len") == ["unverified silent"]
    one_side = court.pair(role(), role(over), about=about)
    assert brief(one_side, "pairing.max_model_len") == ["refused differ"]
    unknown = court.pair(role(), role(over))
    assert brief(unknown, "pairing.max_model_len") == ["unverified silent"]


def tensor(size: int | None) -> dict[str, Any]:
    return {"accelerators": size or 1}


DIRECTIONS = {
    "vllm-nixl": "decode_narrower",
    "vllm-mooncake": "decode_narrower",
    "sglang-mooncake": "decode_narrower",
    "sglang-nixl": "decode_narrower",
    "vllm-ascend-mooncake": "prefill_narrower",
}


@pytest.mark.parametrize(("p", "d"), [(1, 1), (2, 4), (4, 2), (8, 1), (1, 8)])
@pytest.mark.parametrize("mode", MODES)
def test_tensor_parallel_direction(court: Court, mode: str, p: int, d: int) -> None:
    expected = []
    if p > d and DIRECTIONS.get(mode) == "decode_narrower":
        expected = ["refused decode_narrower"]
    if p < d and DIRECTIONS.get(mode) == "prefill_narrower":
        expected = ["refused prefill_narrower"]
    found = court.pair({"accelerators": p}, {"accelerators": d}, mode=mode)
    assert brief(found, "pairing.tensor_parallel") == expected


@pytest.mark.parametrize(
    ("prefill", "decode", "expected"),
    [
        (["-tp", "4"], ["-tp", "2"], ["refused decode_narrower"]),
        (["-tp", "auto"], ["-tp", "2"], ["unverified unknown"]),
        (["-tp", "auto"], ["-tp", "auto"], []),
        (["-tp", "0"], ["-tp", "2"], ["unverified unknown"]),
        (["-dp", "4"], ["-dp", "4"], []),
        (["-tp", "2"], ["-dp", "4"], ["refused decode_narrower"]),
        (["-pp", "2"], ["-tp", "2", "-pp", "2"], []),
        ([], ["-tp", "4"], []),
        ([], ["-tp", "2"], ["refused decode_narrower"]),
    ],
)
def test_tensor_parallel_in_effect(
    court: Court, prefill: list[str], decode: list[str], expected: list[str]
) -> None:
    """Nothing written: all accelerators are one group; another degree written: the size is 1."""
    found = court.pair(role(*prefill), role(*decode), accelerators=4)
    assert brief(found, "pairing.tensor_parallel") == expected


def test_pins_widen_a_role(court: Court) -> None:
    pins = [{"host": "h1", "accelerators": [0, 1, 2, 3]}]
    found = court.pair({"placement": pins}, {"accelerators": 2})
    assert brief(found, "pairing.tensor_parallel") == ["refused decode_narrower"]


TYPES = [
    ("auto", None, None, []),
    (None, None, None, []),
    ("bfloat16", "BFloat16", None, []),
    ("half", "float16", None, []),
    ("float", "float32", None, []),
    ("bfloat16", "float16", None, ["refused differ"]),
    ("auto", "bfloat16", None, ["unverified auto"]),
    (None, "bfloat16", None, ["unverified auto"]),
    ("bfloat16", None, DENSE, []),
    ("float16", None, DENSE, ["refused differ"]),
    (None, "half", DENSE, ["refused differ"]),
    ("float16", None, {"dtype": "torch.float16"}, []),
    ("float16", None, {"torch_dtype": "float32"}, ["unverified auto"]),
    ("float16", None, {}, ["unverified auto"]),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("p", "d", "config", "expected"), TYPES)
def test_dtype(
    court: Court, mode: str, p: str | None, d: str | None, config: Any, expected: list[str]
) -> None:
    found = court.pair(
        role(*(["--dtype", p] if p else [])), role(*(["--dtype", d] if d else [])), mode=mode,
        about={} if config is None else {"config": config},
    )  # fmt: skip
    assert brief(found, "pairing.dtype") == expected


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("p", "d", "expected"),
    [
        (None, None, []),
        ("auto", None, []),
        ("fp8", "FP8 ", []),
        ("fp8", "fp8_e5m2", ["refused differ"]),
        ("fp8", None, ["unverified auto"]),
        ("auto", "bfloat16", ["unverified auto"]),
    ],
)
def test_kv_cache_dtype(
    court: Court, mode: str, p: str | None, d: str | None, expected: list[str]
) -> None:
    found = court.pair(
        role(*(["--kv-cache-dtype", p] if p else [])),
        role(*(["--kv-cache-dtype", d] if d else [])),
        mode=mode,
        about={"config": DENSE},
    )
    assert brief(found, "pairing.kv_cache_dtype") == expected


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("p", "d", "expected"),
    [
        (None, None, []),
        ("16", "16", []),
        ("16", "016", []),
        ("16", "32", ["refused differ"]),
        ("16", None, ["unverified one_side"]),
        (None, "16", ["unverified one_side"]),
    ],
)
def test_block_size(
    court: Court, mode: str, p: str | None, d: str | None, expected: list[str]
) -> None:
    name = flag(mode, "--block-size", "--page-size")
    found = court.pair(role(*([name, p] if p else [])), role(*([name, d] if d else [])), mode=mode)
    assert brief(found, "pairing.block_size") == expected


@pytest.mark.parametrize("mode", ["vllm-nixl", "vllm-mooncake", "vllm-ascend-mooncake", "custom"])
@pytest.mark.parametrize(
    ("p", "d", "expected"),
    [
        (None, None, []),
        ("HND", "hnd", []),
        ("HND", "NHD", ["refused differ"]),
        ("HND", None, ["unverified one_side"]),
    ],
)
def test_kv_cache_layout_flag(
    court: Court, mode: str, p: str | None, d: str | None, expected: list[str]
) -> None:
    name = "--kv-cache-layout"
    found = court.pair(role(*([name, p] if p else [])), role(*([name, d] if d else [])), mode=mode)
    assert brief(found, "pairing.kv_cache_layout") == expected


DIVISIBILITY = [
    ("vllm-nixl", 2, 4, 8, []),
    ("vllm-nixl", 2, 3, None, ["refused ranks"]),
    ("vllm-nixl", 8, 16, 8, ["warning few_kv_heads"]),
    ("vllm-nixl", 4, 8, 8, []),
    ("vllm-nixl", 8, 4, 2, ["refused replicated"]),
    ("vllm-nixl", 8, 4, 8, []),
    ("vllm-mooncake", 4, 6, None, ["refused ranks"]),
    ("vllm-ascend-mooncake", 3, 2, None, []),
    ("sglang-mooncake", 2, 3, None, []),
]


@pytest.mark.parametrize(("mode", "p", "d", "kv_heads", "expected"), DIVISIBILITY)
def test_ranks_divide_each_other(
    court: Court, mode: str, p: int, d: int, kv_heads: int | None, expected: list[str]
) -> None:
    about = {"config": {"num_key_value_heads": kv_heads}} if kv_heads else {}
    found = court.pair({"accelerators": p}, {"accelerators": d}, mode=mode, about=about)
    assert brief(found, "pairing.tp_divisibility") == expected


def test_latent_kv_has_no_heads_to_deal(court: Court) -> None:
    config = {"num_key_value_heads": 2, "kv_lora_rank": 512, "num_attention_heads": 128}
    found = court.pair({"accelerators": 8}, {"accelerators": 4}, about={"config": config})
    assert brief(found, "pairing.tp_divisibility") == []


@pytest.mark.parametrize("heads", ["num_attention_heads", "n_head"])
@pytest.mark.parametrize(("size", "expected"), [(2, []), (3, ["refused heads"]), (4, [])])
def test_heads_divide_by_ranks(court: Court, heads: str, size: int, expected: list[str]) -> None:
    about = {"config": {heads: 4}}
    found = court.pair(accelerators=size, about=about)
    assert brief(found, "pairing.tp_divisibility") == expected
    plain = court.judge(court.document(None, accelerators=size), about)
    assert brief(plain, "pairing.tp_divisibility") == []


@pytest.mark.parametrize(
    ("config", "expected"),
    [(None, []), (DENSE, ["warning per_head"]), ({"kv_lora_rank": 512}, [])],
)
def test_transfers_head_by_head(court: Court, config: Any, expected: list[str]) -> None:
    about = {} if config is None else {"config": config}
    found = court.pair({"accelerators": 1}, {"accelerators": 2}, mode="sglang-nixl", about=about)
    assert brief(found, "pairing.tensor_parallel") == expected
    equal = court.pair(mode="sglang-nixl", about=about)
    assert brief(equal, "pairing.tensor_parallel") == []


@pytest.mark.parametrize(
    ("size", "config", "expected"),
    [
        ("1", DENSE, []),
        ("2", DENSE, ["refused dense"]),
        ("2", None, ["unverified dense_unknown"]),
        ("2", {"num_experts": 8}, []),
        ("2", {"text_config": {"n_routed_experts": 256}}, []),
        ("2", {"num_experts": 0}, ["refused dense"]),
    ],
)
def test_data_parallel_of_a_dense_model(
    court: Court, size: str, config: Any, expected: list[str]
) -> None:
    about = {} if config is None else {"config": config}
    mode = "vllm-ascend-mooncake"
    found = court.pair({}, role("-dp", size), mode=mode, accelerators=2, about=about)
    assert brief(found, "pairing.data_parallel") == expected
    elsewhere = court.pair({}, role("-dp", size), mode="vllm-nixl", about=about)
    assert brief(elsewhere, "pairing.data_parallel") == []


def test_a_size_that_decode_alone_writes_is_named(court: Court) -> None:
    (found,) = court.pair({"accelerators": 4}, role("--dtype", "auto", "-tp", "2"), accelerators=2)
    assert (found.case, found.path) == ("decode_narrower", "spec.roles.decode.parameters[2]")


def test_a_side_whose_overrides_cannot_be_read_is_not_known(court: Court) -> None:
    found = court.pair(role(), role("--hf-overrides", "[]"), about={"config": DENSE})
    assert brief(found, "pairing.max_model_len") == ["unverified silent"]
