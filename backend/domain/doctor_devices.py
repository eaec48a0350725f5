"""The doctor's checks on accelerators and on the networks that move KV between them."""

from __future__ import annotations

from collections.abc import Iterator

from backend.domain.checkup import Checkup
from backend.domain.doctor import Finding, Patient, some
from backend.domain.host import HostFacts
from backend.domain.inside import judged
from backend.domain.picture import strangers

FABRIC_WELL = ("completed", "success")


def accelerators(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """Devices, and what the vendor's tool complains of."""
    count = len(f.accelerators)
    if f.accelerator_note:
        yield p.finding(
            "accelerators", "warn" if count else "fail",
            f"{count} found; the vendor's tool says: {f.accelerator_note}",
            "Look at the driver and at dmesg; reboot after a driver update.", count=count,
        )  # fmt: skip
    elif count:
        kinds = sorted({a.type for a in f.accelerators})
        yield p.finding("accelerators", "pass", f"{count} x {', '.join(kinds)}", count=count)
    cut = [str(a.index) for a in f.accelerators if a.mig]
    if cut:
        yield p.finding(
            "mig", "warn", f"MIG is on for {', '.join(cut)}: members cannot run on slices",
            "Switch it off there: nvidia-smi -i N -mig 0.", accelerators=cut,
        )  # fmt: skip


def foreign(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """Accelerators that somebody uses without having claimed them."""
    claimed = {a for claim in f.claims for a in claim.accelerators}
    cut = {a.index for a in f.accelerators if a.mig}
    used = [f"{i} by {who}" for i, who in strangers(f).items() if i not in claimed | cut]
    if used:
        yield p.finding(
            "foreign", "warn", f"used by others: {some(used)}",
            "They count as busy; end those programs to free them.", uses=used,
        )  # fmt: skip


def fabric(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """On NVSwitch hosts CUDA fails, with every card listed, until the fabric is set up."""
    if not c.nvswitch or not c.fabric:
        return
    ill = [x for x in c.fabric if not all(w in FABRIC_WELL for w in _states(x))]
    if ill:
        yield p.finding(
            "fabric", "fail", f"its NVSwitch fabric is not ready: {some(ill)}",
            "Start it: systemctl start nvidia-fabricmanager, of the driver's own version.",
            states=ill,
        )  # fmt: skip
    else:
        yield p.finding("fabric", "pass", "the NVSwitch fabric is ready")


def _states(row: str) -> list[str]:
    """The states of one `index, state, status` row; a card that is no part of a fabric has none."""
    return [w.strip().lower() for w in row.split(",")[1:] if "N/A" not in w]


def rdma(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """RDMA ports that are not active are tried by transports all the same."""
    down = [f"{r.device}:{r.port} ({r.state or 'unknown'})" for r in c.rdma if r.state != "ACTIVE"]
    if down:
        yield p.finding(
            "rdma", "warn", f"RDMA ports that are not active: {some(down)}",
            "Bring the link up, or keep the engines off it (UCX_NET_DEVICES, NCCL_IB_HCA).",
            ports=down,
        )  # fmt: skip
    elif c.rdma:
        yield p.finding("rdma", "pass", f"{len(c.rdma)} RDMA ports are active")


def npu_network(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """NPUs reach each other over addresses of their own, from /etc/hccn.conf."""
    npus = [a for a in f.accelerators if a.vendor == "ascend"]
    if not npus:
        return
    given = {x for x, a in c.hccn.items() if a} | {str(n.device) for n in c.npu_ports if n.address}
    lacking = [str(a.index) for a in npus if str(a.index) not in given]
    if lacking:
        yield p.finding(
            "npu_network", "warn",
            f"neither /etc/hccn.conf nor hccn_tool names an address for NPU {some(lacking)}",
            "Set them: hccn_tool -i N -ip -s address A netmask M; transfers between hosts need "
            "them.", npus=lacking,
        )  # fmt: skip
    else:
        yield p.finding("npu_network", "pass", f"{len(npus)} NPUs have addresses of their own")
    down = [str(n.device) for n in c.npu_ports if n.link == "DOWN"]
    if down:
        yield p.finding(
            "npu_link", "warn", f"the network port is down of NPU {some(down)}",
            "Look at its cable and its switch: hccn_tool -i N -link -g, -lldp -g.", npus=down,
        )  # fmt: skip


def npu_tls(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """NPUs whose TLS switches differ do not talk to each other; it shows as a time-out."""
    mine = {n.device: n.tls for n in c.npu_ports if n.tls is not None}
    if not mine:
        return
    on = [str(n) for n, tls in mine.items() if tls]
    if 0 < len(on) < len(mine):
        yield p.finding(
            "npu_tls", "fail", f"the TLS switch is on for NPU {some(on)} and off for the others",
            "Make them equal on every card and host: hccn_tool -i N -tls -s enable 0.", on=on,
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
            f"the TLS switch is {'on' if on else 'off'} here, and otherwise on {some(others)}",
            "Make it equal on every host that shares a group: hccn_tool -i N -tls -s enable 0.",
            hosts=others,
        )  # fmt: skip
    else:
        state = "on" if on else "off"
        yield p.finding("npu_tls", "pass", f"the TLS switch is {state} for all {len(mine)} NPUs")


GRAVE_XIDS = {
    31: "a memory fault of a program", 48: "a double-bit ECC error", 62: "the card's own firmware",
    63: "rows of its memory were remapped", 64: "rows of its memory could not be remapped",
    74: "NVLink", 79: "the card has fallen off the bus", 94: "a contained ECC error",
    95: "an uncontained ECC error", 119: "its GSP firmware does not answer",
    120: "its GSP firmware failed",
}  # fmt: skip
"""Source: NVIDIA's table of Xid errors; others are shown by their number alone."""


def xids(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """Errors that NVIDIA's driver has written into the kernel's log since the host was started."""
    if not c.xids:
        return
    said = [
        f"{x.number}" + (f" ({GRAVE_XIDS[x.number]})" if x.number in GRAVE_XIDS else "")
        + f" on {x.card}, {x.count} {'time' if x.count == 1 else 'times'}"
        for x in c.xids
    ]  # fmt: skip
    yield p.finding(
        "xid", "warn", f"the driver has logged Xid {some(said)}",
        "Look at dmesg; a card that hangs needs a reset (nvidia-smi -r) or a reboot, one that "
        "does it again a replacement.", latest=[x.text for x in c.xids[:3]],
    )  # fmt: skip


def inside(p: Patient, f: HostFacts, c: Checkup) -> Iterator[Finding]:
    """What a container sees of the accelerators that it was given."""
    if c.inside is None or not f.accelerators:
        return
    vendor = f.accelerators[0].vendor
    for verdict, seen, remedy in judged(p.host.runtime, vendor, c.inside):
        yield p.finding("inside", verdict, seen, remedy, image=c.inside.image)
