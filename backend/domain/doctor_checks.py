"""The doctor: checks over a host's facts, each with what was seen and what to do about it. Pure.

A check is one small function that yields findings; it yields nothing where it has nothing to judge.
Source: what breaks groups in practice, from public reports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from backend.domain.checkup import Checkup, ModelCopy, Reach
from backend.domain.doctor import Finding, Patient, Verdict
from backend.domain.doctor_devices import (
    accelerators,
    fabric,
    foreign,
    inside,
    npu_network,
    npu_tls,
    rdma,
    xids,
)  # fmt: skip
from backend.domain.host import HostFacts
from backend.domain.network import candidates, routable
from backend.domain.ports import merged
from backend.domain.rules.hosts import ENGINE_WINDOWS
from backend.domain.telling import Said, plainly, said, several, worded

Check = Callable[[Patient, HostFacts, Checkup], Iterator[Finding]]
WORST: dict[Verdict, int] = {"fail": 0, "warn": 1, "pass": 2}
LEAST_DISK, SCANT_DISK = 64, 2048
SCANT_SHM, SCANT_MEMORY = 1024, 4096
SCANT_FILES = 65536
SKEW_S = 5.0


def forwarding(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """Members are probed through the host's SSH connection."""
    if c.forwarding is None:
        return
    if c.forwarding:
        seen = said("doctor.forwarding.none", cause=c.forwarding)
        if c.relays:
            seen = said("doctor.forwarding.relay", cause=c.forwarding, relay=c.relays[0])
        yield p.finding(
            "forwarding", "warn" if c.relays else "fail", seen, said("doctor.forwarding.do"),
            cause=c.forwarding,
        )  # fmt: skip
    else:
        yield p.finding("forwarding", "pass", said("doctor.forwarding.well"))


