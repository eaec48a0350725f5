"""Every mode alive: groups form on embedded hosts behind the real routers, answer, scale, heal."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from backend.domain.views import GroupView, MemberView
from pdtui.cli.demo import chat
from tests.live.lab import Lab, deployment, serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]


def members(group: GroupView, role: str) -> list[MemberView]:
    return [m for m in group.members if m.role == role]


def identities(group: GroupView, *roles: str) -> dict[str, tuple[int, int]]:
    return {m.id: (m.pid, m.generation) for m in group.members if m.role in roles}


async def metric(member: MemberView, name: str, **labels: str) -> float:
    """The sum of a member's samples of that name that carry the labels."""
    async with httpx.AsyncClient(trust_env=False) as http:
        text = (await http.get(f"http://{member.address}:{member.port}/metrics")).text
    wanted = [f'{k}="{v}"' for k, v in labels.items()]
    lines = [x for x in text.splitlines() if x.startswith((f"{name} ", f"{name}{{"))]
    assert lines, name
    return sum(float(x.rsplit(" ", 1)[1]) for x in lines if all(w in x for w in wanted))


async def test_vllm_mooncake_forms_and_its_router_is_replaced(lab: Lab) -> None:
    """One first router; a member more replaces it once, a restarted prefill too; engines stay."""
    await lab.add_hosts()
    await lab.order("node2", engine={"start_delay": 2.0})  # the others are ready long before
    document = deployment(lab.model, prefill=1, decode=2, mode="vllm-mooncake")
    await lab.asked(lambda c: c.apply(document))
    formed = await lab.until("chat", serving(1, 2))
    (router,) = members(formed, "router")
    await lab.order("node2", engine={})
    assert router.generation == 1
    assert formed.membership == "restart"
    await chat(formed)
    (prefill,) = members(formed, "prefill")
    assert await metric(prefill, "vllm:mooncake_bytes_transferred_count") >= 2
    moved = [
        await metric(d, "vllm:prompt_tokens_by_source_total", source="external_kv_transfer")
        for d in members(formed, "decode")
    ]
    assert sum(moved) > 0

    await lab.asked(lambda c: c.scale("chat", {"prefill": 2}))
    grown = await lab.until("chat", serving(2, 2))
    assert members(grown, "router")[0].generation == 2
    assert grown.endpoint == formed.endpoint
    before = identities(formed, "prefill", "decode")
    assert before.items() <= identities(grown, "prefill", "decode").items()

    victim = members(grown, "prefill")[0]
    os.kill(victim.pid, signal.SIGKILL)
    healed = await lab.until(
        "chat",
        lambda g: (
            serving(2, 2)(g)
            and any(m.id == victim.id and m.generation == 2 for m in g.members)
            and members(g, "router")[0].generation > 2
        ),
    )
    kept = identities(grown, "prefill", "decode")
    kept.pop(victim.id)
    assert kept.items() <= identities(healed, "prefill", "decode").items()
    assert healed.endpoint == formed.endpoint
    for _ in range(4):
        await chat(healed)
    kinds = [e.message for e in await lab.asked(lambda c: c.events("chat")) if e.kind == "replaced"]
    assert len(kinds) == members(healed, "router")[0].generation - 1


def npus(*names: str, **more: Any) -> list[dict[str, Any]]:
    """Plans of hosts with NPUs."""
    chip = {"vendor": "ascend", "accelerator_type": "Ascend 910B3", "memory_mib": 65536}
    return [{"name": n, "accelerators": 4, **chip, **more} for n in names]


async def connectors(lab: Lab, group: GroupView) -> list[dict[str, Any]]:
    """The connector every member was told, read from its own process."""
    found = []
    for m in group.members:
        if m.role != "router":
            words = Path(f"/proc/{m.pid}/cmdline").read_bytes().decode().split("\0")
            found.append(json.loads(words[words.index("--kv-transfer-config") + 1]))
    return found


