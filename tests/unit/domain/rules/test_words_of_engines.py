"""Every word of an engine that a rule knows is looked for, and so is the place of each finding."""

from __future__ import annotations

import json
from typing import Any

import pytest

from backend.domain.rules.routing import settled
from tests.unit.domain.rules.conftest import Court, brief
from tests.unit.domain.rules.test_handshake import DRAFT, spec
from tests.unit.domain.rules.test_tables import DENSE

BACKENDS = ["FLASH_ATTN", "FLASHINFER", "TRITON_ATTN", "FLEX_ATTENTION", "FLASH_ATTN_MLA",
            "FLASHINFER_MLA", "TRITON_MLA", "CUTLASS_MLA", "FLASHMLA"]  # fmt: skip
LENGTHS = ["max_position_embeddings", "n_positions", "max_seq_len", "seq_length",
           "max_sequence_length", "max_seq_length", "seq_len"]  # fmt: skip


def values(court: Court, rule: str, p: Any, d: Any, **more: Any) -> dict[str, Any]:
    (one,) = [f for f in court.pair(p, d, **more) if f.rule == f"pairing.{rule}"]
    return {**one.values, "path": one.path, "case": one.case}


def flags(*tokens: str) -> dict[str, Any]:
    return {"parameters": list(tokens)}


@pytest.mark.parametrize("name", BACKENDS)
def test_attention_backends(court: Court, name: str) -> None:
    other = "FLASHINFER" if name != "FLASHINFER" else "FLASH_ATTN"
    found = court.pair(flags("--attention-backend", name), flags("--attention-backend", other))
    assert brief(found, "pairing.attention_backend") == ["refused differ"]
    same = court.pair(
        flags("--attention-backend", f"{name} "), flags(f"--attention-backend={name}")
    )
    assert brief(same, "pairing.attention_backend") == []


@pytest.mark.parametrize("field", LENGTHS)
def test_fields_that_say_what_a_model_is_made_for(court: Court, field: str) -> None:
    about = {"config": {field: 4096}}
    alike = court.pair(flags("--max-model-len", "4096"), {}, about=about)
    assert brief(alike, "pairing.max_model_len") == []
    apart = court.pair(flags("--max-model-len", "4095"), {}, about=about)
    assert brief(apart, "pairing.max_model_len") == ["refused differ"]


@pytest.mark.parametrize("kind", ["default", "llama3", "longrope", "su", "mrope", None])
def test_scalings_that_leave_the_length_as_it_is(court: Court, kind: str | None) -> None:
    scaling = {"factor": 4.0} | ({"rope_type": kind} if kind else {})
    about = {"config": {**DENSE, "rope_scaling": scaling}}
    found = court.pair(flags("--max-model-len", "40960"), {}, about=about)
    assert brief(found, "pairing.max_model_len") == []


@pytest.mark.parametrize(
    ("one", "other"),
    [("bf16", "bfloat16"), ("fp16", "float16"), ("half", "float16"), ("float", "float32")],
)
def test_names_of_one_type(court: Court, one: str, other: str) -> None:
    assert brief(court.pair(flags("--dtype", one), flags("--dtype", other)), "pairing.dtype") == []
    apart = court.pair(flags("--dtype", one), flags("--dtype", "float64"))
    assert brief(apart, "pairing.dtype") == ["refused differ"]


@pytest.mark.parametrize(
    ("p", "d", "expected"),
    [
        (spec(model="[ngram]"), spec(method="ngram"), []),
        (spec(method="suffix"), {}, ["unverified model_free"]),
        (spec(**DRAFT), spec(**DRAFT, draft_kv_cache_dtype="fp8"), ["refused differ"]),
        (spec(**DRAFT), spec(**{**DRAFT, "method": "eagle"}), ["refused differ"]),
    ],
)
def test_what_is_hashed_of_a_draft(court: Court, p: Any, d: Any, expected: list[str]) -> None:
    assert brief(court.pair(p, d), "pairing.speculative") == expected


