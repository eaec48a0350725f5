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
from backend.domain.render import Siblings, program_of, render_member, render_router
from backend.domain.shell import join

CONNECTOR = '{"kv_connector":"NixlConnector","kv_role":"kv_both"}'


def member(kit: Any, document: Any, role: str = "prefill", **more: Any) -> LaunchSpec:
    kw = {k: more.pop(k) for k in ("siblings", "service") if k in more}
    return render_member(
        kit.catalogue.mode_of(document.spec), kit.catalogue, document, role,
        kit.place(document, role, **more), kw.get("siblings"), service=kw.get("service"),
    )  # fmt: skip


def router(kit: Any, document: Any, peers: Any = None, **more: Any) -> LaunchSpec:
    return render_router(
        kit.catalogue.mode_of(document.spec), kit.catalogue, document,
        kit.place(document, "router", **more), kit.peers if peers is None else peers,
    )  # fmt: skip


def given_json(launch: LaunchSpec) -> dict[str, Any]:
    found = json.loads(launch.argv[launch.argv.index("--kv-transfer-config") + 1])
    assert isinstance(found, dict)
    return found


def test_the_users_own_arguments_come_after_ours_and_the_platforms_last(kit: Any) -> None:
    launch = member(kit, kit.document(parameters=["--port 1", "--max-model-len", "8K"]))
    argv = list(launch.argv)
    assert argv.index("--kv-transfer-config") < argv.index("--max-model-len")
    assert argv[-6:] == [
        "--host", "10.0.0.1", "--port", "40000", "--served-model-name", "qwen3-32b",
    ]  # fmt: skip


def test_parallelism_is_automatic_only_where_none_is_written(kit: Any) -> None:
    assert "--tensor-parallel-size" in member(kit, kit.document(accelerators=2)).argv
    assert "--tensor-parallel-size" not in member(kit, kit.document(accelerators=1)).argv
    written = member(kit, kit.document(accelerators=4, parameters=["-dp 4"]))
    assert "--tensor-parallel-size" not in written.argv


def test_env_of_the_role_is_over_the_modes_and_devices_are_the_platforms(kit: Any) -> None:
    env = {"UCX_NET_DEVICES": "mlx5_0:1", "CUDA_VISIBLE_DEVICES": "7", "X": "{{port}}"}
    launch = member(kit, kit.document(env=env))
    assert launch.env["UCX_NET_DEVICES"] == "mlx5_0:1"
    assert launch.env["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert launch.env["X"] == "40000"
    assert launch.env["VLLM_NIXL_SIDE_CHANNEL_HOST"] == "10.0.0.1"


def test_a_mig_slice_is_shown_by_its_uuid(kit: Any) -> None:
    launch = member(
        kit, kit.document(), accelerators=(0, 1), accelerator_uuids=("MIG-aa", "GPU-bb")
    )
    assert launch.env["CUDA_VISIBLE_DEVICES"] == "MIG-aa,1"


def test_a_container_is_given_its_devices_and_an_image(kit: Any) -> None:
    launch = member(kit, kit.document(engine_version="0.29.0"), runtime="docker")
    assert "CUDA_VISIBLE_DEVICES" not in launch.env
    assert launch.image == "vllm/vllm-openai:v0.29.0"
    assert member(kit, kit.document(image="own:1"), runtime="podman").image == "own:1"
    assert member(kit, kit.document(engine_version="0.29.0")).image is None
    shared = router(kit, kit.document(engine_version="0.29.0"), runtime="docker")
    assert shared.image == "vllm/vllm-openai:v0.29.0"


def test_no_interface_stops_the_launch_and_says_what_to_set(kit: Any) -> None:
    with pytest.raises(Refused) as caught:
        member(kit, kit.document(), net_device=None)
    problem = caught.value.problem
    assert problem.rule == "render.placeholder"
    assert problem.values["placeholder"] == "net_device"
    assert "UCX_NET_DEVICES" in problem.message
    assert "kv_transfer_ifname" in problem.remedy


def test_an_unknown_placeholder_in_a_users_row_is_named(kit: Any) -> None:
    with pytest.raises(Refused, match=r"\{\{ports\.other\}\}"):
        member(kit, kit.document(parameters=["--x", "{{ports.other}}"]))


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
    alone = member(kit, kit.document(parameters=parameters))
    assert not any("kv_lease_duration" in token for token in alone.argv)
    cache = {"kind": "in_process"}
    folded = member(kit, kit.document(parameters=parameters, extended_kv_cache=cache))
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
    launch = member(kit, document, service=service)
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
        for c in given_json(member(kit, document))["kv_connector_extra_config"]["connectors"]
    ]
    assert names == ["NixlConnector", "LMCacheConnectorV1"]


