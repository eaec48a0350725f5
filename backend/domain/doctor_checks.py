"""The doctor: checks over a host's facts, each with what was seen and what to do about it. Pure.

A check is one small function that yields findings; it yields nothing where it has nothing to judge.
Source: what breaks groups in practice, from public reports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from backend.domain.checkup import Checkup, ModelCopy
from backend.domain.doctor import Finding, Patient, Verdict, some
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
from backend.domain.rules.hosts import ENGINE_WINDOWS

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
        instead = f"; {c.relays[0]} there dials instead, a session a request" if c.relays else ""
        yield p.finding(
            "forwarding", "warn" if c.relays else "fail",
            f"its SSH server opens no TCP connections ({c.forwarding}){instead}",
            "Set AllowTcpForwarding yes (or local) in its sshd_config.", cause=c.forwarding,
        )  # fmt: skip
    else:
        yield p.finding("forwarding", "pass", "SSH forwards TCP")


def tools(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """What our scripts call there."""
    if f.missing_tools:
        yield p.finding(
            "tools", "fail", f"not installed: {', '.join(f.missing_tools)}",
            "Install util-linux, awk and grep there.", missing=list(f.missing_tools),
        )  # fmt: skip


def clock(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """A clock far from ours makes logs of several hosts unreadable side by side."""
    if c.skew_s is None:
        return
    if abs(c.skew_s) > SKEW_S:
        ahead = "ahead of" if c.skew_s > 0 else "behind"
        yield p.finding(
            "clock", "warn", f"its clock is {abs(c.skew_s):.0f} s {ahead} ours",
            "Let a time service (chrony, systemd-timesyncd) set it.", seconds=round(c.skew_s, 1),
        )  # fmt: skip
    else:
        yield p.finding("clock", "pass", "its clock agrees with ours")


def disk(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """The instance directories hold logs; a full disk ends engines in odd ways."""
    where = p.host.work_dir
    if c.writable is False:
        yield p.finding(
            "disk", "fail", f"nothing can be written in {where}",
            "Free some space, or set work_dir to a folder that the user may write.", path=where,
        )  # fmt: skip
    if c.disk_free is None:
        return
    if c.disk_free < SCANT_DISK:
        verdict: Verdict = "fail" if c.disk_free < LEAST_DISK else "warn"
        yield p.finding(
            "disk", verdict, f"{c.disk_free} MiB are free where {where} lies",
            "Free some space, or set work_dir to another disk.", free_mib=c.disk_free,
        )  # fmt: skip
    elif c.writable:
        yield p.finding("disk", "pass", f"{c.disk_free >> 10} GiB are free for {where}")


def memory(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """Host memory, and the shared memory that an engine's processes talk through."""
    if c.memory_total is not None and c.memory_free < SCANT_MEMORY:
        yield p.finding(
            "memory", "warn", f"{c.memory_free} MiB of {c.memory_total} MiB memory are available",
            "End what uses it.", free_mib=c.memory_free,
        )  # fmt: skip
    if c.shm_total is not None and c.shm_total < SCANT_SHM:
        yield p.finding(
            "shm", "warn", f"its shared memory (/dev/shm) has {c.shm_total} MiB",
            "Give it at least 1 GiB: engines' workers exchange data there.", mib=c.shm_total,
        )  # fmt: skip