def test_a_draft_is_named_as_it_is_written(court: Court) -> None:
    found = values(court, "speculative", spec(**DRAFT), spec(method="ngram"))
    assert (found["prefill"], found["decode"]) == ("eagle3 /m/eagle", "ngram")
    unread = values(court, "speculative", flags("--speculative-config", "[1]"),
                    flags("--speculative-config=[2]"))  # fmt: skip
    assert (unread["prefill"], unread["decode"]) == ("[1]", "[2]")
    tokens = values(court, "speculative", flags("--speculative-config", "x"),
                    spec(num_speculative_tokens=3), mode="vllm-ascend-mooncake")  # fmt: skip
    assert (tokens["prefill"], tokens["decode"]) == (None, 3)


def test_switches_that_are_no_numbers_are_not_known(court: Court) -> None:
    roles = [{"env": {"VLLM_BATCH_INVARIANT": v}} for v in ("x", "1")]
    found = values(court, "attention_backend", *roles)
    assert (found["prefill"], found["decode"]) == (None, True)


def test_the_first_host_that_differs_is_named(court: Court) -> None:
    versions = {"h1": "0.29.0", "h2": "0.29.0", "h3": "0.30.0", "h4": "0.31.0"}
    about = {"hosts": {h: {} for h in versions}, "versions": versions}
    found = values(court, "engine_version", {}, {}, about=about)
    assert (found["host"], found["other_host"]) == ("h1", "h3")


@pytest.mark.parametrize(
    ("mode", "spelling"),
    [("vllm-nixl", "--model"), ("sglang-nixl", "--model-path"), ("sglang-nixl", "--model")],
)
@pytest.mark.parametrize("role", ["prefill", "decode"])
def test_where_a_model_is_named(court: Court, mode: str, spelling: str, role: str) -> None:
    roles = {"prefill": {}, "decode": {}, role: flags("--dtype", "auto", spelling, "/other")}
    found = values(court, "model_path", roles["prefill"], roles["decode"], mode=mode)
    assert found["path"] == f"spec.roles.{role}.parameters[2]"
    assert found[role] == "/other"


@pytest.mark.parametrize("role", ["prefill", "decode"])
def test_where_a_revision_is_named(court: Court, role: str) -> None:
    roles = {"prefill": {}, "decode": {}, role: flags("--dtype=auto", "--revision", "main")}
    found = values(court, "model_path", roles["prefill"], roles["decode"])
    assert found["path"] == f"spec.roles.{role}.parameters[1]"
    assert {found["prefill"], found["decode"]} == {"main", None}


def test_where_tensor_parallel_sizes_are_mended(court: Court) -> None:
    wide = flags("--dtype=auto", "-tp", "4")
    found = values(court, "tensor_parallel", wide, {"accelerators": 2})
    assert found["path"] == "spec.roles.prefill.parameters[1]"
    found = values(court, "tensor_parallel", {"accelerators": 4}, {"accelerators": 2})
    assert found["path"] == "spec.roles.decode.accelerators"
    found = values(court, "tensor_parallel", wide, flags("-tp", "2"))
    assert found["path"] == "spec.roles.decode.parameters[0]"
    found = values(court, "tensor_parallel", {"accelerators": 4}, flags("--dtype=auto", "-tp=2"))
    assert found["path"] == "spec.roles.decode.parameters[1]"


def test_where_ranks_that_do_not_divide_are_written(court: Court) -> None:
    about = {"config": {"num_attention_heads": 6}}
    found = court.pair(flags("--dtype=auto", "-tp", "4"), {}, about=about, accelerators=4)
    (p, d) = [f for f in found if f.case == "heads"]
    assert (p.path, d.path) == ("spec.roles.prefill.parameters[1]", "spec.accelerators")