def test_a_users_row_may_hold_the_modes_placeholders(kit: Any) -> None:
    own = '{"kv_connector":"NixlConnector","kv_port":"{{ports.kv_side_channel}}"}'
    launch = member(kit, kit.document(parameters=[f"--kv-transfer-config {own}"]))
    assert given_json(launch)["kv_port"] == 40001


def test_a_users_connector_that_is_no_json_cannot_be_joined(kit: Any) -> None:
    document = kit.document(
        parameters=["--kv-transfer-config", "broken"], extended_kv_cache={"kind": "in_process"}
    )
    with pytest.raises(Refused, match="no JSON object"):
        member(kit, document)


def test_connector_extra_is_merged_into_ours_only(kit: Any) -> None:
    extra = {"prefill": {"kv_buffer_device": "cpu"}, "decode": {"a": {"b": "{{port}}"}}}
    wanted = {"mode": "vllm-nixl", "connector_extra": extra}
    document = kit.document(disaggregation=wanted)
    prefill = given_json(member(kit, document))["kv_connector_extra_config"]
    assert prefill == {"kv_lease_duration": 60, "kv_buffer_device": "cpu"}
    decode = given_json(member(kit, document, "decode"))["kv_connector_extra_config"]
    assert decode == {"a": {"b": 40000}}


def test_the_failure_policy_is_rendered_and_lifted(kit: Any) -> None:
    wanted = {"mode": "vllm-nixl", "kv_load_failure_policy": "recompute"}
    document = kit.document(disaggregation=wanted, extended_kv_cache={"kind": "in_process"})
    found = given_json(member(kit, document, "decode"))
    assert found["kv_load_failure_policy"] == "recompute"
    first = found["kv_connector_extra_config"]["connectors"][0]
    assert first["kv_load_failure_policy"] == "recompute"


def test_ascend_tells_both_roles_both_sizes_and_one_connector(kit: Any) -> None:
    roles = {"prefill": {"accelerators": 8}, "decode": {"parameters": ["-tp 1", "-dp 2"]}}
    document = kit.document("vllm-ascend-mooncake", roles=roles)
    sizes = {"prefill": {"tp_size": 8, "dp_size": 1}, "decode": {"tp_size": 1, "dp_size": 2}}
    for role in ("prefill", "decode"):
        found = given_json(member(kit, document, role, siblings=Siblings(variant="standard")))
        assert found["kv_connector"] == "MooncakeConnectorV1"
        assert found["kv_connector_extra_config"] == sizes
    seen = Siblings(accelerators={"prefill": 4})
    found = given_json(member(kit, document, "decode", siblings=seen))
    assert found["kv_connector"] == "MooncakeHybridConnector"
    assert found["kv_connector_extra_config"]["prefill"]["tp_size"] == 4


def test_the_offload_cache_is_not_for_310p(kit: Any) -> None:
    document = kit.document("vllm-ascend-mooncake", extended_kv_cache={"kind": "in_process"})
    assert given_json(member(kit, document))["kv_connector"] == "MultiConnector"
    plain = given_json(member(kit, document, accelerator_type="Ascend 310P3"))
    assert plain["kv_connector"] == "MooncakeHybridConnector"


