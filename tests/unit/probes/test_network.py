"""Interfaces and routes from tools of every age, and what drivers and links complain of."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.domain.checkup import NpuPort
from backend.domain.host import HostFacts, Interface, Route
from backend.domain.network import candidates, management
from backend.probes import host, network, trouble
from backend.probes.host import SECTION

TOOLS = Path(__file__).parents[2] / "data" / "tools"


def sample(name: str) -> str:
    """A tool's output, without the line that says where it came from."""
    text = (TOOLS / name).read_text()
    return text.partition("\n")[2] if text.startswith("# source") else text


OLD_IFCONFIG = """\
eth0      Link encap:Ethernet  HWaddr 00:11:22:33:44:55
          inet addr:10.0.0.5  Bcast:10.0.0.255  Mask:255.255.255.0
          inet6 addr: fe80::1/64 Scope:Link
          inet6 addr: 2001:db8::5/64 Scope:Global
          UP BROADCAST RUNNING MULTICAST  MTU:1500  Metric:1

eth1      Link encap:Ethernet  HWaddr 00:11:22:33:44:56
          BROADCAST MULTICAST  MTU:1500  Metric:1

lo        Link encap:Local Loopback
          inet addr:127.0.0.1  Mask:255.0.0.0
          UP LOOPBACK RUNNING  MTU:65536  Metric:1
"""
LINES = """\
1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN mode DEFAULT \\    link/loopback
2: ens5: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9001 qdisc mq state UP mode DEFAULT \\    link/ether
3: bond0.7@bond0: <BROADCAST,MULTICAST,UP> mtu 1500 qdisc noqueue state UP \\    link/ether
4: docker0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 1500 qdisc noqueue state DOWN \\    link/ether
1: lo    inet 127.0.0.1/8 scope host lo\\       valid_lft forever preferred_lft forever
2: ens5    inet 10.0.0.7/20 brd 10.0.15.255 scope global dynamic ens5\\       valid_lft 3000sec
2: ens5    inet6 fe80::8ff/64 scope link \\       valid_lft forever preferred_lft forever
3: bond0.7    inet 10.9.0.7/24 scope global bond0.7\\       valid_lft forever
4: docker0    inet 172.17.0.1/16 scope global docker0\\       valid_lft forever
"""


def test_ifconfig_of_net_tools() -> None:
    """Its addresses were masked by whoever shared it: they are no addresses."""
    found = network.by_ifconfig(sample("ifconfig-1-flannel.txt"))
    assert found == (
        Interface(name="ens5f0"),
        Interface(name="flannel.1"),
        Interface(name="lo", addresses=("127.0.0.1",), loopback=True),
    )
    named = sample("ifconfig-1-flannel.txt").replace("inet *.*.*.*", "inet 10.68.1.9", 1)
    facts = HostFacts(boot_id="b", address="x", interfaces=network.by_ifconfig(named))
    assert [i.name for i in candidates(facts)] == ["ens5f0"]


def test_ifconfig_of_old_and_of_busybox() -> None:
    assert network.by_ifconfig(OLD_IFCONFIG) == (
        Interface(name="eth0", addresses=("10.0.0.5", "2001:db8::5")),
        Interface(name="eth1", up=False),
        Interface(name="lo", addresses=("127.0.0.1",), loopback=True),
    )


def test_ip_without_json_and_the_kinds_that_the_kernel_knows() -> None:
    found = network.by_lines(LINES)
    assert found == (
        Interface(name="lo", addresses=("127.0.0.1",), loopback=True),
        Interface(name="ens5", addresses=("10.0.0.7",)),
        Interface(name="bond0.7", addresses=("10.9.0.7",)),
        Interface(name="docker0", addresses=("172.17.0.1",), up=False),
    )
    kernel = (Interface(name="docker0", kind="bridge"), Interface(name="ens5"))
    assert network.interfaces({"ip-lines": LINES}, kernel)[3].kind == "bridge"
    assert network.interfaces({"ip": "{", "ip-lines": ""}, kernel) == kernel
    assert network.interfaces({}, ()) == ()


