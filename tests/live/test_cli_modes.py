"""The commands on cache services and on which modes fit."""

from __future__ import annotations

import json

import pytest
import yaml

from tests.live.lab import Lab, deployment
from tests.live.test_cli import pdtui

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


async def test_cache_services_and_mode_choices_by_commands(lab: Lab) -> None:
    await lab.add_hosts()
    service = {
        "kind": "CacheService", "metadata": {"name": "store"},
        "spec": {"provider": "mooncake", "endpoint": "10.0.0.9:50051"},
    }  # fmt: skip
    file = lab.root / "store.yaml"
    file.write_text(yaml.safe_dump(service))
    saved = await pdtui(lab, "caches", "apply", "-f", str(file))
    assert (saved.code, saved.out) == (0, "CacheService store is saved\n")
    cache = {"kind": "service", "service": "store"}
    draft = deployment(lab.model, mode="vllm-mooncake", extended_kv_cache=cache, paused=True)
    draft["spec"]["engine_version"] = "0.27.0"
    document = lab.root / "chat.json"
    document.write_text(json.dumps(draft))
    applied = await pdtui(lab, "apply", "-f", str(document), "--yes")
    assert applied.code == 0, applied.err

    listed = await pdtui(lab, "caches", "list")
    assert listed.out.splitlines()[1].split() == ["store", "mooncake", "10.0.0.9:50051", "chat"]
    fits = await pdtui(lab, "caches", "list", "--mode", "vllm-nixl", "--role", "decode")
    assert "vllm-nixl cannot use mooncake; it takes: lmcache" in fits.out
    kept = await pdtui(lab, "caches", "delete", "store")
    assert kept.code == 3, kept.err
    assert "cache.in_use" in kept.err
    wrong = await pdtui(lab, "caches", "list", "--role", "decode")
    assert wrong.code == 2

    modes = await pdtui(lab, "modes", "--for", str(document))
    rows = {line.split()[0]: line for line in modes.out.splitlines()[1:]}
    assert "recommended" in rows["vllm-nixl"]
    assert "it is for sglang, not vllm" in rows["sglang-nixl"]
    assert "it is for vllm-ascend, not vllm" in rows["vllm-ascend-mooncake"]
    assert "0.27.0 is outside >=0.27.1" in modes.err
    told = await pdtui(lab, "modes", "--engine", "vllm-ascend", "--vendor", "ascend", "--json")
    assert [c["mode"] for c in told.json if c["recommended"]] == ["vllm-ascend-mooncake"]