def limits(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """RDMA pins the KV cache's memory; routers hold many connections."""
    memlock = c.limits.get("memlock")
    if c.rdma and memlock is not None:
        yield p.finding(
            "memlock", "warn", f"only {memlock} KiB of memory may be locked, and it has RDMA",
            "Set memlock to unlimited in /etc/security/limits.conf and log in anew.", kib=memlock,
        )  # fmt: skip
    files = c.limits.get("nofile")
    if files is not None and files < SCANT_FILES:
        yield p.finding(
            "nofile", "warn", f"a process may have {files} files and connections open",
            f"Raise nofile to {SCANT_FILES} or more in /etc/security/limits.conf.", limit=files,
        )  # fmt: skip


def leftovers(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """Processes and claims of instances that nobody knows any more, and other backends' ones."""
    owner = {claim.instance: claim.owner for claim in f.claims}
    lost = [m for m in c.marked if m.instance not in p.instances]
    ours = [m for m in lost if owner.get(m.instance, p.owner) == p.owner]
    if ours:
        listed = [f"{m.name} (pid {m.pid}, of {m.instance})" for m in ours]
        yield p.finding(
            "leftovers", "warn", f"left over from instances that are gone: {some(listed)}",
            "End them, or adopt their group.", pids=[m.pid for m in ours],
        )  # fmt: skip
    boxes = [
        f"{b.name} ({b.state})"
        for b in c.containers
        if b.instance not in p.instances and owner.get(b.instance, p.owner) == p.owner
    ]
    if boxes:
        yield p.finding(
            "leftovers", "warn", f"containers of instances that are gone: {some(boxes)}",
            "Remove them (docker or podman rm -f), or adopt their group.", containers=boxes,
        )  # fmt: skip
    stale = [i for i, o in owner.items() if o == p.owner and i not in p.instances]
    if stale:
        yield p.finding(
            "claims", "warn", f"claims of instances that are gone: {some(stale)}",
            f"Remove their folders in {p.host.work_dir}/instances.", instances=stale,
        )  # fmt: skip
    others = sorted({o for o in owner.values() if o != p.owner})
    if others:
        yield p.finding(
            "owners", "warn", f"other backends run instances here too: {some(others)}",
            "Their accelerators and ports count as taken.", owners=others,
        )  # fmt: skip


def ports(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """The service port range: who sits in it, and what else reaches into it."""
    first, last = p.port_range
    claimed = {n for claim in f.claims for n in claim.ports}
    held = sorted(n for n in f.listening if first <= n <= last and n not in claimed)
    names = {x.port: x for x in c.listeners}
    if held:
        listed = [
            f"{n} ({names[n].name}, pid {names[n].pid})" if n in names and names[n].pid else str(n)
            for n in held
        ]
        whole = len(held) > last - first
        yield p.finding(
            "ports", "fail" if whole else "warn",
            f"in the service port range {first}-{last} others listen on {some(listed)}",
            "They are never handed out; move service_port_range if there are many.", ports=held,
        )  # fmt: skip
    stuck = sorted(n for n in c.unbindable or () if n not in held and n not in claimed)
    if stuck:
        yield p.finding(
            "port_bind", "warn",
            f"nobody listens on {some([str(n) for n in stuck])}, yet they cannot be bound",
            "Something there holds or reserves them: look at ss -anp and at ip_unprivileged_port_"
            "start; or move service_port_range.", ports=stuck,
        )  # fmt: skip
    reach = [("outgoing connections", f.ephemeral)]
    reach += [("the engines' own random ports", w) for w in ENGINE_WINDOWS]
    over = [f"{what} ({a}-{b})" for what, (a, b) in reach if a <= last and first <= b]
    if over:
        yield p.finding(
            "port_range", "warn", f"the service port range {first}-{last} overlaps {some(over)}",
            "Choose another service_port_range, or reserve it: sysctl "
            f"net.ipv4.ip_local_reserved_ports={first}-{last}.",
            range=[first, last],
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
            why = "is not there" if named is None else "has no routable address"
            why = "is down" if named is not None and not named.up else why
            yield p.finding(
                "interface", "fail", f"its KV interface {chosen} {why}",
                f"Set kv_transfer_ifname to one of: {some([i.name for i in candidates(f)])}.",
                interface=chosen, candidates=[i.name for i in candidates(f)],
            )  # fmt: skip
        else:
            yield p.finding("interface", "pass", f"KV traffic goes over {chosen}")
        return
    found = [i.name for i in candidates(f)]
    if len(found) > 1 and p.needs.plane != "control":
        yield p.finding(
            "interface", "warn", f"{len(found)} interfaces could carry KV traffic: {some(found)}",
            "Name one in kv_transfer_ifname; modes that need it refuse the host until then.",
            candidates=found,
        )  # fmt: skip
    elif found:
        yield p.finding("interface", "pass", f"KV traffic goes over {found[0]}")


def kv_routes(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """KV traffic gets to the group's other hosts, over the interface that was chosen for it."""
    cut = [f"{r.target} ({r.address}: {r.seen or 'no way'})" for r in p.reaches if r.ok is False]
    if cut:
        yield p.finding(
            "kv_route", "fail", f"KV traffic does not get to {some(cut)}",
            "Choose kv_transfer_ifname on both hosts in one network, or mend the route.", hosts=cut,
        )  # fmt: skip
    mute = [f"{r.target} ({r.address}: {r.seen})" for r in p.reaches if r.ok is None]
    if mute:
        yield p.finding(
            "kv_route", "warn", f"nothing answered on the way to {some(mute)}",
            "Let the hosts' firewalls pass the service ports between the group's hosts.",
            hosts=mute,
        )  # fmt: skip
    astray = [
        f"{r.target} over {r.via}" for r in p.reaches if r.ok and r.via and r.via != r.interface
    ]
    if astray:
        wanted = p.reaches[0].interface
        yield p.finding(
            "kv_route", "warn", f"its routes lead to {some(astray)}, not over {wanted}",
            "Choose kv_transfer_ifname on all hosts in one network.", hosts=astray,
        )  # fmt: skip
    if p.reaches and not (cut or mute or astray):
        over = p.reaches[0].interface
        yield p.finding("kv_route", "pass", f"{len(p.reaches)} hosts are reached over {over}")


def runtime(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """The runtime that the entry names."""
    kind = p.host.runtime
    if kind == "process":
        return
    said = c.runtimes.get(kind)
    if said is None or said.startswith("!"):
        seen = f"{kind} does not answer: {said[1:]}" if said else f"{kind} is not installed"
        yield p.finding(
            "runtime", "fail", seen,
            f"Install it, start it, and let the user use it (for docker: usermod -aG docker "
            f"{p.host.user or 'USER'}).", runtime=kind,
        )  # fmt: skip
        return
    yield p.finding("runtime", "pass", f"{kind} {said}")
    nvidia = any(a.vendor == "nvidia" for a in f.accelerators)
    if nvidia and not c.gpu_runtimes and c.inside is None:
        yield p.finding(
            "gpu_runtime", "warn", f"nothing lets {kind} see the GPUs",
            "Install nvidia-container-toolkit, and for podman run nvidia-ctk cdi generate.",
        )  # fmt: skip


def programs(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """The engine's and the router's program, on hosts without containers."""
    for name in p.needs.programs:
        path = c.programs.get(name)
        if path:
            yield p.finding("program", "pass", f"{name} is {path}", program=name)
        elif path is not None:
            yield p.finding(
                "program", "fail", f"{name} is not there, or not on the PATH of a login by SSH",
                f"Install it, or set executables: pdtui hosts edit {p.host.name} "
                "executables.PROGRAM=/path/to/venv.", program=name,
            )  # fmt: skip


def models(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """The model's folder is there, and the same as on the other hosts."""
    for copy in c.models:
        if not copy.there:
            yield p.finding(
                "model", "fail", f"the model {copy.path} is not there",
                "Copy it there, or keep the role off this host with its host selector.",
                path=copy.path,
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
            f"{name} ({other.weights} weight files, {other.size} bytes)"
            for name, other in others
            if name not in config and (other.weights, other.size) != (copy.weights, copy.size)
        ]
        yield from _compared(p, copy, config, files)


def _compared(
    p: Patient, copy: ModelCopy, config: list[str], files: list[str]
) -> Iterator[Finding]:
    """Another config.json is another model; other weight files may be."""
    remedy = "Copy the same files to every host: mixed KV gives wrong answers without an error."
    if config:
        yield p.finding(
            "model", "fail", f"the config.json of {copy.path} differs from that on {some(config)}",
            remedy, path=copy.path, differs=config,
        )  # fmt: skip
    elif files:
        yield p.finding(
            "model", "warn",
            f"{copy.path} has {copy.weights} weight files, {copy.size} bytes; not so on "
            f"{some(files)}",
            remedy, path=copy.path,
        )  # fmt: skip
    else:
        yield p.finding(
            "model", "pass", f"{copy.path} has {copy.weights} weight files", path=copy.path
        )


CHECKS: tuple[Check, ...] = (
    forwarding, tools, clock, disk, memory, limits, accelerators, foreign, fabric, leftovers,
    ports, interface, kv_routes, rdma, npu_network, npu_tls, xids, runtime, inside, programs,
    models,
)  # fmt: skip


def examine(patient: Patient) -> tuple[Finding, ...]:
    """Every finding about a host, the worst first. One that did not answer has only that."""
    if patient.facts is None or patient.checkup is None:
        problem = patient.problem
        seen = problem.message if problem else "it has not answered yet"
        return (
            patient.finding(
                "ssh", "fail", seen, problem.remedy if problem else "Look at it again.",
                **({"rule": problem.rule} if problem else {}),
            ),
        )  # fmt: skip
    found = [f for check in CHECKS for f in check(patient, patient.facts, patient.checkup)]
    found.insert(0, patient.finding("ssh", "pass", f"answers as {patient.facts.hostname}"))
    return tuple(sorted(found, key=lambda f: WORST[f.verdict]))