def test_eight_rails_and_the_one_that_leads_out() -> None:
    found = network.routes(sample("ip-route-1-eight-rails.txt"))
    assert found[0] == Route(to="default", interface="eth10", gateway="10.16.6.254")
    assert [r.interface for r in found[2:]] == [*(f"eth{i}" for i in range(2, 10)), "docker0"]
    assert len(found) == 11
    facts = HostFacts(boot_id="b", address="gpu7.example", routes=found)
    assert management(facts) == "eth10"
    text = (
        '[{"dst":"default","gateway":"10.0.0.1","dev":"eth0"},{"dst":"10.0.0.0/24","dev":"eth0"}]'
    )
    assert network.routes(text) == (
        Route(to="default", interface="eth0", gateway="10.0.0.1"),
        Route(to="10.0.0.0/24", interface="eth0"),
    )
    assert network.routes("") == network.routes("Error: ip: not found dev x") == ()


def test_what_npus_say_of_their_network_ports() -> None:
    text = sample("hccn-3-hccn_tool-ip-route-lldp.txt")
    tls = (
        "--- hccn_tool -i 0 -tls -g\n"
        "dev_id:0, tls switch[0](0:disable, 1:enable), tls preconfigured[1](0:non-preset, "
        "1:preset), tls alarm time threshold[60]days\n"
        "--- hccn_tool -i 3 -tls -g\ndev_id:3, tls switch[1](0:disable, 1:enable)\n"
    )
    assert trouble.npu_ports(text + tls) == (
        NpuPort(device=0, link="UP", tls=False),
        NpuPort(device=3, address="10.20.112.213", tls=True),
    )
    assert trouble.npu_ports("hccn_tool: permission denied") == ()


def test_driver_errors_are_counted_by_card() -> None:
    text = sample("xid-1-gsp-timeout-119.txt")
    (found,) = trouble.xids(text)
    assert (found.card, found.number, found.count) == ("0000:61:00", 119, 4)
    assert found.text.startswith("Timeout waiting for RPC from GSP! Expected function 103")
    two = trouble.xids(text.replace("0000:61:00): 119", "0000:62:00): 79", 1))
    assert [(x.card, x.number, x.count) for x in two] == [
        ("0000:61:00", 119, 3),
        ("0000:62:00", 79, 1),
    ]


ALL = [
    sample(n)
    for n in ("ifconfig-1-flannel.txt", "ip-route-1-eight-rails.txt", "xid-1-gsp-timeout-119.txt",
              "hccn-3-hccn_tool-ip-route-lldp.txt", "ip-j-addr-two-nics-docker0.json",
              "docker-ps-1-short.txt", "docker-inspect-2-running-gpu.json.txt")
] + [OLD_IFCONFIG, LINES, '[{"ifname": 1, "addr_info": 3, "linkinfo": []}]']  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(ALL), st.sampled_from(ALL), st.integers(0, 4000), st.integers(0, 4000),
       st.text(max_size=9))  # fmt: skip
def test_damaged_output_never_raises_and_names_nothing_that_it_does_not_hold(
    one: str, other: str, start: int, end: int, put: str
) -> None:
    text = one[:start] + put + other[end:]
    parts = ("ip", "ip-lines", "ifconfig", "route", "net")
    facts = host.parse("".join(f"\n{SECTION}{p}\n{text}\n" for p in parts))
    for interface in facts.interfaces:
        assert interface.name in text
        assert all(a in text for a in interface.addresses)
    assert all(r.interface in text and r.to in text for r in facts.routes)
    assert all(x.card in text and str(x.number) in text for x in trouble.xids(text))
    assert all(n.address in text for n in trouble.npu_ports(text))
    assert facts.accelerators == ()


@pytest.mark.parametrize("name", ["docker-ps-1-short.txt", "docker-inspect-2-running-gpu.json.txt"])
def test_what_containers_tools_print_is_taken_for_nothing_else(name: str) -> None:
    assert network.by_ip(sample(name)) == network.by_lines(sample(name)) == ()
    assert network.routes(sample(name)) == ()
