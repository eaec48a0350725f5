"""Documents, places and peers for the catalogue's tests."""

from __future__ import annotations

from typing import Any

import pytest

from backend.adapters.recipes import load_catalogue
from backend.domain.bands import demand, resolve
from backend.domain.cache import CacheService
from backend.domain.deployment import Deployment
from backend.domain.host import Runtime
from backend.domain.instance import Band, LaunchSpec
from backend.domain.mode import Catalogue
from backend.domain.render import Place, Siblings, render_member, render_router
from backend.domain.worker_calls import Peer

ENGINE_OF = {
    "vllm-nixl": "vllm",
    "vllm-mooncake": "vllm",
    "sglang-mooncake": "sglang",
    "sglang-nixl": "sglang",
    "vllm-ascend-mooncake": "vllm-ascend",
    "custom": "custom",
}
TYPES = {"nvidia": "NVIDIA H100 80GB HBM3", "ascend": "910B3"}


class Kit:
    """The built-in catalogue, and makers of what is rendered with it."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self.peers = (
            Peer("p1", "prefill", "10.0.0.1", 40000, (Band(name="bootstrap", base=40001),)),
            Peer("p2", "prefill", "10.0.0.2", 40000, (Band(name="bootstrap", base=40001),)),
            Peer("d1", "decode", "10.0.0.3", 40000),
        )

    def document(self, mode: str | None = "vllm-nixl", **spec: Any) -> Deployment:
        """A 2P1D document of `mode`, or a plain one for None; `spec` goes over its fields."""
        body: dict[str, Any] = {
            "model": "/data/models/Qwen3-32B",
            "engine": ENGINE_OF[mode] if mode else "vllm",
            "accelerators": 2,
        }
        if mode is not None:
            body["disaggregation"] = {"mode": mode}
            body["roles"] = {"prefill": {"replicas": 2}, "decode": {"replicas": 1}}
        return Deployment.model_validate({"metadata": {"name": "qwen3-32b"}, "spec": body | spec})

    def place(
        self,
        document: Deployment,
        role: str,
        *,
        base: int = 40000,
        runtime: Runtime = "process",
        net_device: str | None = "eth0",
        **more: Any,
    ) -> Place:
        """A place for `role`: its bands packed from `base` on, its accelerators from 0 on."""
        mode = self.catalogue.mode_of(document.spec)
        bands = []
        for wanted in demand(mode, self.catalogue, document.spec, role):
            bands.append(Band(name=wanted.name, base=base, count=wanted.count))
            base += wanted.count
        if role != "router":
            width = resolve(document.spec, role).width
            vendor = (mode.vendor if mode else None) or "nvidia"
            more.setdefault("accelerators", tuple(range(width)))
            more.setdefault("accelerator_uuids", tuple(f"GPU-{i}" for i in range(width)))
            more.setdefault("accelerator_type", TYPES[vendor])
            more.setdefault("vendor", vendor)
        return Place(
            host="gpu-1",
            address="10.0.0.1",
            bands=tuple(bands),
            instance=f"qwen3-32b-{role}-1",
            runtime=runtime,
            net_device=net_device,
            instance_dir=f"/home/u/.pdtui/instances/qwen3-32b-{role}-1",
            **more,
        )

    def member(
        self,
        document: Deployment,
        role: str = "prefill",
        *,
        siblings: Siblings | None = None,
        service: CacheService | None = None,
        **place: Any,
    ) -> LaunchSpec:
        """The launch of one member; `place` goes to `Kit.place`."""
        mode = self.catalogue.mode_of(document.spec)
        where = self.place(document, role, **place)
        return render_member(mode, self.catalogue, document, role, where, siblings, service=service)

    def router(
        self, document: Deployment, *, peers: tuple[Peer, ...] | None = None, **place: Any
    ) -> LaunchSpec:
        """The launch of the router, told of `peers` or of the kit's own."""
        mode = self.catalogue.mode_of(document.spec)
        where = self.place(document, "router", **place)
        return render_router(
            mode, self.catalogue, document, where, self.peers if peers is None else peers
        )


@pytest.fixture(scope="session")
def kit() -> Kit:
    """The makers, on the built-in catalogue."""
    return Kit(load_catalogue())
