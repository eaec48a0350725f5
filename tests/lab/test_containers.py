"""Instances as real containers: their lives one by one, and a whole group of them."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from backend.adapters.checkup import check_up
from backend.adapters.container import OUT_OF_MEMORY, ContainerRuntime
from backend.adapters.process import ClaimOrder
from backend.adapters.ssh.pool import SshPool
from backend.domain.checkup import Box
from backend.domain.host import Host
from backend.domain.instance import LaunchFile, LaunchSpec, ProcessStatus
from backend.sandbox.plan import HostPlan
from pdtui.cli.demo import chat, fetched_tokens
from tests.lab.conftest import host_of
from tests.lab.containers import IMAGE, SET_UP
from tests.lab.machines import FAST_NIC, Rack, require_namespaces
from tests.lab.test_group import RackLab
from tests.live.lab import CONFIG, deployment, serving
from tests.live.test_adopt import lose_store

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.timeout(200),
    pytest.mark.needs("podman", "runc"),
]
SECRET = "line one\nline 'two' $HOME"


@pytest.fixture(scope="module")
def client() -> str:
    """The runtime whose containers these are, and its client's name."""
    return "podman"


@pytest.fixture(scope="module")
def rack(client: str) -> Iterator[Rack]:
    """Two hosts with that runtime."""
    require_namespaces()
    with tempfile.TemporaryDirectory(prefix="pdtui-rack-") as folder:
        root = Path(folder)
        model = root / "models" / "tiny,v1:2"  # a path that runtimes could take for several
        model.mkdir(parents=True)
        (model / "config.json").write_text(json.dumps(CONFIG))
        rack = Rack(root, [HostPlan("pod1"), HostPlan("pod2")], bind=[root / "models"])
        try:
            rack.up()
            for machine in rack.machines:
                SET_UP[client](machine, sys.executable)
            with rack.inside():
                yield rack
        finally:
            rack.down()


@pytest.fixture
def host(rack: Rack, client: str) -> Host:
    return host_of(rack, rack.machines[0], runtime=client)


@pytest.fixture
def runtime(pool: SshPool) -> ContainerRuntime:
    return ContainerRuntime(pool, "me")


def spec(script: str, **more: object) -> LaunchSpec:
    base = {
        "argv": ("/bin/sh", "-c", script), "image": IMAGE, "address": "10.77.0.1", "port": 40000,
        "env": {"API_TOKEN": SECRET, "PATH": "/usr/bin:/bin", "PLAIN": "yes"},
    }  # fmt: skip
    return LaunchSpec.model_validate({**base, **more})


async def started(
    runtime: ContainerRuntime, host: Host, launch: LaunchSpec, name: str, generation: int = 1
) -> ProcessStatus:
    await runtime.claim(host, [ClaimOrder(name, launch.accelerators, (40000,))])
    return await runtime.start(host, name, generation, launch, {"group": "g", "role": "decode"})


async def until(runtime: ContainerRuntime, host: Host, name: str, state: str) -> ProcessStatus:
    async with asyncio.timeout(60):
        while (seen := await runtime.status(host, name)).state != state:
            await asyncio.sleep(0.1)
    return seen


async def logged(runtime: ContainerRuntime, host: Host, name: str, text: str) -> str:
    async with asyncio.timeout(60):
        while text not in (said := (await runtime.log(host, name)).text):
            await asyncio.sleep(0.1)
    return said


def containers(rack: Rack, host: Host) -> list[str]:
    return rack.machines[0].sh(f"{host.runtime} ps -a --format '{{{{.Names}}}}'").split()


