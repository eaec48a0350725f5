"""The sandbox at work: engines and the real router on embedded hosts, and the child process."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import sys
from pathlib import Path
from typing import Any

import asyncssh
import httpx
import pytest

from backend.domain.host import Host
from backend.sandbox import proc
from backend.sandbox.hosts import Sandbox
from backend.sandbox.plan import default_plans
from tests.backend.sandbox.conftest import dial
from tests.backend.sandbox.engines import write_model

pytest.importorskip("vllm_router", reason="the demo extra is not installed")


async def start(connection: asyncssh.SSHClientConnection, name: str, command: str) -> None:
    """Start a daemon over SSH, with its log in the home."""
    await connection.run(
        f"setsid sh -c {shlex.quote('exec ' + command)} >{name}.log 2>&1 </dev/null &", input=b""
    )


async def until_ok(http: httpx.AsyncClient, url: str) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                if (await http.get(url)).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.05)


def _kv(role: str) -> str:
    return shlex.quote(json.dumps({"kv_connector": "NixlConnector", "kv_role": role}))


async def _engine(connection: Any, host: Host, model: Path, role: str) -> str:
    assert host.service_port_range
    port = host.service_port_range[0]
    await start(
        connection, role,
        f"env VLLM_NIXL_SIDE_CHANNEL_HOST={host.address} VLLM_NIXL_SIDE_CHANNEL_PORT={port + 1} "
        f"vllm serve {model} --host {host.address} --port {port} --served-model-name m1 "
        f"--kv-transfer-config {_kv(role)}",
    )  # fmt: skip
    return f"http://{host.address}:{port}"


async def _router(connection: Any, host: Host, peers: list[str]) -> str:
    assert host.service_port_range
    port = host.service_port_range[0] + 10
    await start(
        connection, "router",
        "vllm-router --enable-igw --vllm-pd-disaggregation --kv-connector nixl "
        f"--host {host.address} --port {port} --prometheus-host {host.address} "
        f"--prometheus-port {port + 1} --prefill {peers[0]} --decode {peers[1]}",
    )  # fmt: skip
    return f"http://{host.address}:{port}"


async def test_one_prefill_one_decode_behind_the_real_router(tmp_path, sandbox):
    model = write_model(tmp_path / "model")
    hosts = sandbox.inventory()
    connections = [await dial(h, sandbox.known_hosts) for h in hosts]
    async with httpx.AsyncClient(timeout=20, trust_env=False) as http:
        peers = [
            await _engine(c, h, model, role)
            for c, h, role in zip(connections, hosts, ("kv_producer", "kv_consumer"), strict=True)
        ]
        router = await _router(connections[0], hosts[0], peers)
        for url in (*peers, router):
            await until_ok(http, f"{url}/health")
        for url, kind in zip(peers, ("prefill", "decode"), strict=True):
            worker = {"url": url, "worker_type": kind, "model_id": "m1"}
            r = await http.post(f"{router}/workers", json=worker)
            assert r.json()["success"] is True
        body = {"model": "m1", "messages": [{"role": "user", "content": "tell me " * 30}]}
        direct = (await http.post(f"{peers[0]}/v1/chat/completions", json=body)).json()
        r = await http.post(f"{router}/v1/chat/completions", json=body)
        assert r.status_code == 200
        answer = r.json()
        assert answer["choices"][0]["message"] == direct["choices"][0]["message"]
        pair = f"___prefill_addr_{peers[0][7:]}___decode_addr_{peers[1][7:]}_"
        assert answer["id"].startswith(f"chatcmpl-{pair}")
        text = (await http.get(f"{peers[1]}/metrics")).text
        tokens = answer["usage"]["prompt_tokens"]
        labels = '{engine="0",model_name="m1",source="external_kv_transfer"}'
        assert f"vllm:prompt_tokens_by_source_total{labels} {float(tokens)}" in text
    for connection in connections:
        connection.close()
        await connection.wait_closed()
    names = sorted(p.name for p in await sandbox.leftovers())
    assert names == ["VLLM::EngineCor"] * 2 + ["vllm"] * 2 + ["vllm::router"]
    await sandbox.close()
    assert await sandbox.leftovers() == []


# The child process


async def _child(root: Path, *more: str) -> tuple[asyncio.subprocess.Process, dict[str, Any]]:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "backend.sandbox", "--root", str(root), "--hosts", "2", *more,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    )  # fmt: skip
    assert child.stdout
    line = await asyncio.wait_for(child.stdout.readline(), 20)
    return child, json.loads(line)


async def _deaf_daemon(ready: dict[str, Any]) -> None:
    """A daemon that has left its session, hides its environment and ignores SIGTERM."""
    host = Host(**ready["inventory"][0])
    connection = await dial(host, Path(ready["known_hosts"]))
    body = "trap '' TERM; echo up >up; while :; do sleep 0.1; done"
    await connection.run(
        f"setsid env -i sh -c {shlex.quote(body)} >/dev/null 2>&1 </dev/null & "
        "until [ -e up ]; do sleep 0.02; done", input=b"",
    )  # fmt: skip
    connection.close()
    await connection.wait_closed()


def _children(pid: int) -> list[proc.Process]:
    return [p for p in proc.every().values() if p.parent == pid]


@pytest.mark.parametrize("how", ["sigterm", "eof"])
async def test_the_child_process_takes_its_daemons_with_it(tmp_path, how):
    child, ready = await _child(tmp_path / "s")
    assert ready["pid"] == child.pid
    await _deaf_daemon(ready)
    async with asyncio.timeout(10):
        while not (adopted := [p for p in _children(child.pid) if p.lives]):
            await asyncio.sleep(0.02)
    if how == "sigterm":
        child.send_signal(signal.SIGTERM)
    else:
        assert child.stdin
        child.stdin.close()
    assert await asyncio.wait_for(child.wait(), 20) == 0
    assert [p for p in adopted if (now := proc.look(p.pid)) and now.start == p.start] == []


async def test_the_child_process_reaps_what_falls_to_it(tmp_path):
    child, ready = await _child(tmp_path / "s")
    host = Host(**ready["inventory"][0])
    connection = await dial(host, Path(ready["known_hosts"]))
    for _ in range(5):
        await connection.run("setsid sh -c 'exit 3' >/dev/null 2>&1 </dev/null &", input=b"")
        assert (await connection.run("exit 4", input=b"")).exit_status == 4
    async with asyncio.timeout(10):
        while _children(child.pid):
            await asyncio.sleep(0.02)
    connection.close()
    await connection.wait_closed()
    child.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(child.wait(), 20) == 0


async def test_orders_on_stdin_switch_faults(tmp_path):
    child, ready = await _child(tmp_path / "s")
    host = Host(**ready["inventory"][1])
    assert child.stdin
    assert child.stdout

    async def order(**message: Any) -> dict[str, Any]:
        child.stdin.write(json.dumps(message).encode() + b"\n")
        answer: dict[str, Any] = json.loads(await asyncio.wait_for(child.stdout.readline(), 10))
        return answer

    connection = await dial(host, Path(ready["known_hosts"]))
    assert await order(host="node2", drop=True) == {"ok": True, "dropped": 1}
    await connection.wait_closed()
    assert await order(host="node2", faults={"refuse": True}) == {"ok": True}
    with pytest.raises(ConnectionRefusedError):
        await dial(host, Path(ready["known_hosts"]))
    assert await order(host="node2", engine={"die": 3}) == {"ok": True}
    control = tmp_path / "s/hosts/node2/.pdtui-sim.json"
    assert json.loads(control.read_text()) == {"die": 3}
    for bad in ({"host": "node9"}, {"host": "node2", "faults": {"nose": 1}}, {}):
        assert (await order(**bad))["ok"] is False
    child.stdin.close()
    assert await asyncio.wait_for(child.wait(), 20) == 0


async def test_a_killed_sandboxs_root_is_cleaned_by_the_next(tmp_path):
    child, ready = await _child(tmp_path / "s")
    host = Host(**ready["inventory"][0])
    connection = await dial(host, Path(ready["known_hosts"]))
    await connection.run("setsid sleep 60 >/dev/null 2>&1 </dev/null & touch mine", input=b"")
    connection.abort()
    found = proc.belonging(ready["run_id"])
    assert "sleep" in {p.name for p in found}
    child.kill()
    await child.wait()
    assert [p for p in proc.belonging(ready["run_id"]) if p.name == "sleep"]
    async with Sandbox(tmp_path / "s", default_plans(1)) as sandbox:
        assert proc.belonging(ready["run_id"]) == []
        assert not (sandbox.host("node1").home / "mine").exists()
    assert not os.path.exists(tmp_path / "s/hosts/node2")
