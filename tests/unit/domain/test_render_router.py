"""What a router is started with, and by which path a program is executed."""

from __future__ import annotations

from typing import Any

import pytest

from backend.domain.errors import Refused
from backend.domain.render import program_of


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
    launch = kit.member(kit.document(executable=executable), executable=host)
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
    launch = kit.router(kit.document(executable=deployment, roles=roles), executable=host)
    assert launch.argv[0] == argv0


def test_python_is_found_in_a_prefix(kit: Any) -> None:
    launch = kit.member(kit.document("sglang-nixl", executable="/opt/sg"))
    assert launch.argv[:3] == ("/opt/sg/bin/python3", "-m", "sglang.launch_server")
    direct = kit.member(kit.document("sglang-nixl", executable="/usr/bin/python3.11"))
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
        kit.router(kit.document(roles={"router": {"parameters": [row]}}))
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
    argv = list(kit.router(kit.document(roles={"router": {"parameters": rows}})).argv)
    assert "cache_aware" not in argv
    assert argv[-5:] == [
        "--policy=round_robin", "--prometheus-host", "0.0.0.0", "--health-check-interval-secs", "5",
    ]  # fmt: skip


def test_a_router_needs_a_peer_of_each_role(kit: Any) -> None:
    with pytest.raises(Refused, match="ready decode member"):
        kit.router(kit.document(), peers=kit.peers[:2])


def test_a_router_does_not_take_the_deployments_parameters_but_its_env(kit: Any) -> None:
    launch = kit.router(kit.document(parameters=["--max-model-len 8K"], env={"A": "1"}))
    assert "--max-model-len" not in launch.argv
    assert launch.env == {"A": "1"}
    assert kit.router(kit.document(env={"A": "1"}, roles={"router": {"env": {}}})).env == {}


def test_a_router_command_of_the_users_own(kit: Any) -> None:
    command = ["/opt/r", "--listen", "{{host_ip}}:{{port}}", "--p={{prefill.urls}}"]
    launch = kit.router(kit.document(roles={"router": {"run_command": command}}))
    assert launch.argv == (
        "/opt/r", "--listen", "10.0.0.1:40000", "--p=http://10.0.0.1:40000,http://10.0.0.2:40000",
    )  # fmt: skip
    assert launch.env["PDTUI_DECODE_URLS"] == "http://10.0.0.3:40000"
    assert launch.health_path is None
    same = {"router": {"run_command": ["vllm-router", "--policy", "random"]}}
    assert kit.router(kit.document(roles=same)).health_path == "/health"
