"""The doctor's checks on accelerators and on the networks that move KV between them."""

from __future__ import annotations

from collections.abc import Iterator

from backend.domain.checkup import Checkup
from backend.domain.doctor import Finding, Patient
from backend.domain.host import HostFacts
from backend.domain.inside import judged
from backend.domain.picture import strangers
from backend.domain.telling import said, several

FABRIC_WELL = ("completed", "success")


def accelerators(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """Devices, and what the vendor's tool complains of."""
    count = len(f.accelerators)
    if f.accelerator_note:
        yield p.finding(
            "accelerators", "warn" if count else "fail",
            said("doctor.accelerators.note", count=count, note=f.accelerator_note),
            said("doctor.accelerators.do"), count=count,
        )  # fmt: skip
    elif count:
        kinds = sorted({a.type for a in f.accelerators})
        seen = said("doctor.accelerators.well", count=count, kinds=kinds)
        yield p.finding("accelerators", "pass", seen, count=count)
    cut = [str(a.index) for a in f.accelerators if a.mig]
    if cut:
        yield p.finding(
            "mig", "warn", said("doctor.mig.on", cards=cut), said("doctor.mig.do"),
            accelerators=cut,
        )  # fmt: skip


def foreign(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """Accelerators that somebody uses without having claimed them."""
    claimed = {a for claim in f.claims for a in claim.accelerators}
    cut = {a.index for a in f.accelerators if a.mig}
    used = {i: who for i, who in strangers(f).items() if i not in claimed | cut}
    if used:
        listed = [said("doctor.foreign.by", card=i, who=who) for i, who in used.items()]
        yield p.finding(
            "foreign", "warn", said("doctor.foreign.used", what=several(listed)),
            said("doctor.foreign.do"), uses=[f"{i}: {who}" for i, who in used.items()],
        )  # fmt: skip


def fabric(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """On NVSwitch hosts CUDA fails, with every card listed, until the fabric is set up."""
    if not c.nvswitch or not c.fabric:
        return
    ill = [x for x in c.fabric if not all(w in FABRIC_WELL for w in _states(x))]
    if ill:
        yield p.finding(
            "fabric", "fail", said("doctor.fabric.ill", what=several(ill)),
            said("doctor.fabric.do"), states=ill,
        )  # fmt: skip
    else:
        yield p.finding("fabric", "pass", said("doctor.fabric.well"))


def _states(row: str) -> list[str]:
    """The states of one `index, state, status` row; a card that is no part of a fabric has none."""
    return [w.strip().lower() for w in row.split(",")[1:] if "N/A" not in w]


def rdma(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """RDMA ports that are not active are tried by transports all the same."""
    down = [f"{r.device}:{r.port} ({r.state or 'unknown'})" for r in c.rdma if r.state != "ACTIVE"]
    if down:
        yield p.finding(
            "rdma", "warn", said("doctor.rdma.down", what=several(down)), said("doctor.rdma.do"),
            ports=down,
        )  # fmt: skip
    elif c.rdma:
        yield p.finding("rdma", "pass", said("doctor.rdma.well", count=len(c.rdma)))


def npu_network(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """NPUs reach each other over addresses of their own, from /etc/hccn.conf."""
    npus = [a for a in f.accelerators if a.vendor == "ascend"]
    if not npus:
        return
    given = {x for x, a in c.hccn.items() if a} | {str(n.device) for n in c.npu_ports if n.address}
    lacking = [str(a.index) for a in npus if str(a.index) not in given]
    if lacking:
        yield p.finding(
            "npu_network", "warn", said("doctor.npu_network.none", cards=several(lacking)),
            said("doctor.npu_network.do"), npus=lacking,
        )  # fmt: skip
    else:
        yield p.finding("npu_network", "pass", said("doctor.npu_network.well", count=len(npus)))
    down = [str(n.device) for n in c.npu_ports if n.link == "DOWN"]
    if down:
        yield p.finding(
            "npu_link", "warn", said("doctor.npu_link.down", cards=several(down)),
            said("doctor.npu_link.do"), npus=down,
        )  # fmt: skip


def npu_tls(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """NPUs whose TLS switches differ do not talk to each other; it shows as a time-out."""
    mine = {n.device: n.tls for n in c.npu_ports if n.tls is not None}
    if not mine:
        return
    on = [str(n) for n, tls in mine.items() if tls]
    if 0 < len(on) < len(mine):
        yield p.finding(
            "npu_tls", "fail", said("doctor.npu_tls.mixed", cards=several(on)),
            said("doctor.npu_tls.mixed.do"), on=on,
        )  # fmt: skip
        return
    others = sorted(
        name
        for name, peer in p.peers.items()
        if name != p.host.name
        and any(n.tls is not None and n.tls != bool(on) for n in peer.npu_ports)
    )
    if others:
        yield p.finding(
            "npu_tls", "warn",
            said("doctor.npu_tls.others", on=bool(on), what=several(others)),
            said("doctor.npu_tls.others.do"), hosts=others,
        )  # fmt: skip
    else:
        seen = said("doctor.npu_tls.well", on=bool(on), count=len(mine))
        yield p.finding("npu_tls", "pass", seen)


GRAVE_XIDS = {
    31: "xid.mmu", 48: "xid.double_bit", 62: "xid.firmware", 63: "xid.remapped", 64: "xid.unmapped",
    74: "xid.nvlink", 79: "xid.bus", 94: "xid.contained", 95: "xid.uncontained",
    119: "xid.gsp_silent", 120: "xid.gsp_failed",
}  # fmt: skip
"""Source: NVIDIA's table of Xid errors; others are shown by their number alone."""


def xids(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """Errors that NVIDIA's driver has written into the kernel's log since the host was started."""
    if not c.xids:
        return
    listed = [
        said(
            "doctor.xid.one" if x.count == 1 else "doctor.xid.many",
            number=x.number,
            meaning=said(GRAVE_XIDS[x.number]) if x.number in GRAVE_XIDS else "",
            card=x.card,
            count=x.count,
        )
        for x in c.xids
    ]
    yield p.finding(
        "xid", "warn", said("doctor.xid.logged", what=several(listed)), said("doctor.xid.do"),
        latest=[x.text for x in c.xids[:3]],
    )  # fmt: skip


def inside(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """What a container sees of the accelerators that it was given."""
    if c.inside is None or not f.accelerators:
        return
    vendor = f.accelerators[0].vendor
    for verdict, seen, remedy in judged(p.host.runtime, vendor, c.inside):
        yield p.finding("inside", verdict, seen, remedy, image=c.inside.image)
