"""Fixed pictures of a small site: four hosts and five groups in every kind of state."""

from __future__ import annotations

from typing import Any

from backend.domain.instance import Band
from backend.domain.telling import Said, plainly, said, told
from backend.domain.views import (
    AcceleratorView,
    EndpointView,
    EventView,
    GroupView,
    HostView,
    Mark,
    MemberView,
    PhaseView,
    RoleCount,
    Snapshot,
)

NOW = 1_780_000_000.0
"""The clock of every test: epoch seconds."""

IN_USE = "ended with exit code 1: OSError: [Errno 98] Address already in use"
"""Why a member ended."""


def tells(what: Said) -> dict[str, Any]:
    """The fields of a mark that tells this."""
    return {"text": told(what, "en"), "said": (what,)}


def member(name: str, role: str, host: str, **other: Any) -> MemberView:
    """A ready member unless told otherwise."""
    at = {"prefill": 40000, "decode": 40010, "router": 40020, "replica": 40030}[role]
    values: dict[str, Any] = {
        "id": name,
        "role": role,
        "host": host,
        "state": "ready",
        "generation": 1,
        "revision": "a41f09c2",
        "address": "10.20.0.11",
        "port": at,
        "pid": 23811,
        "since": NOW - 4_980,
        "accelerators": () if role == "router" else (0, 1),
        "accelerator_type": "" if role == "router" else "L40S",
        "bands": (Band(name="http", base=at), Band(name="side", base=at + 1, count=2)),
        "in_router": None if role == "router" else True,
    }
    return MemberView(**{**values, **other})


def counts(prefill: RoleCount, decode: RoleCount) -> dict[str, RoleCount]:
    """A PD group's roles."""
    return {
        "prefill": prefill,
        "decode": decode,
        "router": RoleCount(wanted=1, ready=1, present=1),
    }


def count(wanted: int, ready: int | None = None, **other: Any) -> RoleCount:
    """A role with everything ready unless told otherwise."""
    return RoleCount(
        wanted=wanted, **{"ready": wanted if ready is None else ready, "present": wanted, **other}
    )


def endpoint(name: str, address: str = "10.20.0.11:40020") -> EndpointView:
    """A registered endpoint with its request."""
    body = f'{{"model":"{name}","messages":[{{"role":"user","content":"Hello"}}]}}'
    return EndpointView(
        url=f"http://{address}/v1",
        model=name,
        curl=f"curl http://{address}/v1/chat/completions "
        f"-H 'Content-Type: application/json' -d '{body}'",
    )


def running(name: str = "qwen3-32b", **other: Any) -> GroupView:
    """A 2P1D group that serves."""
    values: dict[str, Any] = {
        "name": name,
        "mode": "vllm-nixl",
        "engine": "vllm",
        "model": "/data/models/Qwen3-32B",
        "version": 3,
        "revision": "a41f09c2d7",
        "status": "Running",
        "ratio": "2:1",
        "currently": "",
        "membership": "dynamic",
        "roles": counts(count(2), count(1)),
        "members": (
            member(f"{name}-p0", "prefill", "gpu-1"),
            member(f"{name}-p1", "prefill", "gpu-2", pid=9920, address="10.20.0.12"),
            member(f"{name}-d0", "decode", "gpu-1", accelerators=(2, 3), pid=23990),
            member(f"{name}-router", "router", "gpu-1", pid=24118, since=NOW - 4_870),
        ),
        "endpoint": endpoint(name),
        "policies": "cache_aware on both sides; per-role policy flags have no effect",
        "since": NOW - 4_860,
    }
    return GroupView(**{**values, **other})