async def test_a_container_is_given_its_environment_files_and_cards_and_stops_in_good_order(
    rack: Rack, host: Host, runtime: ContainerRuntime
) -> None:
    script = (
        'trap "echo bye; exit 0" TERM; printf "token=[%s] %s\\n" "$API_TOKEN" "$PLAIN"; '
        'echo "cards=$CARD_0,$CARD_1 id=$PDTUI_INSTANCE"; cat "$1"; echo up; '
        "while :; do sleep 0.1; done"
    )
    where = "/root/login/.pdtui/instances/one/extra.txt"
    launch = spec(
        script, accelerators=(1,), vendor="nvidia",
        files=(LaunchFile(name="extra.txt", content="a file of ours\n"),),
    )  # fmt: skip
    launch = launch.model_copy(update={"argv": (*launch.argv, "sh", where)})
    first = await started(runtime, host, launch, "one")
    said = await logged(runtime, host, "one", "up\n")
    assert f"token=[{SECRET}] yes" in said
    card = rack.machines[0].plan.uuid(1)
    assert f"cards=,{card} id=one" in said
    assert "a file of ours" in said
    again = await runtime.start(host, "one", 1, launch, {})
    assert (again.state, again.pid) == ("running", first.pid)
    assert containers(rack, host) == ["pdtui-one-g1"]
    commands = rack.machines[0].sh("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'")
    assert "line one" not in commands

    (found,) = await runtime.adoptable(host)
    assert found["launch"]["argv"][0] == "/bin/sh"
    assert found["launch"]["image"] == IMAGE
    assert found["launch"]["env"]["API_TOKEN"] == SECRET

    ended = await runtime.stop(host, "one", 10)
    assert (ended.gone, ended.killed, ended.exit_code) == (True, False, 0)
    assert "bye" in (await runtime.log(host, "one")).text
    assert containers(rack, host) == []
    await runtime.remove(host, "one")
    assert await runtime.claims(host) == []


async def test_how_a_container_ended_is_how_its_instance_ended(
    rack: Rack, host: Host, runtime: ContainerRuntime
) -> None:
    await started(runtime, host, spec("exit 7"), "two")
    assert (await until(runtime, host, "two", "exited")).exit_code == 7
    await started(runtime, host, spec("kill -9 $$; sleep 1"), "two", 2)
    await until(runtime, host, "two", "exited")
    await started(runtime, host, spec("exit 0", image="localhost/absent:9"), "two", 3)
    assert (await until(runtime, host, "two", "exited")).exit_code == 125
    said = (await runtime.log(host, "two")).text
    assert f"the image localhost/absent:9 is not on this host; {host.runtime} pulls it" in said
    assert f"{host.runtime} could not pull localhost/absent:9" in said
    await runtime.remove(host, "two")
    assert containers(rack, host) == []


async def test_one_that_ignores_its_end_or_lost_its_client_is_gone_all_the_same(
    rack: Rack, host: Host, runtime: ContainerRuntime
) -> None:
    deaf = spec("trap '' TERM; echo up; while :; do sleep 0.1; done")
    await started(runtime, host, deaf, "three")
    await logged(runtime, host, "three", "up")
    ended = await runtime.stop(host, "three", 1)
    assert (ended.gone, ended.killed) == (True, True)
    assert containers(rack, host) == []

    seen = await started(runtime, host, deaf, "three", 2)
    await logged(runtime, host, "three", "up")
    rack.machines[0].sh('kill -9 "$1"', str(seen.pid))
    await until(runtime, host, "three", "exited")
    ended = await runtime.stop(host, "three", 1)
    assert ended.gone
    assert containers(rack, host) == []
    assert rack.machines[0].sh("ps -eo args | grep -c '[w]hile :; do' || :").strip() == "0"
    await runtime.remove(host, "three")


MEMORY_GROUP = r"""
set -e
group=$(awk -F: '$2 == "memory" { print $3 }' "/proc/$1/cgroup")
limit=/sys/fs/cgroup/memory$group/memory.limit_in_bytes
[ -f "$limit" ] || { echo none; exit 0; }
echo 67108864 >"$limit"
echo set
"""


async def test_one_that_the_kernel_killed_for_memory_says_so(
    rack: Rack, host: Host, runtime: ContainerRuntime
) -> None:
    """The limit of its control group is lowered while it runs; then it eats without end."""
    eater = spec("trap 'exec tail /dev/zero' USR1; echo up; while :; do sleep 0.1; done")
    await started(runtime, host, eater, "four")
    await logged(runtime, host, "four", "up")
    node = rack.machines[0]
    inner = node.sh(f"{host.runtime} inspect -f '{{{{.State.Pid}}}}' pdtui-four-g1").strip()
    try:
        if node.sh(MEMORY_GROUP, inner).strip() != "set":
            pytest.skip("no control group of version 1 for memory on this machine")
        if not node.sh("dmesg 2>/dev/null | head -n 1 || :"):
            pytest.skip("the kernel's log cannot be read here, and podman may not hear of it")
        node.sh(f"{host.runtime} kill --signal USR1 pdtui-four-g1 >/dev/null")
        ended = await until(runtime, host, "four", "exited")
        assert ended.exit_code == 137
        assert ended.detail == OUT_OF_MEMORY
    finally:
        await runtime.stop(host, "four", 1)
        await runtime.remove(host, "four")


