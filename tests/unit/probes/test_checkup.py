"""The deeper look's reading: what tools print becomes facts, and nothing else does."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.domain.checkup import Box, Listener, Marked, ModelCopy, Rdma
from backend.probes import checkup, ports
from backend.probes.host import SECTION

TOOLS = Path(__file__).parents[2] / "data" / "tools"
DF = """\
Filesystem     1024-blocks     Used Available Capacity Mounted on
/dev/vda         264212084 23488648  82902264      23% /
"""
LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units
Max core file size        0                    unlimited            bytes
Max processes             96364                96364                processes
Max open files            1024                 524288               files
Max locked memory         8388608              8388608              bytes
"""


def look(**parts: str) -> str:
    return "".join(f"\n{SECTION}{n.replace('_', '-')}\n{b}\n" for n, b in parts.items())


def test_sizes_limits_and_versions() -> None:
    text = look(
        kernel="Linux 5.15.0 x86_64", disk=f"{DF}writable", shm=DF,
        memory="MemTotal:       2097152 kB\nMemAvailable:   1048576 kB", limits=LIMITS,
        runtimes="docker 24.0.7\npodman !cannot connect", gpu_runtimes="/usr/bin/nvidia-ctk\n",
        programs="vllm\t/opt/bin/vllm\nsglang\t\n",
    )  # fmt: skip
    seen = checkup.parse(text, 0, 0)
    assert (seen.disk_total, seen.disk_free, seen.writable) == (258019, 80959, True)
    assert (seen.shm_total, seen.memory_total, seen.memory_free) == (258019, 2048, 1024)
    assert seen.limits == {"core": 0, "nproc": 96364, "nofile": 1024, "memlock": 8192}
    assert seen.runtimes == {"docker": "24.0.7", "podman": "!cannot connect"}
    assert seen.programs == {"vllm": "/opt/bin/vllm", "sglang": ""}
    assert seen.gpu_runtimes == ("/usr/bin/nvidia-ctk",)
    unlimited = checkup.limits("Max locked memory         unlimited            unlimited   bytes")
    assert unlimited == {"memlock": None}


def test_what_is_not_told_is_absent() -> None:
    seen = checkup.parse("", 0, 0)
    assert (seen.skew_s, seen.disk_free, seen.writable, seen.memory_total) == (None,) * 4
    assert (seen.limits, seen.programs, seen.listeners, seen.models) == ({}, {}, (), ())


@pytest.mark.parametrize(
    ("said", "skew"),
    [("1005.5", 0.0), ("990.0", -10.0), ("1020", 10.0), ("1000.%N", 0.0), ("", None), ("x", None)],
)
def test_the_round_trip_bounds_the_skew(said: str, skew: float | None) -> None:
    assert checkup.parse(look(time=said), 1000.0, 1010.0).skew_s == skew


def test_listeners_of_real_hosts() -> None:
    found = ports.listeners((TOOLS / "ss-tlnp-1-worker-and-router.txt").read_text())
    assert found == (
        Listener(port=22, pid=2558, name="sshd"),
        Listener(port=53, pid=1691, name="systemd-resolve"),
        Listener(port=631, pid=513916, name="cupsd"),
        Listener(port=2222, pid=4842, name="sshd"),
        Listener(port=8015, pid=3255358, name="python3"),
        Listener(port=11000, pid=1531, name="dashboard-servi"),
        Listener(port=29778, pid=3259984, name="VLLM::Worker_TP"),
        Listener(port=47835, pid=3259984, name="VLLM::Worker_TP"),
    )
    bare = ports.listeners((TOOLS / "ss-tlnp-3-no-users-column.txt").read_text())
    assert [(x.port, x.pid, x.name) for x in bare] == [
        (22, 0, ""), (3000, 0, ""), (8000, 1, "vllm"), (8002, 14, "VLLM::Worker"),
    ]  # fmt: skip


def test_networks_of_their_own() -> None:
    assert checkup.hccn((TOOLS / "hccn-1-hccn.conf.txt").read_text()) == {
        str(i): f"192.168.{10 * (i % 4 + 1)}.{21 + i // 4}" for i in range(8)
    }
    text = "mlx5_0|1|4: ACTIVE|eth2\nmlx5_1|1|1: DOWN|\nnoise\nmlx5_2|x|4: ACTIVE|"
    assert checkup.rdma(text) == (
        Rdma(device="mlx5_0", port=1, state="ACTIVE", interface="eth2"),
        Rdma(device="mlx5_1", port=1, state="DOWN"),
    )
    assert checkup.routes("10.0.0.2\t10.0.0.2 dev eth1 src 10.0.0.1\n10.9.9.9\t\nx") == {
        "10.0.0.2": "eth1"
    }


def test_models_and_processes() -> None:
    assert checkup.models("/m/a\t+\tabc\t2\t123456789012\n/m/b\t-\n/m/c\t+\n") == (
        ModelCopy(path="/m/a", there=True, digest="abc", weights=2, size=123456789012),
        ModelCopy(path="/m/b"),
    )
    assert checkup.marked("12|chat-decode-abcd|VLLM::W|x\nx|y|z\n") == (
        Marked(pid=12, instance="chat-decode-abcd", name="VLLM::W|x"),
    )


def test_containers_of_instances() -> None:
    assert checkup.containers("pdtui-a-1-g2|running|a-1\n||\nx|y\npdtui-a-1-g2|running|a-1") == (
        Box(name="pdtui-a-1-g2", state="running", instance="a-1"),
    )


ALL = look(
    time="1.5", disk=f"{DF}writable", limits=LIMITS, rdma="mlx5_0|1|4: ACTIVE|eth2",
    listeners=(TOOLS / "ss-tlnp-1-worker-and-router.txt").read_text(),
    models="/m/a\t+\tabc\t2\t12", programs="vllm\t/opt", marked="12|a|b",
)  # fmt: skip


def test_what_only_looks_like_a_digit_is_no_number() -> None:
    """'²'.isdigit() holds, and int('²') does not."""
    text = look(disk=f"{DF}writable".replace("1", "²"), limits=LIMITS.replace("6", "²"))
    assert checkup.parse(text, 1.0, 2.0) is not None


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(ALL)), st.integers(0, len(ALL)), st.text(max_size=12))
def test_a_damaged_answer_never_raises(start: int, end: int, put: str) -> None:
    found = checkup.parse(ALL[:start] + put + ALL[end:], 1.0, 2.0)
    assert all(0 < x.port < 65536 for x in found.listeners)
