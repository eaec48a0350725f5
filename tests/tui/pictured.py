"""A site with something to see on every screen: what the domain itself makes of fixed facts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from backend.domain import canary
from backend.domain.advice.judge import advise
from backend.domain.alerts import alerts
from backend.domain.canary import Reply
from backend.domain.checkup import Checkup, Listener, Marked, NpuPort, Rdma, Xid
from backend.domain.diagnosis.scan import diagnose
from backend.domain.doctor import Finding, Patient
from backend.domain.doctor_checks import examine
from backend.domain.errors import Problem
from backend.domain.host import Accelerator, Host, HostFacts, Interface
from backend.domain.portmap import PortMap, PortRun, PortWindow
from backend.domain.telling import meaning, said, told
from backend.domain.views import CacheView, GroupView, Snapshot
from backend.domain.watch_views import (
    CanaryView,
    EffectVerdict,
    EffectView,
    GroupMetrics,
    MemberMetrics,
)
from backend.domain.watched import dressed
from tests.tui.catalogue import fitting, judged, modes, rendered
from tests.tui.factories import DOCUMENTS, LOGS, NOW, degraded, running, site
from tests.tui.fake_client import FakeClient
from tests.tui.test_more import versions
from tests.tui.test_site import with_caches
from tests.unit.domain.advice.test_judge import CASE

REAL = Path(__file__).parents[1] / "data" / "logs"
WELL, ILL = "qwen3-32b", "deepseek-v31"
"""The group that serves, and the one that does so in part."""


def pictured() -> FakeClient:
    """A client with everything there is to see."""
    snapshot, logs = site(), _logs()
    seen = {WELL: _well(), ILL: _ill(logs)}
    groups = tuple(seen.get(g.name, g) for g in snapshot.groups)
    made = FakeClient(
        Snapshot(seq=100, groups=groups, hosts=snapshot.hosts, events=snapshot.events),
        embedded=True, documents=DOCUMENTS, logs=logs,
    )  # fmt: skip
    made.known_modes, made.judge, made.versions = modes(), judged, versions()
    made.known_caches = {n: _without_key(c) for n, c in with_caches().known_caches.items()}
    made.renderer, made.fitting = rendered, fitting()
    made.figures = {g.name: _figures(g) for g in (seen[WELL], seen[ILL])}
    made.findings, made.ports = _findings(), {"gpu-1": _ports()}
    made.advice = advise(replace(CASE, deployment=WELL))
    return made


def _without_key(view: CacheView) -> CacheView:
    """A picture shows no secret, not even a made-up one."""
    kept = {k: v for k, v in view.settings.items() if k != "api_key"}
    return view.model_copy(update={"settings": kept})


def _logs() -> dict[tuple[str, int], str]:
    """What real engines wrote: a port that is taken, block sizes that do not fit."""
    taken = (REAL / "f_port.log").read_text(encoding="utf-8", errors="replace")
    of_member = {(f"{ILL}-p1", n): taken for n in (1, 2, 3)}
    unlike = (REAL / "vdb.log").read_text(encoding="utf-8", errors="replace")
    return {**LOGS, **of_member, (f"{ILL}-d0", 1): unlike}


@dataclass(frozen=True)
class _Traffic:
    effects: Mapping[str, EffectView]
    figures: Mapping[str, dict[str, float]] = field(default_factory=dict)
    group: EffectView | None = None


def _effect(verdict: EffectVerdict, reason: str, **values: float) -> EffectView:
    words = said(f"effect.{reason}", **values)
    return EffectView(
        verdict=verdict, reason=reason, text=told(words, "en"), said=words, values=values,
        at=NOW - 3, window_s=60,
    )  # fmt: skip


def _answer(text: str, seconds: float, status: int = 200) -> Reply:
    body = {"id": "cmpl-1", "choices": [{"text": text}], "usage": {"prompt_tokens": 96}}
    return Reply(status, body, seconds=seconds)


def _run(why: str, ago: float, *pairs: object, through: Reply, moved: bool) -> CanaryView:
    done = canary.settle(pairs)  # type: ignore[arg-type]
    router = canary.through_router(through, moved)
    wrong = canary.summary(done, router)
    return CanaryView(
        at=NOW - ago, seconds=0.9, why=why, ok=wrong is None, pairs=done, router=router, said=wrong,
        note=told(wrong, "en") if wrong else "",
    )  # fmt: skip


def _well() -> GroupView:
    view = running()
    effects = {
        f"{WELL}-p0": _effect("good", "computes", count=412),
        f"{WELL}-p1": _effect("good", "computes", count=398),
        f"{WELL}-d0": _effect("good", "moves", percent=97),
    }
    pairs = [
        canary.judge(_answer("word", a), _answer("word by", b), True,
                     ids=(f"{WELL}-p{n}", f"{WELL}-d0"))
        for n, a, b in ((0, 0.09, 0.12), (1, 0.11, 0.14))
    ]  # fmt: skip
    run = _run("interval", 140, *pairs, through=_answer("word by", 0.3), moved=True)
    return dressed(view, _Traffic(effects, group=effects[f"{WELL}-d0"]), run)


def _ill(logs: Mapping[tuple[str, int], str]) -> GroupView:
    """Its one prefill computes, its decode computes everything again, its other prefill is down."""
    view, decode = degraded(), f"{ILL}-d0"
    recomputes = _effect("none", "recomputes", percent=3)
    first = diagnose(logs[decode, 1], name=decode, generation=1, ended=False).first
    assert first is not None
    pair = canary.judge(
        _answer("word", 0.2), _answer("word by", 1.4), False, ids=(f"{ILL}-p0", decode),
        log=meaning(first.text, first.cause),
    )  # fmt: skip
    run = _run("formed", 75, pair, through=_answer("word by", 1.7), moved=False)
    effects = {f"{ILL}-p0": _effect("good", "computes", count=88), decode: recomputes}
    words = said("effect.of_member", member=decode, what=recomputes.words)
    whole = recomputes.model_copy(update={"said": words, "text": told(words, "en")})
    seen = dressed(view, _Traffic(effects, group=whole), run)
    found = [a.model_copy(update={"since": NOW - 60 * n}) for n, a in enumerate(alerts(seen), 2)]
    return seen.model_copy(update={"alerts": tuple(found)})


def _figures(view: GroupView) -> GroupMetrics:
    """A quarter of an hour in which traffic grows; a decode began late."""
    at = tuple(NOW - 900 + 10 * n for n in range(90))
    members = []
    for k, m in enumerate(m for m in view.members if m.role != "router" and m.state == "ready"):
        decode = m.role == "decode"
        base = (7.0, 6.2, 13.0)[k % 3]
        load = tuple(
            None
            if decode and n < 12
            else round(base * (1 + n / 120) + 1.4 * math.sin(n / 5 + k), 2)
            for n in range(90)
        )
        series = {
            "requests": load,
            "prompt_tokens": tuple(v and round(v * 1840) for v in load),
            "running": tuple(v and round(v / 2) for v in load),
        }
        if decode:
            share = 0.97 if view.name == WELL else 0.03
            series["external_share"] = tuple(None if v is None else share for v in load)
        members.append(MemberMetrics(instance=m.id, role=m.role, host=m.host, at=at, series=series))
    return GroupMetrics(group=view.name, every_s=10, members=tuple(members))


FIT = Checkup(
    skew_s=0.2, disk_free=812_000, disk_total=1_800_000, writable=True, forwarding="",
    shm_total=64_000, memory_total=1_031_000, memory_free=862_000,
    limits={"nofile": 1_048_576, "memlock": None},
)  # fmt: skip


def _cards(vendor: str, kind: str, count: int) -> tuple[Accelerator, ...]:
    return tuple(
        Accelerator(index=n, uuid=f"{kind}-{n}", vendor=vendor, type=kind)  # type: ignore[arg-type]
        for n in range(count)
    )


def _facts(name: str, address: str, cards: tuple[Accelerator, ...], **more: object) -> HostFacts:
    eth = Interface(name="eth0", addresses=(address,))
    return HostFacts(
        boot_id="b", address=address, hostname=name, accelerators=cards, interfaces=(eth,),
        **{"ephemeral": (32768, 39999), **more},  # type: ignore[arg-type]
    )  # fmt: skip


def _patient(name: str, address: str, **more: object) -> Patient:
    # the name is one that the list of hosts shows, also where an entry could not have it
    host = Host(name="x", address=address, work_dir="/data/pdtui").model_copy(update={"name": name})
    values = {"port_range": (40000, 40063), "owner": "ours", "checkup": FIT, **more}
    return Patient(host=host, **values)  # type: ignore[arg-type]


def _findings() -> tuple[Finding, ...]:
    """What the doctor makes of six hosts."""
    l40s = _cards("nvidia", "L40S", 4)
    xid = Xid(card="0000:61:00", number=79, count=3, text="NVRM: Xid (PCI:0000:61:00): 79")
    full = FIT.model_copy(
        update={
            "disk_free": 41,
            "xids": (xid,),
            "rdma": (Rdma(device="mlx5_1", state="DOWN"), Rdma(device="mlx5_0", state="ACTIVE")),
            "listeners": (Listener(port=40007, pid=3120, name="ray::IDLE"),),
        }
    )
    ports = tuple(
        NpuPort(
            device=n, address=f"192.168.100.{n + 1}", link="DOWN" if n == 5 else "UP", tls=n < 8
        )
        for n in range(16)
    )
    late = FIT.model_copy(
        update={
            "skew_s": 74.0,
            "marked": (Marked(pid=8841, instance="old-d0", name="VLLM::EngineCore"),),
        }
    )
    silent = Problem(
        rule="host.unreachable", message="10.20.0.12 port 22: no route to host.",
        remedy="Check that it is up and that this machine may reach it.",
    )  # fmt: skip
    unknown = Problem(
        rule="host.key_unknown", message="its key SHA256:m1Qb…x0 was never accepted.",
        remedy="Compare it on the host, then accept it: pdtui hosts accept new-1.",
    )  # fmt: skip
    patients = (
        _patient("gpu-1", "10.20.0.11", facts=_facts("gpu-1", "10.20.0.11", l40s)),
        _patient("gpu-2", "10.20.0.12", problem=silent),
        _patient(
            "gpu-3", "10.20.0.13", checkup=full,
            facts=_facts("gpu-3", "10.20.0.13", l40s, listening=frozenset({40007}),
                         ephemeral=(32768, 60999)),
        ),
        _patient(
            "npu-1", "10.20.0.21", checkup=FIT.model_copy(update={"npu_ports": ports}),
            facts=_facts("npu-1", "10.20.0.21", _cards("ascend", "910B3", 16)),
        ),
        _patient("机器-北京", "gpu-bj.example", checkup=late,
                 facts=_facts("gpu-bj", "10.30.0.7", l40s)),
        _patient("new-1", "10.20.0.31", problem=unknown),
    )  # fmt: skip
    return tuple(f for p in patients for f in examine(p))


def _ports() -> PortMap:
    """Who holds which port of a busy host."""
    p0, d0, router = f"{WELL}-p0", f"{WELL}-d0", f"{WELL}-router"
    return PortMap(
        host="gpu-1", port_range=(40000, 40063), free=47, widest=32, tried=True,
        runs=(
            PortRun(first=40000, last=40000, kind="ours", holder=p0, band="http", listening=1),
            PortRun(first=40001, last=40002, kind="ours", holder=p0, band="side_channel",
                    listening=2),
            PortRun(first=40003, last=40006, kind="free"),
            PortRun(first=40007, last=40007, kind="foreign", holder="ray::IDLE (pid 3120)"),
            PortRun(first=40008, last=40009, kind="free"),
            PortRun(first=40010, last=40010, kind="ours", holder=d0, band="http", listening=1),
            PortRun(first=40011, last=40014, kind="ours", holder=d0, band="side_channel",
                    listening=2),
            PortRun(first=40015, last=40019, kind="free"),
            PortRun(first=40020, last=40020, kind="ours", holder=router, band="http", listening=1),
            PortRun(first=40021, last=40021, kind="ours", holder=router, band="metrics",
                    listening=1),
            PortRun(first=40022, last=40025, kind="free"),
            PortRun(first=40026, last=40029, kind="claimed", holder="eval-p0"),
            PortRun(first=40030, last=40030, kind="stuck"),
            PortRun(first=40031, last=40063, kind="free"),
        ),
        windows=(
            PortWindow(first=15000, last=17000, kind="engine", overlaps=False, count=2,
                       listeners=(Listener(port=15423, pid=23811, name="mooncake_engine"),
                                  Listener(port=16107, pid=23990, name="mooncake_engine"))),
            PortWindow(first=32768, last=60999, kind="ephemeral", overlaps=True),
        ),
    )  # fmt: skip