async def test_the_deeper_look_sees_containers_of_ours(
    rack: Rack, host: Host, pool: SshPool
) -> None:
    """Those of this work directory, running or ended; not another's."""
    node = rack.machines[0]
    run = f"{host.runtime} run -d --network host --log-driver none"
    node.sh(
        f"{run} --name pdtui-gone-1-g1 --label pdtui.id=/root/login/.pdtui/instances/gone-1 {IMAGE}"
        f" sleep 300; {run} --name else-1 --label pdtui.id=/elsewhere/instances/else-1 {IMAGE} true"
    )
    try:
        found = await check_up(pool, host, node.address)
        assert found.containers == (
            Box(name="pdtui-gone-1-g1", state="running", instance="gone-1"),
        )
    finally:
        node.sh(f"{host.runtime} rm -f pdtui-gone-1-g1 else-1 >/dev/null")


@pytest.fixture
async def lab(rack: Rack, client: str, tmp_path: Path) -> AsyncIterator[RackLab]:
    lab = RackLab(tmp_path, rack)
    await lab.up()
    for entry in lab.inventory:
        entry |= {"kv_transfer_ifname": FAST_NIC, "runtime": client}
    await lab.add_hosts()
    try:
        yield lab
    finally:
        await lab.down()


async def test_a_group_of_containers_serves_heals_and_leaves_nothing(
    lab: RackLab, rack: Rack, client: str
) -> None:
    """1P1D and its router, all in containers; one is killed, then all are stopped."""
    document = deployment(lab.model, image=IMAGE)
    roles = document["spec"]["roles"]
    roles["router"] = {"image": IMAGE, "placement": [{"host": "pod1"}]}
    roles["prefill"]["placement"] = [{"host": "pod1"}]
    roles["decode"]["placement"] = [{"host": "pod2"}]
    await lab.asked(lambda c: c.apply(document))
    group = await lab.until("chat", serving(1, 1), seconds=90)
    assert len(rack.machines[0].sh(f"{client} ps -q").split()) == 2
    decode = next(m for m in group.members if m.role == "decode")
    _, answer, tokens = await chat(group)
    assert await fetched_tokens(decode) >= tokens > 0

    rack.machines[1].sh(f"{client} kill $({client} ps -q) >/dev/null")
    healed = await lab.until(
        "chat",
        lambda g: serving(1, 1)(g) and any(m.generation == 2 for m in g.members),
        seconds=90,
    )
    assert next(m for m in healed.members if m.role == "decode").id == decode.id
    assert (await chat(healed))[1] == answer
    await lab.asked(lambda c: c.delete("chat"))
    await lab.until_gone("chat", seconds=60)
    for machine in rack.machines:
        assert machine.sh(f"{client} ps -aq") == ""
        assert "vllm" not in machine.sh("ps -eo args")


async def test_containers_are_found_again_after_the_store_is_lost(
    lab: RackLab, rack: Rack, client: str
) -> None:
    """The same containers under the same pids and generations, none started, none ended."""
    document = deployment(lab.model, image=IMAGE)
    roles = document["spec"]["roles"]
    roles["router"] = {"image": IMAGE, "placement": [{"host": "pod1"}]}
    roles["prefill"]["placement"] = [{"host": "pod1"}]
    roles["decode"]["placement"] = [{"host": "pod2"}]
    await lab.asked(lambda c: c.apply(document))
    before = await lab.until("chat", serving(1, 1), seconds=90)
    ids = [m.sh(f"{client} ps -q --no-trunc | sort") for m in rack.machines]
    await lab.stop_backend()
    lose_store(lab)
    await lab.add_hosts()
    found, unasked = await lab.asked(lambda c: c.adoptable())
    assert unasked == {}
    (one,) = found
    assert (one.group, one.living) == ("chat", 3)
    await lab.asked(lambda c: c.adopt(one.owner))
    after = await lab.until("chat", serving(1, 1), seconds=90)
    assert {(m.id, m.pid, m.generation) for m in after.members} == {
        (m.id, m.pid, m.generation) for m in before.members
    }
    assert [m.sh(f"{client} ps -q --no-trunc | sort") for m in rack.machines] == ids
    await chat(after)
    await lab.asked(lambda c: c.delete("chat"))
    await lab.until_gone("chat", seconds=60)
    for machine in rack.machines:
        assert machine.sh(f"{client} ps -aq") == ""
