"""Embedded hosts as a client sees them: commands, files, channels, tools, and what goes wrong."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import asyncssh
import pytest

from backend.domain.errors import Conflict, Invalid, NotFound
from backend.sandbox import proc
from backend.sandbox.hosts import Sandbox
from backend.sandbox.plan import HostPlan, default_plans, read_plans


async def run(connection: Any, command: str, **more: Any) -> Any:
    more.setdefault("input", b"")
    return await connection.run(command, encoding=None, **more)


async def until(condition: Any, limit_s: float = 10.0) -> None:
    """Wait for a condition that other processes bring about."""
    async with asyncio.timeout(limit_s):
        while not await condition():
            await asyncio.sleep(0.02)


async def test_a_command_has_input_outputs_and_exit_code(connect):
    r = await run(await connect(), "cat; echo oops >&2; exit 7", input=b"\xff\x00hello")
    assert (r.stdout, r.stderr, r.exit_status) == (b"\xff\x00hello", b"oops\n", 7)


async def test_an_ending_signal_is_told(connect):
    r = await run(await connect(), "kill -KILL $$")
    assert r.exit_signal[0] == "KILL"


async def test_megabytes_pass_both_ways(connect):
    data = bytes(range(256)) * 16384
    r = await run(await connect(), "cat", input=data)
    assert r.stdout == data


async def test_a_shell_reads_its_commands_from_stdin(connect):
    r = await run(await connect(), None, input=b"echo one\nexit 3\n")
    assert (r.stdout, r.exit_status) == (b"one\n", 3)


async def test_a_signal_reaches_the_command(connect):
    async with await (await connect()).create_process(
        "trap 'echo caught; exit 5' TERM; echo ready; while :; do sleep 0.05; done", encoding=None
    ) as process:
        assert await process.stdout.readline() == b"ready\n"
        process.send_signal("TERM")
        assert await process.stdout.readline() == b"caught\n"
        assert (await process.wait()).exit_status == 5


async def test_the_environment_is_a_login_of_its_own(connect, sandbox):
    r = await run(await connect("node2"), "env; pwd; command -v nvidia-smi", env={"LEAK": "1"})
    home = sandbox.host("node2").home
    lines = r.stdout.decode().splitlines()
    env = dict(line.split("=", 1) for line in lines if "=" in line)
    assert env["HOME"] == str(home)
    assert env["USER"] == "pd"
    assert env["LANG"] == "C.UTF-8"
    assert env["PATH"].startswith(f"{home}/bin:")
    assert env["PDTUI_SANDBOX"] == sandbox.run_id
    host = sandbox.inventory()[1]
    assert env["SSH_CONNECTION"].split()[2:] == [host.address, str(host.port)]
    assert "LEAK" not in env
    assert lines[-2:] == [str(home), f"{home}/bin/nvidia-smi"]


async def test_sftp_starts_in_the_home(connect, sandbox):
    async with (await connect()).start_sftp_client() as sftp:
        home = sandbox.host("node1").home
        assert await sftp.realpath(".") == str(home)
        async with sftp.open("notes/../a.txt", "wb") as file:
            await file.write(b"here")
        assert (home / "a.txt").read_bytes() == b"here"
        async with sftp.open(str(home / "a.txt"), "rb") as file:
            assert await file.read() == b"here"


async def test_channels_reach_the_own_address_only(connect, sandbox):
    seen = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readline())
        writer.write(b"pong\n")
        writer.close()

    address = sandbox.inventory()[0].address
    server = await asyncio.start_server(answer, address, 0)
    port = server.sockets[0].getsockname()[1]
    connection = await connect()
    for dest in (address, "node1"):
        reader, writer = await connection.open_connection(dest, port)
        writer.write(b"ping\n")
        assert await reader.readline() == b"pong\n"
        writer.close()
    for dest in (sandbox.inventory()[1].address, "127.0.0.1", "example.test"):
        with pytest.raises(asyncssh.ChannelOpenError):
            await connection.open_connection(dest, port)
    server.close()
    await server.wait_closed()
    with pytest.raises(asyncssh.ChannelOpenError):
        await connection.open_connection(address, port)
    assert seen == [b"ping\n"] * 2


async def test_a_hundred_commands_at_once_on_one_connection(connect):
    connection = await connect()
    results = await asyncio.gather(*(run(connection, f"echo {i}") for i in range(100)))
    assert [r.stdout for r in results] == [f"{i}\n".encode() for i in range(100)]


async def test_hosts_are_told_apart(connect, sandbox):
    a, b = sandbox.inventory()
    assert a.address != b.address
    assert a.service_port_range[1] < b.service_port_range[0]
    names = [(await run(await connect(n), "hostname")).stdout for n in ("node1", "node2")]
    assert names == [b"node1\n", b"node2\n"]
    uuids = [(await run(await connect(n), "nvidia-smi -L")).stdout for n in ("node1", "node2")]
    assert uuids[0] != uuids[1]


async def test_another_key_is_no_login(sandbox):
    host = sandbox.inventory()[0]
    with pytest.raises(asyncssh.PermissionDenied):
        await asyncssh.connect(
            host.address, host.port, username="pd", config=None, agent_path=None,
            client_keys=[asyncssh.generate_private_key("ssh-ed25519")],
            known_hosts=str(sandbox.known_hosts),
        )  # fmt: skip


# Tools


async def test_nvidia_smi_answers_its_usual_questions(connect):
    connection = await connect()
    query = "nvidia-smi --query-gpu=index,uuid,name,memory.total --format=csv,noheader"
    rows = (await run(connection, query + ",nounits")).stdout.decode().splitlines()
    assert [r.split(", ")[0] for r in rows] == ["0", "1"]
    assert all(r.endswith("NVIDIA H100 80GB HBM3, 81559") for r in rows)
    assert rows[0].split(", ")[1].startswith("GPU-")
    assert b"81559 MiB\n" in (await run(connection, query)).stdout
    listing = (await run(connection, "nvidia-smi -L")).stdout.decode()
    assert rows[1].split(", ")[1] in listing
    table = (await run(connection, "nvidia-smi")).stdout.decode().splitlines()
    assert {len(line) for line in table} == {91}
    assert (await run(connection, "nvidia-smi --no-such")).exit_status == 2


async def test_ip_shows_one_routable_interface(connect, sandbox):
    r = await run(await connect(), "ip -j addr && ip -j route show")
    links, routes = (json.loads(line) for line in r.stdout.splitlines())
    address = {link["ifname"]: link["addr_info"][0]["local"] for link in links}
    assert address["eth0"] == sandbox.inventory()[0].address
    assert [link["operstate"] for link in links] == ["UNKNOWN", "UP", "DOWN"]
    assert links[2]["linkinfo"]["info_kind"] == "bridge"
    assert routes[0]["dst"] == "default"
    assert routes[0]["dev"] == "eth0"


async def test_plans_decide_the_tools(tmp_path):
    file = tmp_path / "plan.json"
    file.write_text(
        json.dumps(
            [
                {"name": "npu", "vendor": "ascend", "accelerator_type": "Ascend 910B3",
                 "memory_mib": 65536, "accelerators": 3, "labels": {"rack": "r1"}},
                {"name": "cpu", "accelerators": 0},
            ]
        )
    )  # fmt: skip
    async with Sandbox(tmp_path / "s", read_plans(file)) as sandbox:
        npu, cpu = (sandbox.host(n).home / "bin" for n in ("npu", "cpu"))
        assert not (npu / "nvidia-smi").exists()
        assert not (cpu / "nvidia-smi").exists()
        assert sandbox.inventory()[0].labels == {"rack": "r1"}
        tool = str(npu / "npu-smi")
        for words, text in (
            (("info",), b"910B3"), (("info", "-l"), b"Total Count                    : 3"),
            (("info", "-m"), b"Ascend 910B3"), (("info", "-t", "memory", "-i", "0"), b"65536"),
        ):  # fmt: skip
            process = await asyncio.create_subprocess_exec(
                tool, *words, stdout=asyncio.subprocess.PIPE
            )
            assert text in (await process.communicate())[0], words


@pytest.mark.parametrize(
    "text", ["{}", "[1]", '[{"name": "a", "nose": 1}]', '[{"name": "A b"}]', "[{}]", "no json"]
)
def test_a_bad_plan_file_is_refused(tmp_path, text):
    file = tmp_path / "plan.json"
    file.write_text(text)
    with pytest.raises(Invalid):
        read_plans(file)


def test_two_hosts_of_one_name_are_refused(tmp_path):
    with pytest.raises(Invalid, match="two hosts"):
        Sandbox(tmp_path, [HostPlan("a"), HostPlan("a")])


# Faults


async def test_refused_then_open_again_on_the_same_port(sandbox, connect):
    host = sandbox.host("node1")
    await host.set_faults(refuse=True)
    with pytest.raises(ConnectionRefusedError):
        await connect()
    await host.set_faults(refuse=False)
    assert (await run(await connect(), "echo up")).stdout == b"up\n"


async def test_a_mute_host_accepts_and_says_nothing(sandbox):
    host = sandbox.host("node1")
    await host.set_faults(mute=True)
    reader, writer = await asyncio.open_connection(host.address, host.port)
    writer.write(b"SSH-2.0-test\r\n")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(reader.read(1), 0.2)
    await host.set_faults(mute=False)
    with pytest.raises(ConnectionResetError):  # our greeting was never read
        await reader.read(1)
    writer.close()


async def test_dropped_connections_lose_their_commands(sandbox, connect):
    connection = await connect()
    waiting = asyncio.create_task(run(connection, "sleep 60"))
    host = sandbox.host("node1")

    async def running() -> bool:
        return bool(host.commands)

    await until(running)
    assert await host.drop_connections() == 1
    r = await waiting
    assert (r.exit_status, r.stdout) == (None, b"")
    assert [p.name for p in await sandbox.leftovers()] != []  # as with sshd, it lives on


@pytest.mark.parametrize(("at", "seen"), [("start", b""), ("output", b"one\n"), ("exit", b"")])
async def test_a_command_is_cut_off_and_its_effect_stays(sandbox, connect, at, seen):
    host = sandbox.host("node1")
    await host.set_faults(drop_at=at, drops=1, drop_after=4)
    out = "printf 'one\\n'; sleep 0.2; echo two; " if at == "output" else ""
    r = await run(await connect(), f"{out}touch effect; exit 0")
    assert (r.exit_status, r.stdout) == (None, seen)

    async def effect() -> bool:
        return (host.home / "effect").exists()

    await until(effect)
    assert (await run(await connect(), "echo next")).stdout == b"next\n"


async def test_a_changed_key_is_not_the_known_one(sandbox, connect):
    await sandbox.host("node1").change_key()
    with pytest.raises(asyncssh.HostKeyNotVerifiable):
        await connect()
    sandbox.write_known_hosts()
    assert (await run(await connect(), "echo new")).stdout == b"new\n"


async def test_a_session_cap_refuses_the_next_session(sandbox, connect):
    await sandbox.host("node1").set_faults(session_cap=2)
    connection = await connect()
    held = [await connection.create_process("cat", encoding=None) for _ in range(2)]
    with pytest.raises(asyncssh.ChannelOpenError) as e:
        await run(connection, "true")
    assert e.value.code == asyncssh.OPEN_CONNECT_FAILED
    for process in held:
        process.stdin.write_eof()
        await process.wait_closed()
    assert (await run(connection, "echo free")).stdout == b"free\n"


async def test_noise_surrounds_the_output(sandbox, connect):
    await sandbox.host("node1").set_faults(noise=b"motd \xff\xfe\n", noise_after=b"bye\n")
    r = await run(await connect(), "echo real")
    assert r.stdout == b"motd \xff\xfe\nreal\nbye\n"


async def test_a_slow_host_takes_its_time(sandbox, connect):
    connection = await connect("node1")
    await sandbox.host("node1").set_faults(latency=30.0)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await run(connection, "echo late")
    await sandbox.host("node1").set_faults(latency=0.0)
    assert (await run(connection, "echo soon")).stdout == b"soon\n"


async def test_no_forwarding_and_no_login(sandbox, connect):
    host = sandbox.host("node1")
    connection = await connect()
    await host.set_faults(forwarding=False)
    with pytest.raises(asyncssh.ChannelOpenError) as e:
        await connection.open_connection(host.address, host.port)
    assert e.value.code == asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED
    await host.set_faults(deny=True)
    with pytest.raises(asyncssh.PermissionDenied):
        await connect()


@pytest.mark.parametrize("values", [{"nose": 1}, {"refuse": "yes"}, {"drop_at": "later"}])
async def test_an_unknown_fault_changes_nothing(sandbox, values):
    with pytest.raises(Invalid):
        await sandbox.host("node1").set_faults(latency=1, **values)
    assert sandbox.host("node1").faults.latency == 0
    with pytest.raises(NotFound):
        sandbox.host("node9")


# Clean-up


async def test_daemons_end_with_the_sandbox(tmp_path):
    sandbox = Sandbox(tmp_path / "s", default_plans(1))
    await sandbox.start()
    host = sandbox.inventory()[0]
    async with asyncssh.connect(
        host.address, host.port, username="pd", client_keys=list(host.identity_files),
        known_hosts=str(sandbox.known_hosts), config=None,
    ) as connection:  # fmt: skip
        deaf = "trap '' TERM; echo up > up; while :; do sleep 0.1; done"
        await connection.run(f"setsid sh -c {deaf!r} >/dev/null 2>&1 </dev/null &", input="")
    home = sandbox.host("node1").home

    async def up() -> bool:
        return (home / "up").exists()

    await until(up)
    assert await sandbox.leftovers()
    await sandbox.close()
    assert await sandbox.leftovers() == []
    with pytest.raises(OSError, match=r"\[Errno 111\]"):
        await asyncio.open_connection(host.address, host.port)


async def test_a_recorded_leader_without_a_mark_is_found(sandbox):
    """Routers overwrite their environment: the run file with pid and start time is what counts."""
    stranger = await asyncio.create_subprocess_exec("sleep", "60", start_new_session=True)
    leader = await asyncio.create_subprocess_exec("sleep", "60", start_new_session=True)
    run_dir = sandbox.host("node1").home / ".pdtui/instances/web-1/g1"
    run_dir.mkdir(parents=True)
    seen, other = proc.look(leader.pid), proc.look(stranger.pid)
    assert seen
    assert other
    boot = proc.boot_id()
    (run_dir / "run").write_text(f"pid={leader.pid}\nstart={seen.start}\nboot={boot}\n")
    (run_dir.parent / "g2").mkdir()
    (run_dir.parent / "g2" / "run").write_text(
        f"pid={stranger.pid}\nstart={other.start + 1}\nboot={boot}\n"
    )
    assert [p.pid for p in await sandbox.leftovers()] == [leader.pid]
    await sandbox.close()
    assert await leader.wait() < 0
    assert stranger.returncode is None
    stranger.kill()
    await stranger.wait()


async def test_a_root_in_use_is_refused(sandbox, tmp_path):
    with pytest.raises(Conflict, match="in use"):
        await Sandbox(sandbox.root, default_plans(1)).start()
    foreign = tmp_path / "foreign"
    (foreign / "hosts").mkdir(parents=True)
    with pytest.raises(Conflict, match="not made by a sandbox"):
        await Sandbox(foreign, default_plans(1)).start()


async def test_sandboxes_side_by_side_share_no_address(tmp_path, sandbox):
    async with Sandbox(tmp_path / "other", default_plans(2)) as other:
        mine = {h.address for h in sandbox.inventory()}
        assert mine.isdisjoint(h.address for h in other.inventory())
        ports = [h.service_port_range for h in (*sandbox.inventory(), *other.inventory())]
        assert len(set(ports)) == 4
