"""What a launch is made of besides the goldens: whose word wins, and what is refused."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.domain.bands import BandDemand, demand
from backend.domain.cache import CacheService
from backend.domain.errors import Refused
from backend.domain.instance import LaunchSpec
from backend.domain.ports import allocate
from backend.domain.render import Siblings
from backend.domain.shell import join

CONNECTOR = '{"kv_connector":"NixlConnector","kv_role":"kv_both"}'


def given_json(launch: LaunchSpec) -> dict[str, Any]:
    found = json.loads(launch.argv[launch.argv.index("--kv-transfer-config") + 1])
    assert isinstance(found, dict)
    return found


def test_the_users_own_arguments_come_after_ours_and_the_platforms_last(kit: Any) -> None:
    launch = kit.member(kit.document(parameters=["--port 1", "--max-model-len", "8K"]))
    argv = list(launch.argv)
    assert argv.index("--kv-transfer-config") < argv.index("--max-model-len")
    assert argv[-6:] == [
        "--host", "10.0.0.1", "--port", "40000", "--served-model-name", "qwen3-32b",
    ]  # fmt: skip


def test_parallelism_is_automatic_only_where_none_is_written(kit: Any) -> None:
    assert "--tensor-parallel-size" in kit.member(kit.document(accelerators=2)).argv
    assert "--tensor-parallel-size" not in kit.member(kit.document(accelerators=1)).argv
    written = kit.member(kit.document(accelerators=4, parameters=["-dp 4"]))
    assert "--tensor-parallel-size" not in written.argv


def test_env_of_the_role_is_over_the_modes_and_devices_are_the_platforms(kit: Any) -> None:
    env = {"UCX_NET_DEVICES": "mlx5_0:1", "CUDA_VISIBLE_DEVICES": "7", "X": "{{port}}"}
    launch = kit.member(kit.document(env=env))
    assert launch.env["UCX_NET_DEVICES"] == "mlx5_0:1"
    assert launch.env["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert launch.env["X"] == "40000"
    assert launch.env["VLLM_NIXL_SIDE_CHANNEL_HOST"] == "10.0.0.1"


def test_a_mig_slice_is_shown_by_its_uuid(kit: Any) -> None:
    launch = kit.member(kit.document(), accelerators=(0, 1), accelerator_uuids=("MIG-aa", "GPU-bb"))
    assert launch.env["CUDA_VISIBLE_DEVICES"] == "MIG-aa,1"


def test_a_container_is_given_its_devices_and_an_image(kit: Any) -> None:
    launch = kit.member(kit.document(engine_version="0.29.0"), runtime="docker")
    assert "CUDA_VISIBLE_DEVICES" not in launch.env
    assert launch.image == "vllm/vllm-openai:v0.29.0"
    assert kit.member(kit.document(image="own:1"), runtime="podman").image == "own:1"
    assert kit.member(kit.document(engine_version="0.29.0")).image is None
    shared = kit.router(kit.document(engine_version="0.29.0"), runtime="docker")
    assert shared.image == "vllm/vllm-openai:v0.29.0"


def test_no_interface_stops_the_launch_and_says_what_to_set(kit: Any) -> None:
    with pytest.raises(Refused) as caught:
        kit.member(kit.document(), net_device=None)
    problem = caught.value.problem
    assert problem.rule == "render.placeholder"
    assert problem.values["placeholder"] == "net_device"
    assert "UCX_NET_DEVICES" in problem.message
    assert "kv_transfer_ifname" in problem.remedy


def test_an_unknown_placeholder_in_a_users_row_is_named(kit: Any) -> None:
    with pytest.raises(Refused, match=r"\{\{ports\.other\}\}"):
        kit.member(kit.document(parameters=["--x", "{{ports.other}}"]))


@pytest.mark.parametrize(
    "parameters",
    [
        ["--kv-transfer-config", CONNECTOR],
        ["--kv-transfer-config=" + CONNECTOR],
        ["--kv_transfer_config " + CONNECTOR],
        ["--kv_transfer_config=" + CONNECTOR],
        ["--kv-transfer-config.kv_connector=NixlConnector --kv-transfer-config.kv_role kv_both"],
    ],
)
def test_the_users_own_connector_stands_in_for_ours(kit: Any, parameters: list[str]) -> None:
    alone = kit.member(kit.document(parameters=parameters))
    assert not any("kv_lease_duration" in token for token in alone.argv)
    cache = {"kind": "in_process"}
    folded = kit.member(kit.document(parameters=parameters, extended_kv_cache=cache))
    assert given_json(folded)["kv_connector_extra_config"] == {
        "connectors": [
            json.loads(CONNECTOR),
            {"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both"},
        ]
    }
    assert sum("kv-transfer-config" in t.replace("_", "-") for t in folded.argv) == 1


def test_a_shared_cache_stands_down_beside_the_users_own_connector(kit: Any) -> None:
    document = kit.document(
        parameters=["--kv-transfer-config", CONNECTOR],
        extended_kv_cache={"kind": "service", "service": "s"},
    )
    service = CacheService(name="s", provider="lmcache", host="h", port=1)
    launch = kit.member(document, service=service)
    assert given_json(launch) == json.loads(CONNECTOR)
    assert "PYTHONHASHSEED" not in launch.env
    assert "--shutdown-timeout" not in launch.argv


def test_a_cache_joins_a_users_own_several_connectors(kit: Any) -> None:
    own = {
        "kv_connector": "MultiConnector",
        "kv_role": "kv_producer",
        "kv_connector_extra_config": {"connectors": [json.loads(CONNECTOR)]},
    }
    document = kit.document(
        parameters=["--kv-transfer-config", json.dumps(own)],
        extended_kv_cache={"kind": "in_process"},
    )
    names = [
        c["kv_connector"]
        for c in given_json(kit.member(document))["kv_connector_extra_config"]["connectors"]
    ]
    assert names == ["NixlConnector", "LMCacheConnectorV1"]


def test_a_users_row_may_hold_the_modes_placeholders(kit: Any) -> None:
    own = '{"kv_connector":"NixlConnector","kv_port":"{{ports.kv_side_channel}}"}'
    launch = kit.member(kit.document(parameters=[f"--kv-transfer-config {own}"]))
    assert given_json(launch)["kv_port"] == 40001


def test_a_users_connector_that_is_no_json_cannot_be_joined(kit: Any) -> None:
    document = kit.document(
        parameters=["--kv-transfer-config", "broken"], extended_kv_cache={"kind": "in_process"}
    )
    with pytest.raises(Refused, match="no JSON object"):
        kit.member(document)


def test_connector_extra_is_merged_into_ours_only(kit: Any) -> None:
    extra = {"prefill": {"kv_buffer_device": "cpu"}, "decode": {"a": {"b": "{{port}}"}}}
    wanted = {"mode": "vllm-nixl", "connector_extra": extra}
    document = kit.document(disaggregation=wanted)
    prefill = given_json(kit.member(document))["kv_connector_extra_config"]
    assert prefill == {"kv_lease_duration": 60, "kv_buffer_device": "cpu"}
    decode = given_json(kit.member(document, "decode"))["kv_connector_extra_config"]
    assert decode == {"a": {"b": 40000}}


def test_the_failure_policy_is_rendered_and_lifted(kit: Any) -> None:
    wanted = {"mode": "vllm-nixl", "kv_load_failure_policy": "recompute"}
    document = kit.document(disaggregation=wanted, extended_kv_cache={"kind": "in_process"})
    found = given_json(kit.member(document, "decode"))
    assert found["kv_load_failure_policy"] == "recompute"
    first = found["kv_connector_extra_config"]["connectors"][0]
    assert first["kv_load_failure_policy"] == "recompute"


def test_ascend_tells_both_roles_both_sizes_and_one_connector(kit: Any) -> None:
    roles = {"prefill": {"accelerators": 8}, "decode": {"parameters": ["-tp 1", "-dp 2"]}}
    document = kit.document("vllm-ascend-mooncake", roles=roles)
    sizes = {"prefill": {"tp_size": 8, "dp_size": 1}, "decode": {"tp_size": 1, "dp_size": 2}}
    for role in ("prefill", "decode"):
        found = given_json(kit.member(document, role, siblings=Siblings(variant="standard")))
        assert found["kv_connector"] == "MooncakeConnectorV1"
        assert found["kv_connector_extra_config"] == sizes
    seen = Siblings(accelerators={"prefill": 4})
    found = given_json(kit.member(document, "decode", siblings=seen))
    assert found["kv_connector"] == "MooncakeHybridConnector"
    assert found["kv_connector_extra_config"]["prefill"]["tp_size"] == 4


def test_the_offload_cache_is_not_for_310p(kit: Any) -> None:
    document = kit.document("vllm-ascend-mooncake", extended_kv_cache={"kind": "in_process"})
    assert given_json(kit.member(document))["kv_connector"] == "MultiConnector"
    plain = given_json(kit.member(document, accelerator_type="Ascend 310P3"))
    assert plain["kv_connector"] == "MooncakeHybridConnector"


def test_a_cache_budget_from_the_ratio(kit: Any) -> None:
    document = kit.document(extended_kv_cache={"kind": "in_process", "ram_ratio": 1.5})
    known = kit.member(document, accelerator_memory_mib=81920)
    assert known.env["LMCACHE_MAX_LOCAL_CPU_SIZE"] == "240"
    assert "LMCACHE_MAX_LOCAL_CPU_SIZE" not in kit.member(document).env


def test_custom_runs_one_command_by_role(kit: Any) -> None:
    document = kit.document("custom", run_command=["/s", "{{role}}", "{{ports.http}}"])
    assert kit.member(document, "decode").argv == ("/s", "decode", "40000")
    assert kit.router(document).argv == ("/s", "router", "40000")
    assert kit.member(document).env["PDTUI_ROLE"] == "prefill"
    env = {"PDTUI_HEALTH_PATH": "/ready"}
    assert kit.member(kit.document("custom", run_command=["/s"], env=env)).health_path == "/ready"


def test_custom_without_a_command_is_refused_and_with_an_engine_is_launched(kit: Any) -> None:
    with pytest.raises(Refused) as caught:
        kit.member(kit.document("custom"))
    assert caught.value.problem.rule == "render.command"
    launch = kit.member(kit.document("custom", engine="vllm"))
    assert launch.argv[:3] == ("vllm", "serve", "/data/models/Qwen3-32B")
    assert "--kv-transfer-config" not in launch.argv


def test_a_plain_replica(kit: Any) -> None:
    launch = kit.member(kit.document(None, replicas=2), "replica")
    assert launch.argv[:3] == ("vllm", "serve", "/data/models/Qwen3-32B")
    assert launch.ports == (40000,)
    assert "VLLM_NIXL_SIDE_CHANNEL_HOST" not in launch.env


@pytest.mark.parametrize(
    ("mode", "spec", "role", "counts"),
    [
        ("vllm-nixl", {}, "prefill", [1, 1]),
        ("vllm-nixl", {"parameters": ["--data_parallel_size=4"]}, "decode", [1, 4]),
        ("vllm-mooncake", {}, "prefill", [1, 1]),
        ("vllm-mooncake", {}, "decode", [1]),
        ("sglang-mooncake", {}, "prefill", [1, 1]),
        ("sglang-nixl", {}, "decode", [1]),
        ("vllm-ascend-mooncake", {"accelerators": 8}, "prefill", [1, 8]),
        ("vllm-ascend-mooncake", {"accelerators": 16}, "decode", [1, 16]),
        ("vllm-nixl", {}, "router", [1, 1]),
        ("custom", {}, "prefill", [1]),
        ("custom", {}, "router", [1]),
        (None, {}, "replica", [1]),
    ],
)
def test_bands(kit: Any, mode: str | None, spec: Any, role: str, counts: list[int]) -> None:
    document = kit.document(mode, **spec)
    found = demand(kit.catalogue.mode_of(document.spec), kit.catalogue, document.spec, role)
    assert found[0] == BandDemand("http", 1)
    assert [b.count for b in found] == counts


def test_seven_ascend_members_fit_the_default_range_and_the_eighth_does_not(kit: Any) -> None:
    document = kit.document("vllm-ascend-mooncake", accelerators=8)
    mode = kit.catalogue.mode_of(document.spec)
    wanted = demand(mode, kit.catalogue, document.spec, "prefill")
    taken: set[int] = set()
    for _ in range(7):
        bands = allocate((40000, 40063), taken, wanted)
        assert bands is not None
        taken.update(p for b in bands for p in b.ports)
    assert len(taken) == 63
    assert allocate((40000, 40063), taken, wanted) is None


NASTY = st.text(alphabet=st.characters(exclude_characters="\0", codec="utf-8"), max_size=40)


@settings(max_examples=40, deadline=None)
@given(value=NASTY, env=NASTY, model=NASTY.filter(bool))
def test_no_value_changes_the_shape_of_the_command(
    kit: Any, value: str, env: str, model: str
) -> None:
    if any("{{" in text for text in (value, env, model)):
        return
    document = kit.document(
        model=model, parameters=["--chat-template", "x" + value], env={"A": env}
    )
    launch = kit.member(document)
    assert launch.env["A"] == env
    script = "for a in " + join(launch.argv) + "; do printf '%s\\0' \"$a\"; done"
    seen = subprocess.run(["/bin/sh", "-s"], input=script.encode(), capture_output=True, check=True)
    assert seen.stdout.split(b"\0")[:-1] == [a.encode() for a in launch.argv]
    assert launch.argv[2] == model
    assert launch.argv[launch.argv.index("--chat-template") + 1] == "x" + value


def test_a_huge_value_stays_one_argument(kit: Any) -> None:
    text = "$(id) `id` 'a' \"b\"\n" * 5000
    launch = kit.member(kit.document(parameters=["--chat-template", text]))
    assert launch.argv.count(text) == 1
