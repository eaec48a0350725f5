"""Reading what a look at a host printed, from real tools' output where there is some."""

from __future__ import annotations

from pathlib import Path

import pytest

from backend.domain.host import Claim, Interface
from backend.probes.gpus import queried as nvidia
from backend.probes.host import SECTION, address, by_sys, parse, sections, speeds
from backend.probes.network import by_ip

TOOLS = Path(__file__).parents[2] / "data" / "tools"
ROWS = """\
1, GPU-5b1, NVIDIA H100 80GB HBM3, 81559
0, GPU-a0f, NVIDIA H100 80GB HBM3, 81559
"""


def look(**parts: str) -> str:
    return "".join(f"\n{SECTION}{name}\n{body}\n" for name, body in parts.items())


def test_accelerators_in_index_order() -> None:
    found, note = nvidia(ROWS + "\n== status 0\n")
    assert [(a.index, a.uuid, a.type, a.memory_mib) for a in found] == [
        (0, "GPU-a0f", "NVIDIA H100 80GB HBM3", 81559),
        (1, "GPU-5b1", "NVIDIA H100 80GB HBM3", 81559),
    ]
    assert note == ""


def test_no_tool_no_accelerators_no_note() -> None:
    assert nvidia(None) == nvidia("") == nvidia("\n") == ((), "")


@pytest.mark.parametrize(
    ("sample", "status", "says"),
    [
        ("nvidia-smi-12-no-devices.txt", 6, "No devices were found"),
        ("nvidia-smi-7-driver-mismatch.txt", 18, "Driver/library version mismatch"),
        ("nvidia-smi-4-device-handle-error.txt", 255, "Unable to determine the device handle"),
    ],
)
def test_a_tools_trouble_is_a_note_and_never_a_device(sample: str, status: int, says: str) -> None:
    found, note = nvidia((TOOLS / sample).read_text() + f"\n== status {status}\n")
    assert found == ()
    assert says in note


def test_the_good_ones_are_kept_beside_a_broken_one() -> None:
    broken = (TOOLS / "nvidia-smi-4-device-handle-error.txt").read_text().splitlines()[0]
    found, note = nvidia(f"{ROWS}{broken}\n\n== status 15\n")
    assert [a.index for a in found] == [0, 1]
    assert note == broken


def test_odd_fields() -> None:
    found, _ = nvidia('0, GPU-1, "Grace, Hopper", [N/A]\n1, GPU-2, A, 40960 MiB\n\n== status 0\n')
    assert [(a.type, a.memory_mib) for a in found] == [("Grace, Hopper", 0), ("A", 40960)]


def test_a_tool_that_hung_is_said() -> None:
    assert nvidia("\n== status 124\n") == ((), "nvidia-smi ended with status 124")
    found, note = nvidia("WARNING: infoROM is corrupted\n")
    assert found == ()
    assert note == "WARNING: infoROM is corrupted"


def test_interfaces_from_ip() -> None:
    found = {i.name: i for i in by_ip((TOOLS / "ip-j-addr-two-nics-docker0.json").read_text())}
    assert found["lo"].loopback
    assert found["eth1"] == Interface(name="eth1", addresses=("192.168.56.30",))
    assert found["docker0"] == Interface(
        name="docker0", addresses=("172.17.0.1",), up=False, kind="bridge"
    )


@pytest.mark.parametrize("text", ["", "not json", "{}", "[1, {}]", "[[]]"])
def test_interfaces_that_cannot_be_read(text: str) -> None:
    assert by_ip(text) == ()


def test_interfaces_from_the_kernel() -> None:
    text = "docker0 1 down bridge\neth0 1 up \nlo 772 unknown virtual\n* "
    assert by_sys(text) == (
        Interface(name="docker0", up=False, kind="bridge"),
        Interface(name="eth0"),
        Interface(name="lo", loopback=True),
    )


ETH = (Interface(name="lo", addresses=("127.0.0.1",), loopback=True),
       Interface(name="eth0", addresses=("10.0.0.5",)))  # fmt: skip


@pytest.mark.parametrize(
    ("ssh", "fallback", "expected"),
    [
        ("1.2.3.4 99 10.0.0.5 22", "198.51.100.7", "10.0.0.5"),
        ("127.0.0.1 99 127.0.0.3 22", "127.0.0.3", "127.0.0.3"),
        ("::1 99 ::1 22", "localhost", "::1"),
        ("", "127.0.0.4", "127.0.0.4"),
        ("127.0.0.1 99 127.0.0.1 22", "gpu7.lan", "gpu7.lan"),
        ("", "gpu7.lan", "gpu7.lan"),
        ("127.0.0.1 99 127.0.0.1 22", "", "10.0.0.5"),
        ("garbage", "", "10.0.0.5"),
    ],
)
def test_where_the_others_reach_it(ssh: str, fallback: str, expected: str) -> None:
    assert address(ssh, ETH, fallback) == expected


def test_a_whole_look() -> None:
    facts = parse(
        "rc noise\n"
        + look(
            boot="b-1", hostname="gpu7", ssh="1.1.1.1 5 10.0.0.5 22", home="/home/ml",
            tools="flock", ephemeral="32768\t60999", reserved="40000-40063,41000",
            tcp="1F90\n0016\n",
            ip="", net="eth0 1 up ",
            claims="F a/claim:owner=me\nF a/claim:accelerators=0,1\nF a/claim:ports=40000",
            nvidia=ROWS + "\n== status 0", end="",
        )
    )  # fmt: skip
    assert (facts.boot_id, facts.hostname, facts.address) == ("b-1", "gpu7", "10.0.0.5")
    assert facts.listening == {8080, 22}
    assert facts.claims == (Claim(owner="me", instance="a", accelerators=(0, 1), ports=(40000,)),)
    assert facts.missing_tools == ("flock",)
    assert (facts.ephemeral, facts.reserved) == ((32768, 60999), ((40000, 40063), (41000, 41000)))
    assert [i.name for i in facts.interfaces] == ["eth0"]
    assert len(facts.accelerators) == 2


def test_a_look_cut_off_keeps_what_came() -> None:
    facts = parse(look(boot="b-1", hostname="x") + f"\n{SECTION}nvid", "10.0.0.9")
    assert (facts.boot_id, facts.address, facts.accelerators) == ("b-1", "10.0.0.9", ())
    assert (facts.ephemeral, facts.reserved) == ((32768, 60999), ())
    assert set(sections("")) == set()


def test_speeds_of_links_whose_driver_tells_them() -> None:
    assert speeds("eth0 25000\nlo \nib0 -1\nbond0 200000\nodd line here\n") == {
        "eth0": 25000,
        "bond0": 200000,
    }
    assert speeds("") == {}
