"""Every mode, cache and size renders what was once read and found right.

After a wanted change run with GOLDEN=write and read the difference.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from backend.domain.cache import CacheService
from backend.domain.errors import Refused
from backend.domain.instance import LaunchSpec
from backend.domain.mode import Catalogue
from backend.domain.render import render_member, render_router

FOLDER = Path(__file__).parents[2] / "data" / "golden"
MODES = (
    "vllm-nixl",
    "vllm-mooncake",
    "sglang-mooncake",
    "sglang-nixl",
    "vllm-ascend-mooncake",
    "custom",
)
SIZES: dict[str, dict[str, Any]] = {
    "one accelerator": {"accelerators": 1},
    "two accelerators": {"accelerators": 2},
    "data parallel": {"accelerators": 8, "parameters": ["-dp 4", "-tp 2"]},
}
SGLANG_RANKS = ["--dp-size 4", "--tp-size 2"]
IN_PROCESS = {"kind": "in_process", "ram_size_gib": 40, "ram_ratio": 1.5, "chunk_size": 64}
PROVIDER = {"sglang-mooncake": "lmcache", "sglang-nixl": "lmcache", "vllm-nixl": "lmcache"}


def cases(mode: str) -> list[tuple[str, dict[str, Any], CacheService | None]]:
    """Title, document fields and cache service of every golden case of `mode`."""
    found: list[tuple[str, dict[str, Any], CacheService | None]] = []
    if mode == "custom":
        command = ["/opt/serve", "--role={{role}}", "--port", "{{port}}", "{{prefill.urls}}"]
        return [("own command", {"run_command": command}, None)]
    service = CacheService(
        name="shared", provider=PROVIDER.get(mode, "mooncake"), host="10.0.0.5", port=40021
    )
    for size, fields in SIZES.items():
        if mode.startswith("sglang") and "parameters" in fields:
            fields = fields | {"parameters": SGLANG_RANKS}
        found.append((f"{size}, no cache", fields, None))
        found.append((f"{size}, in process", fields | {"extended_kv_cache": IN_PROCESS}, None))
        shared = {"kind": "service", "service": "shared"}
        roles: dict[str, Any] = {"prefill": {"replicas": 2}, "decode": {}}
        if mode == "vllm-nixl":
            roles["decode"] = {"extended_kv_cache": {"kind": "none"}}
        found.append(
            (f"{size}, service", fields | {"extended_kv_cache": shared, "roles": roles}, service)
        )
    return found


def show(launch: LaunchSpec) -> list[str]:
    """A launch as lines to be read: a flag with its value on one line, JSON as it is passed."""
    lines: list[str] = []
    for token in launch.argv:
        if lines and not token.startswith("-") and lines[-1].startswith("  --"):
            lines[-1] += " " + token
        else:
            lines.append("  " + token)
    lines += [f"  {k}={v}" for k, v in launch.env.items()]
    for file in launch.files:
        lines += [f"  file {file.name}:", *(f"    {row}" for row in file.content.splitlines())]
    lines += [f"  mount {m.source} on {m.target}" for m in launch.mounts]
    ports = ", ".join(f"{b.name} {b.base}+{b.count}" for b in launch.bands)
    return [*lines, f"  ports: {ports}; health {launch.health_path}"]


def rendering(kit: Any, mode_name: str) -> str:
    """The golden text of one mode."""
    catalogue: Catalogue = kit.catalogue
    lines = [f"# {mode_name}"]
    for title, fields, service in cases(mode_name):
        document = kit.document(mode_name, **fields)
        mode = catalogue.mode(mode_name)
        lines += ["", f"## {title}"]
        for role in ("prefill", "decode"):
            place = kit.place(document, role, base=40010 if role == "prefill" else 40030)
            launch = render_member(mode, catalogue, document, role, place, service=service)
            lines += [f"{role}:", *show(launch)]
    document = kit.document(mode_name, **cases(mode_name)[0][1])
    router = render_router(
        catalogue.mode(mode_name), catalogue, document, kit.place(document, "router"), kit.peers
    )
    lines += ["", "## router", *show(router)]
    return "\n".join([*lines, ""])


@pytest.mark.parametrize("mode", MODES)
def test_golden(kit: Any, mode: str) -> None:
    path = FOLDER / f"{mode}.txt"
    text = rendering(kit, mode)
    if os.environ.get("GOLDEN") == "write":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def pd(mode: str, role: str, variant: str = "MooncakeHybridConnector") -> dict[str, Any]:
    """The transfer connector alone, as the engines document it."""
    kv_role = "kv_producer" if role == "prefill" else "kv_consumer"
    if mode == "vllm-ascend-mooncake":
        sizes = {"prefill": {"tp_size": 4, "dp_size": 1}, "decode": {"tp_size": 1, "dp_size": 1}}
        return {
            "kv_connector": variant,
            "kv_role": kv_role,
            "kv_port": 40011 if role == "prefill" else 40031,
            "kv_connector_extra_config": sizes,
        }
    name = "NixlConnector" if mode == "vllm-nixl" else "MooncakeConnector"
    found: dict[str, Any] = {
        "kv_connector": name, "kv_role": kv_role, "kv_load_failure_policy": "fail",
    }  # fmt: skip
    if (mode, role) == ("vllm-nixl", "prefill"):
        found["kv_connector_extra_config"] = {"kv_lease_duration": 60}
    return found


LMCACHE = {"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both"}
OFFLOAD = {
    "kv_connector": "SimpleCPUOffloadConnector",
    "kv_role": "kv_both",
    "kv_connector_extra_config": {"cpu_bytes_to_use_per_rank": 20 * 2**30},
}
LMCACHE_MP = {
    "kv_connector": "LMCacheMPConnector",
    "kv_role": "kv_both",
    "kv_connector_extra_config": {
        "lmcache.mp.host": "tcp://10.0.0.5",
        "lmcache.mp.port": 40021,
        "lmcache.mp.mp_transfer_mode": "auto",
    },
}


def store(name: str, kv_role: str) -> dict[str, Any]:
    return {"kv_connector": name, "kv_role": kv_role, "kv_connector_extra_config": {}}


CHILDREN: dict[tuple[str, str, str], dict[str, Any] | None] = {
    ("vllm-nixl", "none", "prefill"): None,
    ("vllm-nixl", "none", "decode"): None,
    ("vllm-nixl", "in_process", "prefill"): LMCACHE,
    ("vllm-nixl", "in_process", "decode"): LMCACHE,
    ("vllm-nixl", "service", "prefill"): LMCACHE_MP,
    ("vllm-mooncake", "none", "prefill"): None,
    ("vllm-mooncake", "none", "decode"): None,
    ("vllm-mooncake", "in_process", "prefill"): LMCACHE,
    ("vllm-mooncake", "in_process", "decode"): LMCACHE,
    ("vllm-mooncake", "service", "prefill"): store("MooncakeStoreConnector", "kv_both"),
    ("vllm-mooncake", "service", "decode"): store("MooncakeStoreConnector", "kv_consumer"),
    ("vllm-ascend-mooncake", "none", "prefill"): None,
    ("vllm-ascend-mooncake", "none", "decode"): None,
    ("vllm-ascend-mooncake", "in_process", "prefill"): OFFLOAD,
    ("vllm-ascend-mooncake", "in_process", "decode"): OFFLOAD,
    ("vllm-ascend-mooncake", "service", "prefill"): store("AscendStoreConnector", "kv_producer"),
    ("vllm-ascend-mooncake", "service", "decode"): store("AscendStoreConnector", "kv_consumer"),
}
"""Every cell of the table mode x cache x role: what joins the transfer."""


@pytest.mark.parametrize(("mode", "cache", "role"), CHILDREN)
def test_connector_of_every_cell(kit: Any, mode: str, cache: str, role: str) -> None:
    child = CHILDREN[mode, cache, role]
    widths = {"prefill": 4, "decode": 1}
    own: dict[str, Any] = {"kind": cache, "service": "shared" if cache == "service" else None}
    if cache == "in_process":
        own["ram_size_gib"] = 20 * widths[role]
    roles = {name: {"accelerators": width} for name, width in widths.items()}
    roles[role]["extended_kv_cache"] = own  # type: ignore[assignment]
    document = kit.document(mode, roles=roles)
    provider = "lmcache" if mode == "vllm-nixl" else "mooncake"
    service = CacheService(name="shared", provider=provider, host="10.0.0.5", port=40021)
    place = kit.place(document, role, base=40010 if role == "prefill" else 40030)
    launch = render_member(
        kit.catalogue.mode(mode), kit.catalogue, document, role, place,
        service=service if cache == "service" else None,
    )  # fmt: skip
    assert launch.argv.count("--kv-transfer-config") == 1
    found = json.loads(launch.argv[launch.argv.index("--kv-transfer-config") + 1])
    transfer = pd(mode, role)
    if child is None:
        assert found == transfer
        return
    expected = {
        "kv_connector": "MultiConnector",
        "kv_role": transfer["kv_role"],
        "kv_connector_extra_config": {"connectors": [transfer, child]},
    }
    if "kv_load_failure_policy" in transfer:
        expected["kv_load_failure_policy"] = "fail"
    assert found == expected
    assert [c["kv_connector"] for c in found["kv_connector_extra_config"]["connectors"]] == [
        transfer["kv_connector"], child["kv_connector"],
    ]  # fmt: skip


def test_shared_lmcache_is_refused_on_decode(kit: Any) -> None:
    document = kit.document(extended_kv_cache={"kind": "service", "service": "shared"})
    service = CacheService(name="shared", provider="lmcache", host="h", port=1)
    with pytest.raises(Refused) as caught:
        render_member(
            kit.catalogue.mode("vllm-nixl"), kit.catalogue, document, "decode",
            kit.place(document, "decode"), service=service,
        )  # fmt: skip
    problem = caught.value.problem
    assert problem.rule == "cache.role"
    assert problem.path == "spec.extended_kv_cache"
    assert "53049" in problem.message
    assert "roles.decode.extended_kv_cache: {kind: none}" in problem.remedy


@pytest.mark.parametrize(
    ("mode", "cache", "provider", "rule"),
    [
        ("vllm-nixl", {"kind": "service", "service": "s"}, "mooncake", "cache.provider"),
        ("vllm-mooncake", {"kind": "service", "service": "s"}, "lmcache", "cache.provider"),
        ("vllm-nixl", {"kind": "service", "service": "s"}, None, "cache.service"),
        ("custom", {"kind": "in_process"}, None, "cache.mode"),
    ],
)
def test_refused_caches(
    kit: Any, mode: str, cache: dict[str, Any], provider: str | None, rule: str
) -> None:
    document = kit.document(mode, extended_kv_cache=cache, run_command=["serve"])
    service = CacheService(name="s", provider=provider, host="h", port=1) if provider else None
    with pytest.raises(Refused) as caught:
        render_member(
            kit.catalogue.mode(mode), kit.catalogue, document, "prefill",
            kit.place(document, "prefill"), service=service,
        )  # fmt: skip
    assert caught.value.problem.rule == rule
