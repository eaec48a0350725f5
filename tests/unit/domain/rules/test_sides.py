"""One role as the rules read it: its spellings, its model, its version; and its connector."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from packaging.version import Version

from backend.domain.rules.sides import Side, overlaid, same_json
from backend.domain.rules.subject import Subject
from backend.domain.rules.transfer import Transfer, transfer_of
from tests.unit.domain.rules.conftest import Court, brief, known_of


def subject(
    court: Court,
    mode: str | None = "vllm-nixl",
    about: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Subject:
    document = court.document(mode, **spec)
    return Subject(document, known_of(court.catalogue, about or {}, document.spec.model))


def decode(court: Court, mode: str = "vllm-nixl", about: Any = None, **role: Any) -> Side:
    return subject(court, mode, about, roles={"decode": role}).decode


def flags(*tokens: str) -> dict[str, Any]:
    return {"parameters": list(tokens)}


def test_an_engine_has_its_own_spellings(court: Court) -> None:
    one = flags("--context-length", "1k")
    assert brief(court.pair(one), "pairing.max_model_len") == []
    assert brief(court.pair(one, mode="sglang-nixl"), "pairing.max_model_len") == [
        "unverified silent"
    ]
    assert decode(court, **flags("--context-length", "1k")).written("max_model_len") is None
    assert decode(court).flags is court.catalogue.engines["vllm"].flags


def test_a_flag_is_told_as_it_is_written_last(court: Court) -> None:
    side = decode(court, **flags("-tp", "2", "--enable-lora --tensor-parallel-size=4"))
    found = side.written("tensor_parallel")
    assert found is not None
    assert (found.value, found.path) == ("4", "spec.roles.decode.parameters[2]")
    assert found.key == "tensor-parallel-size"
    last = side.any("-tp", "--tensor-parallel-size")
    assert last is not None
    assert (last.value, last.key) == ("4", "tensor-parallel-size")
    assert side.any("--nothing") is None
    assert side.switched("nothing") is None
    assert side.json("nothing") is None
    assert side.written("nothing") is None


def test_a_command_is_read_token_by_token(court: Court) -> None:
    side = decode(court, "custom", run_command=["serve", "--note -tp 8", "-tp", "2"])
    assert side.args == ("serve", "--note -tp 8", "-tp", "2")
    assert side.degree("tensor") == 2


def test_what_a_cache_adds_counts_as_written(court: Court) -> None:
    kept = {"kind": "in_process", "chunk_size": 32, "ram_size_gib": 8}
    side = decode(court, "sglang-nixl", extended_kv_cache=kept)
    assert side.args == ("--enable-hierarchical-cache", "--page-size", "32", "--hicache-size", "8")
    found = side.written("block_size")
    assert found is not None
    assert found.path == "spec.roles.decode.extended_kv_cache"
    assert decode(court, "vllm-nixl", extended_kv_cache=kept).args == ()
    own = {"kind": "in_process"}
    assert decode(court, "sglang-nixl", extended_kv_cache=own).args == (
        "--enable-hierarchical-cache",
    )


@pytest.mark.parametrize("name", ["data", "pipeline", "context"])
def test_another_degree_leaves_tensor_parallel_at_one(court: Court, name: str) -> None:
    spelling = court.catalogue.engines["vllm"].flags[f"{name}_parallel"][0]
    assert decode(court, accelerators=4, **flags(spelling, "2")).degree("tensor") == 1
    assert decode(court, accelerators=4, **flags(spelling, "many")).degree("tensor") == 4
    assert decode(court, accelerators=4, **flags(f"{spelling}=")).degree("tensor") == 4
    assert decode(court, accelerators=4).degree("tensor") == 4
    assert decode(court, accelerators=4).degree(name) == 1


def test_degrees_of_a_command_of_ones_own_are_not_known(court: Court) -> None:
    own = {"accelerators": 4, "run_command": ["mine"]}
    assert decode(court, "custom", **own).degree("tensor") is None
    assert decode(court, "custom", **own, **flags("-tp", "2")).degree("tensor") == 2
    assert decode(court, "custom", accelerators=4).degree("tensor") == 4
    custom = {**own, "engine": "custom"}
    assert decode(court, "custom", **custom).own_command
    assert not decode(court, "vllm-nixl", **own).own_command
    assert not decode(court, "custom").own_command
    assert decode(court, accelerators=4, **flags("-tp=0")).degree("tensor") is None
    assert decode(court, accelerators=4, **flags("-tp=x")).degree("tensor") is None


def test_a_version_is_known_where_every_host_has_it(court: Court) -> None:
    hosts: dict[str, Any] = {"h1": {}, "h2": {}}
    for versions, expected in (
        ({"h1": "0.29.0", "h2": "0.29.0"}, Version("0.29.0")),
        ({"h1": "0.29.0"}, None),
        ({"h2": "0.29.0"}, None),
        ({"h1": "0.29.0", "h2": "0.30.0"}, None),
        ({"h1": "", "h2": ""}, None),
        ({}, None),
    ):
        about = {"hosts": hosts, "versions": versions}
        assert decode(court, about=about).version == expected
    all_known = {"hosts": hosts, "versions": {"h1": "0.29.0", "h2": "0.29.0"}}
    assert decode(court, about=all_known, engine_version="0.30.0").version == Version("0.30.0")
    assert decode(court, about=all_known, image="mine").version is None
    assert decode(court, engine_version="edge").version is None
    assert decode(court, "sglang-nixl", all_known).version is None, "another program"
    assert decode(court, "vllm-ascend-mooncake", all_known).version == Version("0.29.0")
    assert decode(court, "vllm-ascend-mooncake").program == "vllm"


def test_overrides_are_merged_object_by_object(court: Court) -> None:
    base = {"a": 1, "inner": {"x": 1, "y": {"z": 1}}, "list": [1]}
    over = {"inner": {"x": 2, "y": {"w": 3}}, "list": [2], "new": {"n": 1}, "a": {"b": 1}}
    assert overlaid(base, over) == {
        "a": {"b": 1}, "inner": {"x": 2, "y": {"z": 1, "w": 3}}, "list": [2], "new": {"n": 1},
    }  # fmt: skip
    assert overlaid({"a": {"b": 1}}, {"a": 2}) == {"a": 2}
    assert base["inner"] == {"x": 1, "y": {"z": 1}}
    body = json.dumps({"text_config": {"max_position_embeddings": 512}})
    config = {"text_config": {"max_position_embeddings": 1024, "kv_lora_rank": 512}}
    side = decode(court, about={"config": config}, **flags("--hf-overrides", body))
    assert side.number("max_position_embeddings") == 512
    assert side.is_mla


def test_an_object_is_read_among_other_flags(court: Court) -> None:
    body = json.dumps({"a": 1})
    side = decode(court, **flags("-tp", "2", "--hf-overrides", body, "--note", "[1]"))
    assert side.json("hf_overrides") == {"a": 1}
    assert side.overrides == {"a": 1}


def test_json_is_compared_as_json() -> None:
    assert same_json({"a": 1, "b": [2]}, {"b": [2], "a": 1})
    assert same_json({"b": 1, "a": 2}, {"a": 2, "b": 1})
    assert not same_json(1, True)
    assert not same_json(1, 1.0)


def kv(**body: Any) -> dict[str, Any]:
    return flags("--dtype=auto", f"--kv-transfer-config={json.dumps(body)}")


def test_the_connector_of_a_role(court: Court) -> None:
    assert Transfer("none") == Transfer("none", False, "", None, {}, "")
    rendered = transfer_of(decode(court))
    assert (rendered.state, rendered.own, rendered.name) == ("known", False, "NixlConnector")
    assert rendered.enforced
    own = transfer_of(decode(court, **kv(kv_connector="NixlPullConnector", kv_role="kv_both")))
    assert own == Transfer("known", True, "NixlConnector", "kv_both", {})
    mine = transfer_of(
        decode(court, **kv(kv_connector="Mine", kv_connector_module_path="m", kv_role="kv_both"))
    )
    assert mine == Transfer("unknown", True, "Mine", "kv_both", {})
    assert not mine.enforced
    nameless = transfer_of(decode(court, **kv(kv_role=3)))
    assert nameless == Transfer("unknown", True, "", None, {})
    odd = transfer_of(decode(court, **kv(kv_connector="A", kv_connector_extra_config=[])))
    assert odd == Transfer("known", True, "A", None, {})
    broken = transfer_of(decode(court, **flags("--kv-transfer-config", "[1]")))
    assert broken == Transfer("unreadable", True, reason="'[1]' is no JSON object")
    assert transfer_of(decode(court, "sglang-nixl")) == Transfer("none")
    assert transfer_of(decode(court, "custom")) == Transfer("none")
    dotted = transfer_of(decode(court, **flags("--kv_transfer_config.kv_connector=Other")))
    assert (dotted.state, dotted.own, dotted.name) == ("known", True, "Other")
    children = {"connectors": ["odd", {"kv_connector": "B"}, {"kv_connector": "C"}]}
    folded = kv(kv_connector="MultiConnector", kv_role="kv_both",
                kv_connector_extra_config=children)  # fmt: skip
    assert transfer_of(decode(court, **folded)) == Transfer("known", True, "B", "kv_both", {})
    lax = transfer_of(
        decode(court, **kv(kv_connector="A", kv_connector_extra_config={
            "enforce_handshake_compat": False}))
    )  # fmt: skip
    assert not lax.enforced


def test_a_command_of_ones_own_takes_any_engines_connector(court: Court) -> None:
    body = json.dumps({"kv_connector": "A"})
    own = {"engine": "custom", "run_command": ["serve", "--kv-transfer-config", body]}
    assert transfer_of(decode(court, "custom", **own)).name == "A"
    on_sglang = decode(court, "sglang-nixl", **flags("--kv-transfer-config", body))
    assert transfer_of(on_sglang) == Transfer("none")


def test_where_a_connector_is_mended(court: Court) -> None:
    other = kv(kv_connector="MooncakeConnector", kv_role="kv_both")
    for role in ("prefill", "decode"):
        roles = {"prefill": {}, "decode": {}, role: other}
        (one,) = [f for f in court.pair(roles["prefill"], roles["decode"]) if f.case == "kinds"]
        assert one.path == f"spec.roles.{role}.parameters[1]"
    crossed = {"disaggregation": {"connector_extra": {
        "prefill": {"enable_cross_layers_blocks": True}}}}  # fmt: skip
    (extra,) = court.pair(**crossed)
    assert extra.path == "spec.disaggregation.connector_extra.prefill"
    assert (extra.values["prefill"], extra.values["decode"]) == (True, False)


def test_a_rule_points_at_what_a_role_set_for_itself(court: Court) -> None:
    shared = subject(court, parameters=["--dtype=auto", "--block-size", "16"])
    assert shared.path("block_size") == "spec.parameters[1]"
    assert shared.path("kv_cache_layout") == "spec.parameters"
    assert shared.path() == "spec.parameters"
    assert shared.path(field="image") == "spec.image"
    own = subject(court, roles={"prefill": flags("--block-size=16"), "decode": {"image": "a"}})
    assert own.path("block_size") == "spec.roles.prefill.parameters[0]"
    assert own.path("dtype") == "spec.roles.prefill.parameters"
    assert own.path(field="image") == "spec.roles.decode.image"


def test_plain_replicas_know_their_hosts(court: Court) -> None:
    (side,) = subject(court, None, {"hosts": {"h1": {}}}).sides
    assert (side.name, side.mode) == ("replica", None)
    assert side.known.eligible(side.role) == ("h1",)
    assert side.path("parameters") == "spec.parameters"