def tools(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """What our scripts call there."""
    if f.missing_tools:
        yield p.finding(
            "tools", "fail", said("doctor.tools.missing", tools=f.missing_tools),
            said("doctor.tools.do"), missing=list(f.missing_tools),
        )  # fmt: skip


def clock(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """A clock far from ours makes logs of several hosts unreadable side by side."""
    if c.skew_s is None:
        return
    if abs(c.skew_s) > SKEW_S:
        key = "doctor.clock.ahead" if c.skew_s > 0 else "doctor.clock.behind"
        yield p.finding(
            "clock", "warn", said(key, seconds=f"{abs(c.skew_s):.0f}"), said("doctor.clock.do"),
            seconds=round(c.skew_s, 1),
        )  # fmt: skip
    else:
        yield p.finding("clock", "pass", said("doctor.clock.well"))


def disk(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """The instance directories hold logs; a full disk ends engines in odd ways."""
    where = p.host.work_dir
    if c.writable is False:
        yield p.finding(
            "disk", "fail", said("doctor.disk.unwritable", path=where),
            said("doctor.disk.unwritable.do"), path=where,
        )  # fmt: skip
    if c.disk_free is None:
        return
    if c.disk_free < SCANT_DISK:
        verdict: Verdict = "fail" if c.disk_free < LEAST_DISK else "warn"
        yield p.finding(
            "disk", verdict, said("doctor.disk.scant", free=c.disk_free, path=where),
            said("doctor.disk.scant.do"), free_mib=c.disk_free,
        )  # fmt: skip
    elif c.writable:
        seen = said("doctor.disk.well", free=c.disk_free >> 10, path=where)
        yield p.finding("disk", "pass", seen)


def memory(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """Host memory, and the shared memory that an engine's processes talk through."""
    if c.memory_total is not None and c.memory_free < SCANT_MEMORY:
        yield p.finding(
            "memory", "warn",
            said("doctor.memory.scant", free=c.memory_free, total=c.memory_total),
            said("doctor.memory.do"), free_mib=c.memory_free,
        )  # fmt: skip
    if c.shm_total is not None and c.shm_total < SCANT_SHM:
        yield p.finding(
            "shm", "warn", said("doctor.shm.scant", mib=c.shm_total), said("doctor.shm.do"),
            mib=c.shm_total,
        )  # fmt: skip


def limits(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """RDMA pins the KV cache's memory; routers hold many connections."""
    memlock = c.limits.get("memlock")
    if c.rdma and memlock is not None:
        yield p.finding(
            "memlock", "warn", said("doctor.memlock.scant", kib=memlock),
            said("doctor.memlock.do"), kib=memlock,
        )  # fmt: skip
    files = c.limits.get("nofile")
    if files is not None and files < SCANT_FILES:
        yield p.finding(
            "nofile", "warn", said("doctor.nofile.scant", files=files),
            said("doctor.nofile.do", least=SCANT_FILES), limit=files,
        )  # fmt: skip


def leftovers(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """Processes and claims of instances that nobody knows any more, and other backends' ones."""
    owner = {claim.instance: claim.owner for claim in f.claims}
    lost = [m for m in c.marked if m.instance not in p.instances]
    ours = [m for m in lost if owner.get(m.instance, p.owner) == p.owner]
    if ours:
        key = "doctor.leftovers.process"
        listed = [said(key, name=m.name, pid=m.pid, instance=m.instance) for m in ours]
        yield p.finding(
            "leftovers", "warn", said("doctor.leftovers.processes", what=several(listed)),
            said("doctor.leftovers.processes.do"), pids=[m.pid for m in ours],
        )  # fmt: skip
    boxes = [
        f"{b.name} ({b.state})"
        for b in c.containers
        if b.instance not in p.instances and owner.get(b.instance, p.owner) == p.owner
    ]
    if boxes:
        yield p.finding(
            "leftovers", "warn", said("doctor.leftovers.containers", what=several(boxes)),
            said("doctor.leftovers.containers.do"), containers=boxes,
        )  # fmt: skip
    stale = [i for i, o in owner.items() if o == p.owner and i not in p.instances]
    if stale:
        yield p.finding(
            "claims", "warn", said("doctor.claims.stale", what=several(stale)),
            said("doctor.claims.do", path=f"{p.host.work_dir}/instances"), instances=stale,
        )  # fmt: skip
    others = sorted({o for o in owner.values() if o != p.owner})
    if others:
        yield p.finding(
            "owners", "warn", said("doctor.owners.others", what=several(others)),
            said("doctor.owners.do"), owners=others,
        )  # fmt: skip


def ports(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """The service port range: who sits in it, and what else reaches into it."""
    first, last = p.port_range
    claimed = {n for claim in f.claims for n in claim.ports}
    held = sorted(n for n in f.listening if first <= n <= last and n not in claimed)
    names = {x.port: x for x in c.listeners}
    if held:
        listed = [
            said("doctor.ports.by", port=n, name=names[n].name, pid=names[n].pid)
            if n in names and names[n].pid
            else str(n)
            for n in held
        ]
        whole = len(held) > last - first
        yield p.finding(
            "ports", "fail" if whole else "warn",
            said("doctor.ports.held", first=first, last=last, what=several(listed)),
            said("doctor.ports.held.do"), ports=held,
        )  # fmt: skip
    stuck = sorted(n for n in c.unbindable or () if n not in held and n not in claimed)
    if stuck:
        yield p.finding(
            "port_bind", "warn",
            said("doctor.port_bind.stuck", what=several([str(n) for n in stuck])),
            said("doctor.port_bind.do"), ports=stuck,
        )  # fmt: skip
    reach = [("doctor.port_range.outgoing", f.ephemeral)] if f.outgoing((first, last)) else []
    reach += [("doctor.port_range.engines", w) for w in ENGINE_WINDOWS]
    over = [said(what, first=a, last=b) for what, (a, b) in reach if a <= last and first <= b]
    if over:
        kept = ",".join(f"{a}-{b}" for a, b in merged([(first, last), *f.reserved]))
        yield p.finding(
            "port_range", "warn",
            said("doctor.port_range.overlaps", first=first, last=last, what=several(over)),
            said("doctor.port_range.do", reserve=kept), range=[first, last],
        )  # fmt: skip


def interface(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """The interface for KV traffic."""
    chosen = p.host.kv_transfer_ifname or p.ifname
    there = {i.name: i for i in f.interfaces}
    if chosen:
        named = there.get(chosen)
        reached = named is not None and (
            f.address in named.addresses or any(map(routable, named.addresses))
        )
        if named is None or not named.up or not reached:
            why = "doctor.interface.absent" if named is None else "doctor.interface.unrouted"
            why = "doctor.interface.down" if named is not None and not named.up else why
            could = [i.name for i in candidates(f)]
            yield p.finding(
                "interface", "fail", said(why, name=chosen),
                said("doctor.interface.choose", names=several(could)),
                interface=chosen, candidates=could,
            )  # fmt: skip
        else:
            yield p.finding("interface", "pass", said("doctor.interface.well", name=chosen))
        return
    found = [i.name for i in candidates(f)]
    if len(found) > 1 and p.needs.plane != "control":
        yield p.finding(
            "interface", "warn",
            said("doctor.interface.several", count=len(found), names=several(found)),
            said("doctor.interface.several.do"), candidates=found,
        )  # fmt: skip
    elif found:
        yield p.finding("interface", "pass", said("doctor.interface.well", name=found[0]))


def kv_routes(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """KV traffic gets to the group's other hosts, over the interface that was chosen for it."""
    cut = [r for r in p.reaches if r.ok is False]
    if cut:
        yield p.finding(
            "kv_route", "fail", said("doctor.kv_route.cut", what=_ways(cut)),
            said("doctor.kv_route.cut.do"), hosts=[r.target for r in cut],
        )  # fmt: skip
    mute = [r for r in p.reaches if r.ok is None]
    if mute:
        yield p.finding(
            "kv_route", "warn", said("doctor.kv_route.mute", what=_ways(mute)),
            said("doctor.kv_route.mute.do"), hosts=[r.target for r in mute],
        )  # fmt: skip
    astray = [r for r in p.reaches if r.ok and r.via and r.via != r.interface]
    if astray:
        over = several([said("doctor.kv_route.over", host=r.target, name=r.via) for r in astray])
        yield p.finding(
            "kv_route", "warn",
            said("doctor.kv_route.astray", what=over, name=p.reaches[0].interface),
            said("doctor.kv_route.astray.do"), hosts=[r.target for r in astray],
        )  # fmt: skip
    if p.reaches and not (cut or mute or astray):
        seen = said("doctor.kv_route.well", count=len(p.reaches), name=p.reaches[0].interface)
        yield p.finding("kv_route", "pass", seen)


def _ways(reaches: Sequence[Reach]) -> Said:
    return several(
        [
            said(
                "doctor.kv_route.to",
                host=r.target,
                address=r.address,
                why=plainly(r.seen) if r.seen else said("doctor.kv_route.no_way"),
            )
            for r in reaches
        ]
    )


def runtime(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """The runtime that the entry names."""
    kind = p.host.runtime
    if kind == "process":
        return
    version = c.runtimes.get(kind)
    if version is None or version.startswith("!"):
        seen = said("doctor.runtime.absent", runtime=kind)
        if version:
            seen = said("doctor.runtime.silent", runtime=kind, why=version[1:])
        yield p.finding(
            "runtime", "fail", seen, said("doctor.runtime.do", user=p.host.user or "USER"),
            runtime=kind,
        )  # fmt: skip
        return
    yield p.finding("runtime", "pass", f"{kind} {version}")
    nvidia = any(a.vendor == "nvidia" for a in f.accelerators)
    if nvidia and not c.gpu_runtimes and c.inside is None:
        yield p.finding(
            "gpu_runtime", "warn", said("doctor.gpu_runtime.none", runtime=kind),
            said("doctor.gpu_runtime.do"),
        )  # fmt: skip


def programs(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """The engine's and the router's program, on hosts without containers."""
    for name in p.needs.programs:
        path = c.programs.get(name)
        if path:
            seen = said("doctor.program.well", name=name, path=path)
            yield p.finding("program", "pass", seen, program=name)
        elif path is not None:
            yield p.finding(
                "program", "fail", said("doctor.program.absent", name=name),
                said("doctor.program.do", host=p.host.name), program=name,
            )  # fmt: skip


def models(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """The model's folder is there, and the same as on the other hosts."""
    for copy in c.models:
        if not copy.there:
            yield p.finding(
                "model", "fail", said("doctor.model.absent", path=copy.path),
                said("doctor.model.absent.do"), path=copy.path,
            )  # fmt: skip
            continue
        others = [
            (name, other)
            for name, peer in sorted(p.peers.items())
            for other in peer.models
            if other.path == copy.path and other.there and name != p.host.name
        ]
        config = [name for name, other in others if other.digest != copy.digest]
        files = [
            said("doctor.model.on", host=name, weights=other.weights, size=other.size)
            for name, other in others
            if name not in config and (other.weights, other.size) != (copy.weights, copy.size)
        ]
        yield from _compared(p, copy, config, files)


def _compared(
    p: Patient, copy: ModelCopy, config: list[str], files: list[Said]
) -> Iterator[Finding]:
    """Another config.json is another model; other weight files may be."""
    remedy = said("doctor.model.same.do")
    if config:
        yield p.finding(
            "model", "fail", said("doctor.model.config", path=copy.path, what=several(config)),
            remedy, path=copy.path, differs=config,
        )  # fmt: skip
    elif files:
        yield p.finding(
            "model", "warn",
            said("doctor.model.files", path=copy.path, weights=copy.weights, size=copy.size,
                 what=several(files)),
            remedy, path=copy.path,
        )  # fmt: skip
    else:
        seen = said("doctor.model.well", path=copy.path, weights=copy.weights)
        yield p.finding("model", "pass", seen, path=copy.path)


CHECKS: tuple[Check, ...] = (
    forwarding, tools, clock, disk, memory, limits, accelerators, foreign, fabric, leftovers,
    ports, interface, kv_routes, rdma, npu_network, npu_tls, xids, runtime, inside, programs,
    models,
)  # fmt: skip


def examine(patient: Patient) -> tuple[Finding, ...]:
    """Every finding about a host, the worst first. One that did not answer has only that."""
    if patient.facts is None or patient.checkup is None:
        return (_silent(patient),)
    found = [f for check in CHECKS for f in check(patient, patient.facts, patient.checkup)]
    found.insert(0, _answers(patient, patient.facts))
    return tuple(sorted(found, key=lambda f: WORST[f.verdict]))


def _answers(p: Patient, f: HostFacts) -> Finding:
    return p.finding("ssh", "pass", said("doctor.answers", hostname=f.hostname))


def _silent(p: Patient) -> Finding:
    if p.problem is None:
        return p.finding("ssh", "fail", said("doctor.silent"), said("doctor.silent.do"))
    message, remedy = worded(p.problem)
    return p.finding("ssh", "fail", message, remedy, rule=p.problem.rule)