def test_a_cache_budget_from_the_ratio(kit: Any) -> None:
    document = kit.document(extended_kv_cache={"kind": "in_process", "ram_ratio": 1.5})
    known = member(kit, document, accelerator_memory_mib=81920)
    assert known.env["LMCACHE_MAX_LOCAL_CPU_SIZE"] == "240"
    assert "LMCACHE_MAX_LOCAL_CPU_SIZE" not in member(kit, document).env


@pytest.mark.parametrize(
    ("executable", "host", "argv0"),
    [
        (None, None, "vllm"),
        (None, "/opt/venv", "/opt/venv/bin/vllm"),
        (None, "/opt/venv/bin", "/opt/venv/bin/vllm"),
        (None, "/opt/venv/bin/vllm", "/opt/venv/bin/vllm"),
        ("/srv/v", "/opt/venv", "/srv/v/bin/vllm"),
        ("/srv/vllm", None, "/srv/vllm"),
        ("/srv/vllm/", None, "/srv/vllm/bin/vllm"),
        ("/srv/start.sh", None, "/srv/start.sh"),
    ],
)
def test_executables_of_members(
    kit: Any, executable: str | None, host: str | None, argv0: str
) -> None:
    launch = member(kit, kit.document(executable=executable), executable=host)
    assert launch.argv[0] == argv0


@pytest.mark.parametrize(
    ("deployment", "role", "host", "argv0"),
    [
        (None, None, None, "vllm-router"),
        ("/opt/venv", None, None, "/opt/venv/bin/vllm-router"),
        ("/opt/venv/bin/vllm", None, None, "/opt/venv/bin/vllm-router"),
        ("/opt/start.sh", None, None, "vllm-router"),
        ("/opt/venv", None, "/r/bin/vllm-router", "/r/bin/vllm-router"),
        ("/opt/venv", "/own", "/r/bin/vllm-router", "/own/bin/vllm-router"),
    ],
)
def test_executables_of_routers(
    kit: Any, deployment: str | None, role: str | None, host: str | None, argv0: str
) -> None:
    roles = {"router": {"executable": role}}
    launch = router(kit, kit.document(executable=deployment, roles=roles), executable=host)
    assert launch.argv[0] == argv0


def test_python_is_found_in_a_prefix(kit: Any) -> None:
    launch = member(kit, kit.document("sglang-nixl", executable="/opt/sg"))
    assert launch.argv[:3] == ("/opt/sg/bin/python3", "-m", "sglang.launch_server")
    direct = member(kit, kit.document("sglang-nixl", executable="/usr/bin/python3.11"))
    assert direct.argv[0] == "/usr/bin/python3.11"


def test_programs_by_the_name_hosts_list_them(kit: Any) -> None:
    def name(mode: str | None, role: str) -> str:
        document = kit.document(mode)
        found = kit.catalogue.mode_of(document.spec)
        return program_of(found, kit.catalogue, document, role)

    assert name("vllm-nixl", "prefill") == "vllm"
    assert name("vllm-nixl", "router") == "vllm-router"
    assert name("sglang-nixl", "decode") == "sglang"
    assert name("sglang-nixl", "router") == "sglang-router"
    assert name(None, "replica") == "vllm"


@pytest.mark.parametrize(
    "row",
    [
        "--prefill http://x:1", "--prefill=http://x:1", "--decode", "--worker_urls=http://x",
        "--worker-url http://x", "--port 1", "--prometheus-port=2", "-prefill http://x",
    ],
)  # fmt: skip
def test_rows_of_the_platforms_are_refused_in_every_spelling(kit: Any, row: str) -> None:
    with pytest.raises(Refused) as caught:
        router(kit, kit.document(roles={"router": {"parameters": [row]}}))
    problem = caught.value.problem
    assert problem.rule == "router.owned_flag"
    assert problem.path == "spec.roles.router.parameters"
    assert "--retry-max-retries" in problem.remedy


