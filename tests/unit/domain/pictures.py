"""Groups, instances and pictures in few words, for tables."""

from __future__ import annotations

from typing import Any

from backend.domain.decide import Picture
from backend.domain.deployment import Deployment
from backend.domain.group import Endpoint, Formed, Group, Instance
from backend.domain.instance import Band, ProcessStatus
from backend.domain.peers import Registry

NOW = 1000.0
RUNNING = ("starting", "ready", "unhealthy", "draining", "stopping")


def document(counts: tuple[int, int] | None = (1, 1), **spec: Any) -> Deployment:
    """A PD deployment of these counts, or a plain one for None."""
    body: dict[str, Any] = {"model": "/m", "engine": "vllm"}
    if counts is not None:
        body["disaggregation"] = {"mode": "vllm-nixl"}
        body["roles"] = {"prefill": {"replicas": counts[0]}, "decode": {"replicas": counts[1]}}
    return Deployment.model_validate({"metadata": {"name": "g"}, "spec": body | spec})


def group(
    counts: tuple[int, int] | None = (1, 1),
    *,
    formed: str | None = "r1",
    revision: str = "r1",
    applied: dict[str, int] | None = None,
    spec: dict[str, Any] | None = None,
    **more: Any,
) -> Group:
    """A group, formed from revision r1 unless said otherwise; `formed=None`: not yet formed."""
    doc = document(counts, **(spec or {}))
    if applied is None and counts is None:
        applied = {"replica": doc.spec.replicas or 1}
    elif applied is None and counts is not None:
        applied = {"prefill": counts[0], "decode": counts[1]}
    ran = None if formed is None else Formed(revision=formed, document=doc)
    about: dict[str, Any] = {"document": doc, "revision": revision, "formed": ran}
    return Group(name="g", version=1, applied=applied or {}, **about, **more)


def one(key: str, state: str = "ready", **more: Any) -> Instance:
    """An instance: `p1`, `d2`, `r`outer or `x1` (plain), each on its own host `h-<key>`."""
    role = {"p": "prefill", "d": "decode", "r": "router", "x": "replica"}[key[0]]
    about: dict[str, Any] = {
        "id": key, "group": "g", "role": role, "host": f"h-{key}", "revision": "r1",
        "state": state, "address": f"10.0.0.{key[1:] or 9}", "since": NOW - 100,
        "bands": (Band(name="http", base=40000 if role != "decode" else 40100),),
    }  # fmt: skip
    if state in RUNNING:
        about["process"] = ProcessStatus(instance=key, state="running", generation=1, pid=7)
    if state == "draining":
        about["draining_since"] = NOW - 5
    return Instance.model_validate(about | more)


def listed(*members: Instance, generation: int = 1) -> Registry:
    """A registry that lists exactly these."""
    return Registry({m.url: m.role for m in members}, generation)


def endpoint(router: str = "r", generation: int = 1) -> Endpoint:
    """An endpoint through that start of the router."""
    return Endpoint(url="http://10.0.0.9:40000", router=router, generation=generation)


def picture(g: Group, *instances: Instance, membership: str = "dynamic", **more: Any) -> Picture:
    """What `decide` looks at, at the moment NOW."""
    return Picture(g, instances, membership, now=more.pop("now", NOW), **more)  # type: ignore[arg-type]
