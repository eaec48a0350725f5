"""What hosts are asked about models while documents are judged, and how often."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest

from backend.domain.documents import parse_deployment
from backend.domain.host import Host
from backend.services.backend import Backend
from backend.services.checking import STANDS_S, Checking
from tests.backend.checking.test_saving import document
from tests.backend.ssh.conftest import Machine, client_key, machine, machine_at
from tests.backend.ssh.test_facts import tool

__all__ = ["client_key", "machine", "machine_at"]


@pytest.fixture
def host(machine: Machine) -> Host:
    return machine.host()


@pytest.fixture
async def seen(http: httpx.AsyncClient, backend: Backend, host: Host, machine: Machine) -> Backend:
    """A backend with one host of four cards, whose looks are counted in its file `looks`."""
    (machine.home / "looks").touch()
    rows = "".join(f"{i}, GPU-{i}, NVIDIA H100 80GB HBM3, 81559\\n" for i in range(4))
    tool(
        machine,
        "nvidia-smi",
        f"case $* in *uuid,name*) echo look >>'{machine.home}/looks'; sleep 0.3; "
        f"printf '{rows}' ;; esac",
    )
    print_ = machine.key.get_fingerprint()
    name = f"/hosts/{host.name}"
    added = await http.put(name, json=host.model_dump(mode="json"))
    assert added.json()["state"] == "key_unknown"
    accepted = await http.post(f"{name}/accept-key", json={"fingerprint": print_})
    assert accepted.json()["state"] == "up", accepted.json()
    return backend


async def test_a_model_is_asked_for_once_until_a_refusal_or_half_a_minute(
    seen: Backend, machine: Machine
) -> None:
    now = [100.0]
    checking = Checking(seen.world, seen.world.models, lambda: now[0])
    folder = machine.home / "m"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"num_attention_heads": 64}))
    good = parse_deployment(document())
    bad = parse_deployment(document(parameters=["--max-model-len", "4096"]))

    assert not [p for p in await checking.check(good) if p.verdict == "refused"]
    asked = machine.file_sessions
    assert asked > 0
    await asyncio.gather(*(checking.check(good) for _ in range(10)))
    assert machine.file_sessions == asked
    now[0] += STANDS_S - 1
    await checking.check(good)
    assert machine.file_sessions == asked
    now[0] += 1
    await checking.check(good)
    assert machine.file_sessions > asked

    asked = machine.file_sessions
    await checking.check(bad)
    assert machine.file_sessions == asked
    await checking.check(good)
    assert machine.file_sessions > asked


async def test_one_look_at_a_host_serves_all_who_ask_meanwhile(
    seen: Backend, machine: Machine, host: Host
) -> None:
    record = machine.home / "looks"
    before = record.read_text().count("look")
    watch = seen.world.hosts
    await asyncio.gather(*(watch.look(host.name) for _ in range(20)))
    assert record.read_text().count("look") == before + 1
    first = asyncio.create_task(watch.look(host.name))
    while record.read_text().count("look") < before + 2:
        await asyncio.sleep(0.01)
    await asyncio.gather(*(watch.look(host.name, anew=True) for _ in range(20)))
    await first
    assert record.read_text().count("look") == before + 3
