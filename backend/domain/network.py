"""The interface that carries KV traffic: used when there is one, never guessed among several.

Source: the user's document, "the KV transfer interface"; precedence in DESIGN of the host entry,
the command line and the environment.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Literal

from backend.domain.errors import Refused
from backend.domain.host import Host, HostFacts, Interface

VIRTUAL_KINDS = frozenset(
    {
        "bridge", "veth", "tun", "vxlan", "geneve", "dummy", "wireguard", "ipip", "ip6tnl", "sit",
        "gre", "gretap", "openvswitch", "macvlan", "ipvlan", "ppp", "vcan", "nlmon", "ifb",
    }
)  # fmt: skip
"""Kernel link kinds that lead nowhere by themselves. A bond, a VLAN and a team do."""
VIRTUAL_NAMES = (
    "docker", "br-", "veth", "cni", "flannel", "cali", "cilium_", "lxc", "weave", "datapath",
    "antrea", "kube-", "nodelocaldns", "vxlan", "genev_sys", "ovs-system", "virbr", "vnet", "tunl",
    "tun", "tap", "wg", "ppp", "tailscale", "zt", "dummy", "utun", "bridge",
)  # fmt: skip
"""Names that say the same where the kind is not known."""
UPLINK_BRIDGE = re.compile(r"^(vm)?br\d+$")
"""A plain `br0` or `vmbr0` often holds the host's own uplink; `br-…` is a container network's."""


def candidates(facts: HostFacts) -> tuple[Interface, ...]:
    """Interfaces that could carry KV traffic: up, with an address that can be routed to, and
    neither loopback nor virtual."""
    return tuple(
        i
        for i in facts.interfaces
        if i.up and not i.loopback and any(map(routable, i.addresses)) and not _virtual(i)
    )


def routable(address: str) -> bool:
    """Whether other hosts could reach an address: neither loopback nor link-local."""
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    return not (ip.is_loopback or ip.is_link_local or ip.is_unspecified or ip.is_multicast)


def _virtual(interface: Interface) -> bool:
    if UPLINK_BRIDGE.match(interface.name):
        return False
    return interface.kind in VIRTUAL_KINDS or interface.name.startswith(VIRTUAL_NAMES)


def management(facts: HostFacts) -> str | None:
    """The interface that holds the address we reach the host by; where that address is only a
    name, or is translated on the way, the one that the host's default route takes."""
    held = next((i.name for i in facts.interfaces if facts.address in i.addresses), None)
    return held or next((r.interface for r in facts.routes if r.to == "default"), None)


def kv_interface(
    host: Host,
    facts: HostFacts,
    plane: Literal["data", "control", "none"],
    default: str | None = None,
) -> str | None:
    """The name of the interface for KV traffic, or None where the mode needs none.

    `default` is the backend's own setting, used where the host entry has none. Raises Refused
    (`host.kv_interface`) when several could carry it.
    """
    if plane == "none":
        return None
    chosen = host.kv_transfer_ifname or default
    if chosen:
        return chosen
    if plane == "control":
        return management(facts)
    found = candidates(facts)
    if len(found) == 1:
        return found[0].name
    if not found:
        return management(facts)
    listed = ", ".join(f"{i.name} ({', '.join(i.addresses)})" for i in found)
    raise Refused.of(
        "host.kv_interface",
        f"host {host.name} has {len(found)} interfaces that could carry KV traffic: {listed}; "
        "none is chosen.",
        path=f"hosts.{host.name}.kv_transfer_ifname",
        values={"host": host.name, "candidates": [i.name for i in found]},
        remedy="Name the one for KV traffic in the host's kv_transfer_ifname.",
    )


def kv_address(
    host: Host, facts: HostFacts, plane: Literal["data", "control", "none"], default: str | None
) -> tuple[str, str] | None:
    """Name and address of the interface for KV traffic; None where there is none, or no choice."""
    try:
        name = kv_interface(host, facts, plane, default)
    except Refused:
        return None
    found = next((i for i in facts.interfaces if i.name == name), None)
    address = next((a for a in found.addresses if routable(a)), None) if found else None
    return (found.name, address) if found is not None and address is not None else None
