"""Which interface carries KV traffic: the only one, the named one, or a refusal."""

from __future__ import annotations

from typing import Any

import pytest

from backend.domain.errors import Refused
from backend.domain.host import Host, HostFacts, Interface
from backend.domain.network import candidates, kv_interface, management


def facts(*interfaces: Interface, address: str = "10.0.0.1") -> HostFacts:
    return HostFacts(boot_id="b", address=address, interfaces=interfaces)


def nic(name: str, address: str | None = "10.0.0.1", **more: Any) -> Interface:
    return Interface(name=name, addresses=() if address is None else (address,), **more)


def host(**more: Any) -> Host:
    return Host(name="gpu-1", address="gpu-1", **more)


@pytest.mark.parametrize(
    ("interface", "counts"),
    [
        (nic("eth0"), True),
        (nic("bond0", kind="bond"), True),
        (nic("eth0.100", kind="vlan"), True),
        (nic("ib0", kind="ipoib"), True),
        (nic("br0", kind="bridge"), True),
        (nic("br1", kind="bridge"), True),
        (nic("vmbr0", kind="bridge"), True),
        (nic("br-1a2b3c", kind="bridge"), False),
        (nic("docker0", kind="bridge"), False),
        (nic("docker0"), False),
        (nic("virbr0"), False),
        (nic("bridge0"), False),
        (nic("uplink", kind="bridge"), False),
        (nic("flannel.1", kind="vxlan"), False),
        (nic("cali1234"), False),
        (nic("tailscale0", kind="tun"), False),
        (nic("wg0"), False),
        (nic("lo", "127.0.0.1", loopback=True), False),
        (nic("eth1", None), False),
        (nic("eth1", "fe80::1"), False),
        (nic("eth1", "169.254.3.4"), False),
        (nic("eth1", "127.0.0.2"), False),
        (nic("eth1", "no address"), False),
        (nic("eth1", "fd00::1"), True),
        (nic("eth1", up=False), False),
    ],
)
def test_candidates(interface: Interface, counts: bool) -> None:
    assert (interface in candidates(facts(interface))) is counts


TWO = facts(nic("eth0"), nic("eth1", "10.1.0.1"), nic("docker0", "172.17.0.1", kind="bridge"))


def test_the_only_one_is_used() -> None:
    seen = facts(nic("lo", "127.0.0.1", loopback=True), nic("ib0", "10.1.0.1"), nic("docker0"))
    assert kv_interface(host(), seen, "data") == "ib0"


def test_several_are_never_guessed_among() -> None:
    with pytest.raises(Refused) as caught:
        kv_interface(host(), TWO, "data")
    problem = caught.value.problem
    assert problem.rule == "host.kv_interface"
    assert problem.path == "hosts.gpu-1.kv_transfer_ifname"
    assert problem.values["candidates"] == ["eth0", "eth1"]
    assert "eth0 (10.0.0.1), eth1 (10.1.0.1)" in problem.message
    assert "kv_transfer_ifname" in problem.remedy


@pytest.mark.parametrize("plane", ["data", "control"])
def test_the_host_entry_comes_before_the_setting(plane: Any) -> None:
    assert kv_interface(host(kv_transfer_ifname="eth1"), TWO, plane, "eth9") == "eth1"
    assert kv_interface(host(), TWO, plane, "eth9") == "eth9"


def test_the_control_plane_takes_the_management_interface() -> None:
    assert kv_interface(host(), TWO, "control") == "eth0"
    assert management(TWO) == "eth0"


def test_no_candidate_falls_back_to_the_management_interface() -> None:
    seen = facts(nic("docker0", "10.0.0.1", kind="bridge"))
    assert kv_interface(host(), seen, "data") == "docker0"
    assert kv_interface(host(), facts(address="10.9.9.9"), "data") is None


def test_a_mode_that_needs_none_gets_none() -> None:
    assert kv_interface(host(kv_transfer_ifname="eth1"), TWO, "none", "eth9") is None