def test_other_rows_win_over_the_tunables(kit: Any) -> None:
    rows = [
        "--policy=round_robin",
        "--prometheus-host",
        "0.0.0.0",
        "--health-check-interval-secs 5",
    ]
    argv = list(router(kit, kit.document(roles={"router": {"parameters": rows}})).argv)
    assert "cache_aware" not in argv
    assert argv[-5:] == [
        "--policy=round_robin", "--prometheus-host", "0.0.0.0", "--health-check-interval-secs", "5",
    ]  # fmt: skip


def test_a_router_needs_a_peer_of_each_role(kit: Any) -> None:
    with pytest.raises(Refused, match="ready decode member"):
        router(kit, kit.document(), peers=kit.peers[:2])


def test_a_router_does_not_take_the_deployments_parameters_but_its_env(kit: Any) -> None:
    launch = router(kit, kit.document(parameters=["--max-model-len 8K"], env={"A": "1"}))
    assert "--max-model-len" not in launch.argv
    assert launch.env == {"A": "1"}
    assert router(kit, kit.document(env={"A": "1"}, roles={"router": {"env": {}}})).env == {}


def test_a_router_command_of_the_users_own(kit: Any) -> None:
    command = ["/opt/r", "--listen", "{{host_ip}}:{{port}}", "--p={{prefill.urls}}"]
    launch = router(kit, kit.document(roles={"router": {"run_command": command}}))
    assert launch.argv == (
        "/opt/r", "--listen", "10.0.0.1:40000", "--p=http://10.0.0.1:40000,http://10.0.0.2:40000",
    )  # fmt: skip
    assert launch.env["PDTUI_DECODE_URLS"] == "http://10.0.0.3:40000"
    assert launch.health_path is None
    same = {"router": {"run_command": ["vllm-router", "--policy", "random"]}}
    assert router(kit, kit.document(roles=same)).health_path == "/health"


def test_custom_runs_one_command_by_role(kit: Any) -> None:
    document = kit.document("custom", run_command=["/s", "{{role}}", "{{ports.http}}"])
    assert member(kit, document, "decode").argv == ("/s", "decode", "40000")
    assert router(kit, document).argv == ("/s", "router", "40000")
    assert member(kit, document).env["PDTUI_ROLE"] == "prefill"
    env = {"PDTUI_HEALTH_PATH": "/ready"}
    assert member(kit, kit.document("custom", run_command=["/s"], env=env)).health_path == "/ready"


def test_custom_without_a_command_is_refused_and_with_an_engine_is_launched(kit: Any) -> None:
    with pytest.raises(Refused) as caught:
        member(kit, kit.document("custom"))
    assert caught.value.problem.rule == "render.command"
    launch = member(kit, kit.document("custom", engine="vllm"))
    assert launch.argv[:3] == ("vllm", "serve", "/data/models/Qwen3-32B")
    assert "--kv-transfer-config" not in launch.argv


def test_a_plain_replica(kit: Any) -> None:
    launch = member(kit, kit.document(None, replicas=2), "replica")
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
    launch = member(kit, document)
    assert launch.env["A"] == env
    script = "for a in " + join(launch.argv) + "; do printf '%s\\0' \"$a\"; done"
    seen = subprocess.run(["/bin/sh", "-s"], input=script.encode(), capture_output=True, check=True)
    assert seen.stdout.split(b"\0")[:-1] == [a.encode() for a in launch.argv]
    assert launch.argv[2] == model
    assert launch.argv[launch.argv.index("--chat-template") + 1] == "x" + value


def test_a_huge_value_stays_one_argument(kit: Any) -> None:
    text = "$(id) `id` 'a' \"b\"\n" * 5000
    launch = member(kit, kit.document(parameters=["--chat-template", text]))
    assert launch.argv.count(text) == 1