def degraded() -> GroupView:
    """A group with a changed configuration, a crash loop and half of its ratio."""
    name = "deepseek-v31"
    return running(
        name,
        model="deepseek-ai/DeepSeek-V3.1",
        mode="vllm-mooncake",
        membership="restart",
        currently="1:1",
        config_changed=True,
        changes=(
            "spec.parameters[1]: 32768 -> 65536",
            "spec.env.VLLM_LOGGING_LEVEL: added DEBUG",
        ),
        roles=counts(count(2, 1, pending=3), count(1)),
        members=(
            member(f"{name}-p0", "prefill", "gpu-3", stale=True),
            member(
                f"{name}-p1",
                "prefill",
                "gpu-3",
                state="crash_loop",
                accelerators=(2, 3),
                generation=3,
                failures=3,
                stale=True,
                in_router=False,
                pid=0,
                note=IN_USE,
            ),
            member(f"{name}-d0", "decode", "机器-北京", stale=True),
            member(f"{name}-router", "router", "gpu-3"),
        ),
        marks=(
            Mark(
                id="crash_loop",
                level="error",
                **tells(said("mark.crash_loop", instance=f"{name}-p1", failures=3, note=IN_USE)),
            ),
            Mark(id="unverified", text="unverified: pairing.dtype, prefill says auto"),
        ),
        endpoint=endpoint(name, "10.20.0.13:40020"),
        since=NOW - 86_400 * 3,
    )


def forming() -> GroupView:
    """A group whose decode side is not ready yet."""
    name = "glm-5"
    return running(
        name,
        model="/data/models/GLM-5",
        mode="vllm-ascend-mooncake",
        engine="vllm-ascend",
        status="Partially ready",
        currently="2:0",
        ratio="2:2",
        endpoint=None,
        roles={
            "prefill": count(2),
            "decode": count(2, 0),
            "router": RoleCount(wanted=1, ready=0, present=0),
        },
        members=(
            member(f"{name}-p0", "prefill", "npu-1", accelerator_type="910B3"),
            member(f"{name}-p1", "prefill", "npu-1", accelerator_type="910B3"),
            member(
                f"{name}-d0",
                "decode",
                "npu-1",
                state="starting",
                since=NOW - 48,
                accelerator_type="910B3",
            ),
            member(
                f"{name}-d1",
                "decode",
                "npu-1",
                state="exited",
                accelerator_type="910B3",
                next_start=NOW + 17,
                failures=1,
                generation=2,
                since=NOW - 9,
                pid=0,
                note="ended with exit code 1: torch.OutOfMemoryError: CUDA out of memory",
            ),
        ),
        since=NOW - 130,
    )


def restarting() -> GroupView:
    """A group in a restart that a host blocks."""
    return running(
        "llama-70b",
        model="meta-llama/Llama-3.3-70B",
        status="Pending",
        phase=PhaseView(name="confirm gone", done=2, total=3, blocked_by="gpu-2"),
        marks=(
            Mark(
                id="restart_blocked",
                level="error",
                **tells(said("mark.blocked.restart", hosts="gpu-2")),
            ),
        ),
        endpoint=None,
        members=(member("llama-70b-p0", "prefill", "gpu-2", state="unreachable", in_router=False),),
    )


def stopped() -> GroupView:
    """A group stopped by hand."""
    return running(
        "baseline",
        mode=None,
        model="/data/models/Qwen3-32B",
        status="Stopped",
        ratio="",
        paused=True,
        membership="none",
        roles={"replica": RoleCount(wanted=2, ready=0, present=0)},
        members=(),
        endpoint=None,
        policies="",
        since=0.0,
    )


def host(name: str, held: int, total: int = 4, **other: Any) -> HostView:
    """A host that is up, with the first `held` accelerators taken."""
    values: dict[str, Any] = {
        "name": name,
        "address": "10.20.0.11",
        "port": 22,
        "user": "op",
        "runtime": "process",
        "state": "up",
        "accelerators": tuple(
            AcceleratorView(
                index=i,
                type="L40S",
                memory_mib=46_068,
                held_by="qwen3-32b-p0" if i < held else "",
            )
            for i in range(total)
        ),
        "port_range": (40000, 40063),
        "ports_used": held * 3,
        "seen": NOW - 4,
        "labels": {"rack": "a"},
    }
    return HostView(**{**values, **other})