@pytest.mark.parametrize(
    ("mode", "flag"),
    [("vllm-nixl", "--max-model-len"), ("sglang-nixl", "--context-length"),
     ("custom", "--max-model-len")],
)  # fmt: skip
def test_a_length_is_told_by_the_flag_it_is_written_with(
    court: Court, mode: str, flag: str
) -> None:
    spelled = "--context-length" if "sglang" in mode else "--max-model-len"
    found = values(court, "max_model_len", flags(spelled, "1K"), flags(spelled, "2k"), mode=mode)
    assert (found["flag"], found["prefill"], found["decode"]) == (flag, "1K (1024)", "2k (2000)")
    assert found["shorter"] == 1024


@pytest.mark.parametrize(("p", "d", "silent"), [([], ["1k"], "prefill"), (["1k"], [], "decode")])
def test_the_silent_side_is_named(court: Court, p: list[str], d: list[str], silent: str) -> None:
    roles = [flags(*(["--max-model-len", *v] if v else [])) for v in (p, d)]
    assert values(court, "max_model_len", *roles)["silent"] == silent


def test_one_side_alone_is_told_as_it_is(court: Court) -> None:
    found = values(court, "block_size", {}, flags("--block-size", "016 "))
    assert (found["prefill"], found["decode"]) == (None, "16")
    alike = court.pair(flags("--block-size", "16"), flags("--block-size", "16 "))
    assert brief(alike, "pairing.block_size") == []


def test_an_unreadable_connector_says_why(court: Court) -> None:
    body = json.dumps({"kv_connector": "MultiConnector"})
    found = values(court, "connector", flags("--kv-transfer-config", body), {})
    assert (found["role"], found["reason"]) == ("prefill", "MultiConnector has no children")


def test_a_length_that_cannot_be_read_is_compared_as_it_is(court: Court) -> None:
    same = court.pair(flags("--max-model-len", "lots "), flags("--max-model-len", "lots"))
    assert brief(same, "pairing.max_model_len") == []


def test_numbers_of_a_configuration_are_whole_and_positive(court: Court) -> None:
    for heads, expected in ((1, ["refused heads", "refused heads"]), (True, []), (0, []), (-1, [])):
        about = {"config": {"num_attention_heads": heads}}
        found = court.pair(accelerators=2, mode="vllm-mooncake", about=about)
        assert brief(found, "pairing.tp_divisibility")[:2] == expected[:1], heads


def test_a_connector_told_another_size_of_one(court: Court) -> None:
    extra = {"prefill": {"tp_size": 1}}
    body = {"kv_connector": "MooncakeConnectorV1", "kv_role": "kv_producer",
            "kv_connector_extra_config": extra}  # fmt: skip
    own = flags(f"--kv-transfer-config={json.dumps(body)}")
    found = court.pair({**own, "accelerators": 4}, {"accelerators": 1}, mode="vllm-ascend-mooncake")
    assert "refused sizes" in brief(found, "pairing.connector")


@pytest.mark.parametrize("name", ["Mine", "OtherConnector"])
def test_a_connector_that_is_not_known_leaves_versions_and_paths_proven(
    court: Court, name: str
) -> None:
    """What it compares by itself is not known, so nothing says that it does not."""
    body = {"kv_connector": name} | ({"kv_connector_module_path": "m"} if name == "Mine" else {})
    own = flags(f"--kv-transfer-config={json.dumps(body)}")
    found = court.pair({**own, "engine_version": "0.29.0"}, {"engine_version": "0.30.0"})
    assert brief(found, "pairing.engine_version") == ["refused differ"]


def test_peers_among_other_owned_flags_are_told_first(court: Court) -> None:
    rows = ["--port", "1", "--prefill", "http://x"]
    found = court.judge(court.document(roles={"router": {"parameters": rows}}))
    assert brief(found, "router.owned_flag") == ["refused peers"]


def test_a_routers_own_variables_are_saved(court: Court) -> None:
    router = {"parameters": ["--policy cache_aware"], "env": {"A": "1"}}
    kept = settled(court.document(roles={"router": router}), court.catalogue)
    assert kept.spec.roles is not None
    assert kept.spec.roles.router.parameters is None
    assert kept.spec.roles.router.env == {"A": "1"}