@pytest.mark.lab_plan(npus("npu1", "npu2"))
async def test_ascend_forms_with_one_connector_for_its_life(lab: Lab) -> None:
    """Prefill is wider than decode; the choice outlives what it was made from."""
    await lab.add_hosts()
    seen = {h.name: h for h in await lab.asked(lambda c: c.hosts())}
    assert [a.type for a in seen["npu1"].accelerators] == ["Ascend 910B3"] * 4
    assert {a.memory_mib for a in seen["npu2"].accelerators} == {65536}
    document = deployment(lab.model, mode="vllm-ascend-mooncake", engine="vllm-ascend")
    document["spec"]["roles"]["prefill"]["accelerators"] = 2
    await lab.asked(lambda c: c.apply(document))
    formed = await lab.until("chat", serving(1, 1))
    await chat(formed)
    (decode,) = members(formed, "decode")
    external = {"source": "external_kv_transfer"}
    assert await metric(decode, "vllm:prompt_tokens_by_source_total", **external) > 0
    (prefill,) = members(formed, "prefill")
    assert [(b.name, b.count) for b in prefill.bands] == [("kv_port", 2)]
    env = Path(f"/proc/{prefill.pid}/environ").read_bytes().decode().split("\0")
    assert f"HCCL_IF_IP={prefill.address}" in env
    assert f"ASCEND_RT_VISIBLE_DEVICES={','.join(map(str, prefill.accelerators))}" in env
    history = await lab.asked(lambda c: c.events("chat"))
    assert any(
        "; MooncakeConnectorV1, since its model's KV layout is standard" in e.message
        for e in history
        if e.kind == "formed"
    )
    told = await connectors(lab, formed)
    sizes = {"prefill": {"tp_size": 2, "dp_size": 1}, "decode": {"tp_size": 1, "dp_size": 1}}
    assert [t["kv_connector"] for t in told] == ["MooncakeConnectorV1"] * 2
    assert all(t["kv_connector_extra_config"] == sizes for t in told)

    file = lab.model / "config.json"  # a hybrid model lies there from now on
    file.write_text(json.dumps({**json.loads(file.read_text()), "linear_num_key_heads": 16}))
    await lab.asked(lambda c: c.scale("chat", {"decode": 2}))
    grown = await lab.until("chat", serving(1, 2))
    assert {t["kv_connector"] for t in await connectors(lab, grown)} == {"MooncakeConnectorV1"}

    other = deployment(
        lab.model, "hybrid", mode="vllm-ascend-mooncake", engine="vllm-ascend",
        extended_kv_cache={"kind": "in_process", "ram_ratio": 0.5},
    )  # fmt: skip
    await lab.asked(lambda c: c.apply(other))
    hybrid = await lab.until("hybrid", serving(1, 1))
    for folded in await connectors(lab, hybrid):
        first, second = folded["kv_connector_extra_config"]["connectors"]
        assert first["kv_connector"] == "MooncakeHybridConnector"
        assert second == {
            "kv_connector": "SimpleCPUOffloadConnector", "kv_role": "kv_both",
            "kv_connector_extra_config": {"cpu_bytes_to_use_per_rank": 65536 * 2**20 // 2},
        }  # fmt: skip
    await chat(hybrid)


@pytest.mark.lab_plan(npus("npu1"))
async def test_ascend_takes_the_connector_for_all_layouts_where_nothing_is_known(lab: Lab) -> None:
    """A hub id without a copy on the host: the choice is the mode's default, and stays."""
    await lab.add_hosts()
    document = deployment(lab.model, mode="vllm-ascend-mooncake", engine="vllm-ascend")
    document["spec"]["model"] = "Qwen/Qwen3-8B"
    await lab.asked(lambda c: c.apply(document))
    formed = await lab.until("chat", serving(1, 1))
    assert {t["kv_connector"] for t in await connectors(lab, formed)} == {"MooncakeHybridConnector"}
    (event,) = [e for e in await lab.asked(lambda c: c.events("chat")) if e.kind == "formed"]
    assert event.message.endswith("could not be read, and this one does for all")


@pytest.mark.lab_plan(npus("npu1", hccn=False))
async def test_ascend_needs_the_file_that_names_its_network(lab: Lab) -> None:
    await lab.add_hosts()
    document = deployment(lab.model, mode="vllm-ascend-mooncake", engine="vllm-ascend")
    await lab.asked(lambda c: c.apply(document))
    waiting = await lab.until("chat", lambda g: any(m.id == "placement" for m in g.marks))
    (mark,) = [m for m in waiting.marks if m.id == "placement"]
    assert "npu1 has no readable /etc/hccn.conf" in mark.text
    assert waiting.members == ()
    (lab.root / "sandbox/hosts/npu1/etc").mkdir()
    (lab.root / "sandbox/hosts/npu1/etc/hccn.conf").write_text("address_0=192.168.10.20\n")
    await lab.until("chat", serving(1, 1))


@pytest.mark.parametrize("mode", ["sglang-mooncake", "sglang-nixl"])
async def test_sglang_forms_scales_and_heals(lab: Lab, mode: str) -> None:
    """Members join and leave the real sglang-router by their ids; it is never started again."""
    await lab.add_hosts()
    document = deployment(
        lab.model, mode=mode, engine="sglang", parameters=["--context-length", "8192"]
    )
    await lab.asked(lambda c: c.apply(document))
    formed = await lab.until("chat", serving(1, 1))
    (router,) = members(formed, "router")
    await chat(formed)
    assert await moved(formed) > 0

    await lab.asked(lambda c: c.scale("chat", {"prefill": 2, "decode": 2}))
    grown = await lab.until("chat", serving(2, 2))
    await lab.asked(lambda c: c.scale("chat", {"prefill": 1}))
    fewer = await lab.until("chat", serving(1, 2))
    victim = members(fewer, "decode")[0]
    os.kill(victim.pid, signal.SIGKILL)
    healed = await lab.until(
        "chat",
        lambda g: (
            serving(1, 2)(g) and any(m.id == victim.id and m.generation == 2 for m in g.members)
        ),
    )
    assert (
        identities(grown, "router") == identities(healed, "router") == {router.id: (router.pid, 1)}
    )
    for _ in range(3):
        await chat(healed)


async def moved(group: GroupView) -> float:
    """Transfers that the decodes of an SGLang group counted."""
    counts = [
        await metric(m, "sglang:kv_transfer_bootstrap_ms_count") for m in members(group, "decode")
    ]
    return sum(counts)


DISPATCH = """#!/bin/sh
role=$1 host=$2 port=$3 model=$4
shift 4
[ "$role" = "$PDTUI_ROLE" ] || exit 3
if [ "$role" = router ]; then
  flag=--prefill args=
  for word in "$@"; do
    if [ "$word" = and ]; then flag=--decode; else args="$args $flag $word"; fi
  done
  exec vllm-router --vllm-pd-disaggregation --kv-connector nixl --host "$host" --port "$port" \\
    --prometheus-host "$host" --prometheus-port "$((port + 31))" $args
fi
kind=kv_consumer
[ "$role" = decode ] || kind=kv_producer
export VLLM_NIXL_SIDE_CHANNEL_HOST="$host" VLLM_NIXL_SIDE_CHANNEL_PORT="$((port + 31))"
exec vllm serve "$model" --host "$host" --port "$port" --served-model-name m \\
  --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"'$kind'"}'
"""


def quiet(prefill: int, decode: int, *marks: str) -> Callable[[GroupView], bool]:
    """So many members serve, the endpoint stands, and nothing else is marked."""

    def done(g: GroupView) -> bool:
        counts = (g.roles["prefill"].ready, g.roles["decode"].ready)
        all_ready = all(m.state == "ready" for m in g.members)
        named = [m.id for m in g.marks if m.level != "info"]
        return (
            (counts, named) == ((prefill, decode), list(marks))
            and all_ready
            and g.status == "Running"
        )

    return done


async def test_custom_runs_one_command_by_role_and_asks_for_hands(lab: Lab) -> None:
    """Engines and the real router from one script; a change of members is the operator's to do."""
    await lab.add_hosts()
    script = lab.root / "dispatch.sh"
    script.write_text(DISPATCH)
    script.chmod(0o755)
    command = [str(script), "{{role}}", "{{host_ip}}", "{{port}}", "{{model_path}}",
               "{{prefill.urls}}", "and", "{{decode.urls}}"]  # fmt: skip
    document = deployment(
        lab.model, mode="custom", engine="custom", parameters=[], run_command=command,
        served_model_name="m", env={"PDTUI_HEALTH_PATH": "/health"},
    )  # fmt: skip
    document["spec"]["roles"]["router"] = {"env": {"PDTUI_HEALTH_PATH": "/health"}}
    await lab.asked(lambda c: c.apply(document))
    formed = await lab.until("chat", quiet(1, 1))
    assert formed.membership == "manual"
    _, _, tokens = await chat(formed)
    (decode,) = members(formed, "decode")
    external = {"source": "external_kv_transfer"}
    assert await metric(decode, "vllm:prompt_tokens_by_source_total", **external) == tokens

    await lab.asked(lambda c: c.scale("chat", {"prefill": 2}))
    grown = await lab.until("chat", quiet(2, 1, "membership"))
    (added,) = set(identities(grown, "prefill")) - set(identities(formed, "prefill"))
    newcomer = next(m for m in grown.members if m.id == added)
    (mark,) = [m for m in grown.marks if m.id == "membership"]
    url = f"http://{newcomer.address}:{newcomer.port}"
    assert mark.text == f"The router is kept up by hand. Tell it: add prefill {url}."
    assert identities(grown, "router") == identities(formed, "router")

    await lab.asked(lambda c: c.told("chat"))
    done = await lab.until("chat", quiet(2, 1))
    assert identities(done, "router") == identities(formed, "router")

    (router,) = members(grown, "router")
    await lab.asked(lambda c: c.delete_instance("chat", router.id))
    told = await lab.until("chat", lambda g: quiet(2, 1)(g) and not identities(g, "router").keys()
                           & {router.id})  # fmt: skip
    assert told.endpoint == grown.endpoint
    await chat(told)


async def test_a_cache_service_is_kept_as_it_was_formed_with(lab: Lab) -> None:
    """Members attach on hosts that reach it; a changed service waits for the restart."""
    await lab.add_hosts()
    service = {
        "kind": "CacheService", "metadata": {"name": "store"},
        "spec": {
            "provider": "mooncake", "endpoint": "10.0.0.9:50051",
            "settings": {"extra": {"lookup_rpc_port": 0}, "config_path": "/etc/store.json"},
            "hosts": {"names": ["node2", "node3"]},
        },
    }  # fmt: skip
    await lab.asked(lambda c: c.apply_cache(service))
    document = deployment(
        lab.model, mode="vllm-mooncake", extended_kv_cache={"kind": "service", "service": "store"}
    )
    await lab.asked(lambda c: c.apply(document))
    formed = await lab.until("chat", serving(1, 1))
    assert {m.host for m in formed.members if m.role != "router"} <= {"node2", "node3"}
    for told in await connectors(lab, formed):
        assert told["kv_load_failure_policy"] == "fail"
        child = told["kv_connector_extra_config"]["connectors"][1]
        assert child["kv_connector"] == "MooncakeStoreConnector"
        assert child["kv_connector_extra_config"] == {"lookup_rpc_port": 0}
    (decode,) = members(formed, "decode")
    environ = Path(f"/proc/{decode.pid}/environ").read_bytes().decode().split("\0")
    assert "MOONCAKE_CONFIG_PATH=/etc/store.json" in environ
    await chat(formed)

    service["spec"]["settings"]["extra"] = {"lookup_rpc_port": 7}  # type: ignore[index]
    await lab.asked(lambda c: c.apply_cache(service))
    changed = await lab.asked(lambda c: c.group("chat"))
    assert changed.config_changed
    assert changed.changes == ("services.store.settings.extra.lookup_rpc_port: 0 -> 7",)
    os.kill(decode.pid, signal.SIGKILL)
    healed = await lab.until(
        "chat",
        lambda g: serving(1, 1)(g) and members(g, "decode")[0].generation == 2,
    )
    rpc = [
        t["kv_connector_extra_config"]["connectors"][1]["kv_connector_extra_config"]
        for t in await connectors(lab, healed)
    ]
    assert rpc == [{"lookup_rpc_port": 0}] * 2
    await lab.asked(lambda c: c.restart("chat"))
    anew = await lab.until("chat", lambda g: serving(1, 1)(g) and not g.config_changed)
    rpc = [
        t["kv_connector_extra_config"]["connectors"][1]["kv_connector_extra_config"]
        for t in await connectors(lab, anew)
    ]
    assert rpc == [{"lookup_rpc_port": 7}] * 2