def site() -> Snapshot:
    """The whole site."""
    return Snapshot(
        seq=100,
        groups=(running(), degraded(), forming(), restarting(), stopped()),
        hosts=(
            host("gpu-1", 4),
            host("gpu-2", 2, state="unreachable", note="no route to host", seen=NOW - 95),
            host("gpu-3", 4, address="10.20.0.13", port=2222),
            host("npu-1", 8, 16, runtime="docker"),
            host("机器-北京", 0, address="gpu-bj.example", labels={}),
            host("new-1", 0, 0, state="key_unknown", note="its key was never accepted", seen=0.0),
        ),
        events=_history(),
    )


def _history() -> tuple[EventView, ...]:
    well, ill = "qwen3-32b", "deepseek-v31"
    p0, d0, router, p1 = f"{well}-p0", f"{well}-d0", f"{well}-router", f"{ill}-p1"
    places = "2 prefill on gpu-1, gpu-2; 1 decode on gpu-1"
    began = said(
        "started", instance=router, host="gpu-1", port=40020, pid=24118, generation=1
    )  # fmt: skip
    once = said("because", why="ended with exit code 1")
    thrice = said("because", why=IN_USE)
    changed = said("saved.changes", name=ill, what="spec.parameters[1]: 32768 -> 65536")
    return (
        event(91, well, said("formed", name=well, places=places, why="")),
        event(92, well, said("ready", instance=p0, host="gpu-1", why=""), instance=p0,
              host="gpu-1"),
        event(93, well, said("ready", instance=d0, host="gpu-1", why=""), instance=d0,
              host="gpu-1"),
        event(94, well, began, instance=router, host="gpu-1"),
        event(95, well, said("registered", name=well, url="http://10.20.0.11:40020/v1")),
        event(96, ill, said("exited", instance=p1, host="gpu-3", why=once), instance=p1,
              host="gpu-3", level="warning"),
        event(97, ill, said("crash_loop", instance=p1, host="gpu-3", why=thrice), instance=p1,
              host="gpu-3", level="error"),
        event(98, ill, changed, actor="op"),
    )  # fmt: skip


def event(seq: int, group: str, what: Said | str, **other: Any) -> EventView:
    """A line of history, one a minute."""
    what = plainly(what) if isinstance(what, str) else what
    return EventView(
        **{
            "seq": seq,
            "at": NOW - (100 - seq) * 60,
            "kind": "group",
            "group": group,
            "message": told(what, "en"),
            "said": what,
            **other,
        }
    )


LOG = "\n".join(
    [
        "INFO 11-30 07:01:02 [api_server.py:1772] vLLM API server version 0.29.0",
        "INFO 11-30 07:01:09 [parallel_state.py:1134] rank 0 in world size 2",
        "WARNING 11-30 07:01:12 [nixl_connector.py:88] side channel host not set, using 10.20.0.11",
        "INFO 11-30 07:01:40 [gpu_worker.py:276] Available KV cache memory: 29.4 GiB",
        "ERROR 11-30 07:01:41 [core.py:690] EngineCore failed to start.",
        "OSError: [Errno 98] Address already in use",
        "INFO 11-30 07:02:00 [launcher.py:70] Route: /health, Methods: GET [/foo][red]",
        *(
            f"INFO 11-30 07:02:{n % 60:02d} [loggers.py:118] Engine 000: running: {n} reqs"
            for n in range(60)
        ),
        "",
    ]
)
LOGS = {
    ("qwen3-32b-p0", 1): LOG,
    ("deepseek-v31-p1", 1): "first try\nOSError: [Errno 98] Address already in use\n",
    ("deepseek-v31-p1", 2): "second try\nOSError: [Errno 98] Address already in use\n",
    ("deepseek-v31-p1", 3): "third try\nOSError: [Errno 98] Address already in use\n",
}
DOCUMENTS: dict[str, dict[str, Any]] = {
    "qwen3-32b": {
        "apiVersion": "pdtui/v1",
        "kind": "Deployment",
        "metadata": {"name": "qwen3-32b", "labels": {"team": "search"}},
        "spec": {
            "model": "/data/models/Qwen3-32B",
            "engine": "vllm",
            "parameters": ["--max-model-len", "32768"],
            "disaggregation": {"mode": "vllm-nixl"},
            "roles": {"prefill": {"replicas": 2}, "decode": {"replicas": 1}},
        },
    }
}
