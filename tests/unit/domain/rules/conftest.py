"""Documents and what is known beside them, for the rules' tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from backend.adapters.recipes import load_catalogue
from backend.domain.cache import CacheService
from backend.domain.deployment import Deployment
from backend.domain.errors import Problem
from backend.domain.host import Accelerator, Host, HostFacts, Interface
from backend.domain.mode import Catalogue
from backend.domain.rules.known import Known, ModelSeen
from backend.domain.rules.table import judge

MODEL = "/data/models/m"
ENGINES = {"sglang-mooncake": "sglang", "sglang-nixl": "sglang",
           "vllm-ascend-mooncake": "vllm-ascend"}  # fmt: skip
ROUTER = {"run_command": ["router"]}


def facts_of(name: str, about: Mapping[str, Any]) -> HostFacts:
    """A host as it was looked at: `accelerators`, `vendor`, `interfaces`, `ephemeral`."""
    vendor = about.get("vendor", "nvidia")
    names = about.get("interfaces", ["eth0"])
    return HostFacts(
        boot_id=f"boot-{name}",
        address="10.0.0.1",
        accelerators=tuple(
            Accelerator(index=i, uuid=f"{name}-{i}", vendor=vendor, type="X")
            for i in range(about.get("accelerators", 8))
        ),
        interfaces=tuple(
            Interface(name=n, addresses=(f"10.0.{i}.1",)) for i, n in enumerate(names)
        ),
        ephemeral=tuple(about.get("ephemeral", (50000, 60999))),
        reserved=tuple(tuple(r) for r in about.get("reserved", ())),
    )


def seen_of(about: Mapping[str, Any]) -> ModelSeen:
    """The model as a host has it: `missing`, `config`, `weights`."""
    if about.get("missing"):
        return ModelSeen("missing")
    config = about.get("config")
    digest = repr(sorted(config.items(), key=str)) if config is not None else ""
    return ModelSeen("found", config, digest, about.get("weights", ""))


def known_of(catalogue: Catalogue, about: Mapping[str, Any], model: str = MODEL) -> Known:
    """What is known beside a document.

    `config` alone: a model that was read, and nothing of hosts; `configs`: several, by model.
    `hosts` by name: as `facts_of` and `seen_of` take them, with `ports`, `taken`, `runtime`,
    `kv_transfer_ifname`, `unseen`.
    """
    hosts: Mapping[str, Any] = about.get("hosts", {})
    entries = {
        n: Host(name=n, address=n, runtime=h.get("runtime", "process"),
                labels=h.get("labels", {}), kv_transfer_ifname=h.get("kv_transfer_ifname"))
        for n, h in hosts.items()
    }  # fmt: skip
    models = {
        (n, model): seen_of(h) for n, h in hosts.items() if {"config", "missing", "weights"} & {*h}
    }
    configs = {model: about["config"]} if "config" in about else about.get("configs", {})
    if configs:
        entries["reader"] = Host(name="reader", address="reader")
        models |= {("reader", m): seen_of({"config": c}) for m, c in configs.items()}
    seen = {n: facts_of(n, h) for n, h in hosts.items() if not h.get("unseen")}
    services = about.get("services")
    versions = about.get("versions", {})
    return Known(
        catalogue=catalogue,
        hosts=frozenset(hosts),
        widths={n: len(f.accelerators) for n, f in seen.items()},
        entries=entries,
        facts=seen,
        port_ranges={n: tuple(h["ports"]) for n, h in hosts.items() if "ports" in h},
        kv_transfer_ifname=about.get("kv_transfer_ifname"),
        taken={n: frozenset(h["taken"]) for n, h in hosts.items() if "taken" in h},
        models=models,
        versions={(n, "vllm"): v for n, v in versions.items()},
        services=None
        if services is None
        else {n: CacheService(name=n, provider=p) for n, p in services.items()},
        inventory=about.get("inventory", bool(hosts)),
    )


class Court:
    """Judges documents on the built-in catalogue."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue

    def document(self, mode: str | None = "vllm-nixl", **spec: Any) -> Deployment:
        """A document of `mode` with these fields."""
        body: dict[str, Any] = {"model": MODEL, "engine": ENGINES.get(mode or "", "vllm")}
        if mode is not None:
            body["disaggregation"] = {"mode": mode}
        if mode == "custom":
            body["roles"] = {"router": ROUTER}
        for key, value in spec.items():
            inner = body.get(key)
            body[key] = {**inner, **value} if isinstance(inner, dict) and value else value
        return Deployment.model_validate({"metadata": {"name": "chat"}, "spec": body})

    def judge(
        self, document: Deployment, about: Mapping[str, Any] | None = None, *, every: bool = False
    ) -> tuple[Problem, ...]:
        """Every finding about it."""
        known = known_of(self.catalogue, about or {}, document.spec.model)
        return judge(document, known, every=every)

    def pair(
        self,
        prefill: Mapping[str, Any] | None = None,
        decode: Mapping[str, Any] | None = None,
        *,
        mode: str = "vllm-nixl",
        about: Mapping[str, Any] | None = None,
        **spec: Any,
    ) -> tuple[Problem, ...]:
        """Every finding about a document with these two roles."""
        roles = {"prefill": dict(prefill or {}), "decode": dict(decode or {})}
        if mode == "custom":
            roles["router"] = dict(ROUTER)
        return self.judge(self.document(mode, roles=roles, **spec), about)


@pytest.fixture(scope="session")
def court() -> Court:
    """The rules on the built-in catalogue."""
    return Court(load_catalogue())


def brief(found: tuple[Problem, ...], rule: str = "") -> list[str]:
    """`verdict rule case` of each finding, or `verdict case` of one rule's."""
    if rule:
        return [f"{p.verdict} {p.case}".strip() for p in found if p.rule == rule]
    return [f"{p.verdict} {p.rule} {p.case}".strip() for p in found]
