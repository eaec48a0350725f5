"""npu-smi's tables, from machines of several generations and releases."""

from __future__ import annotations

from pathlib import Path

import pytest

from backend.probes.host import SECTION
from backend.probes.host import parse as parse_host
from backend.probes.npu import logical_ids, parse

TOOLS = Path(__file__).parents[2] / "data" / "tools"


def sample(name: str) -> str:
    """A tool's output."""
    return (TOOLS / name).read_text()


def variants() -> dict[str, str]:
    text = sample("npu-smi-5-map-m-variants.txt")
    return {part[1:2]: part[3:] for part in text.split("--- ")[1:]}


@pytest.mark.parametrize(
    ("name", "count", "kind", "memory"),
    [
        ("npu-smi-1-a3-16chips-idle.txt", 16, "Ascend910", {65536}),
        ("npu-smi-2-910b2c-4cards-busy.txt", 4, "Ascend 910B2C", {65536}),
        ("npu-smi-3-910b3-25.3.rc1-busy.txt", 2, "Ascend 910B3", {65536}),
        ("npu-smi-6-310p3-duo-24.1.rc3.txt", 2, "Ascend 310P3", {44280, 43693}),
        ("npu-smi-10-950pr-25.7.rc1.6.txt", 1, "Ascend950PR", {131072}),
        ("npu-smi-16-310p3-handtyped.txt", 2, "Ascend 310P3", {44280, 43693}),
    ],
)
def test_chips_of_every_layout(name: str, count: int, kind: str, memory: set[int]) -> None:
    found, note = parse(f"{sample(name)}\n== status 0\n")
    assert [a.index for a in found] == list(range(count))
    assert {a.type for a in found} == {kind}
    assert {a.memory_mib for a in found} == memory
    assert {a.vendor for a in found} == {"ascend"}
    assert len({a.uuid for a in found}) == count
    assert note == ""


def test_logical_ids_are_the_index_where_the_tool_knows_them() -> None:
    table = sample("npu-smi-3-910b3-25.3.rc1-busy.txt")
    swapped = "NPU ID  Chip ID  Chip Logic ID  Chip Name\n0 0 1 Ascend\n1 0 0 Ascend\n"
    found, _ = parse(f"{table}\n== status 0\n{swapped}")
    assert [(a.index, a.uuid) for a in found] == [
        (0, "NPU-0000:C2:00.0-0"),
        (1, "NPU-0000:C1:00.0-0"),
    ]
    partial = "NPU ID  Chip ID  Chip Logic ID  Chip Name\n0 0 5 Ascend\n"
    found, _ = parse(f"{table}\n== status 0\n{partial}")
    assert [a.index for a in found] == [0, 1]


def test_the_mapping_in_each_of_its_shapes() -> None:
    parts = variants()
    assert logical_ids(parts["a"]) == {(0, 0): 0, (1, 0): 1}
    assert logical_ids(parts["b"]) == {(0, 0): 0, (0, 1): 1}
    assert logical_ids(parts["c"]) == {(8, 0): 0, (9, 0): 1}
    assert logical_ids("NPU ID  Slot ID  Chip ID  Chip Phy-ID  Chip Name\n0 0 0 0 Ascend") == {}
    assert logical_ids(sample("npu-smi-4-map-m-910b3.txt")) == {(0, 0): 0, (1, 0): 1}


def test_trouble_and_unknown_layouts_are_a_note_and_never_a_device() -> None:
    found, note = parse(sample("npu-smi-12-dcmi-8005.txt") + "\n== status 255\n")
    assert found == ()
    assert "status 255" in note
    assert "dcmi module initialize failed. ret is -8005" in note
    found, note = parse("| device 0 | fine | 64 GB |\n== status 0\n")
    assert found == ()
    assert "device 0 | fine" in note
    assert parse(None) == parse("") == ((), "")
    assert "did not end" in parse("+---+\n")[1]


def test_the_table_of_processes_is_no_device_and_a_sick_chip_is_named() -> None:
    table = sample("npu-smi-2-910b2c-4cards-busy.txt")
    found, note = parse(table.replace("OK   ", "Alarm", 1) + "\n== status 0\n")
    assert len(found) == 4
    assert note == "NPU 12 chip 0 is Alarm"
    processes = table[table.index("| NPU     Chip  ") :]
    assert parse(f"{processes}\n== status 0\n")[0] == ()


def test_a_host_of_npus_and_the_files_that_are_there() -> None:
    table = sample("npu-smi-3-910b3-25.3.rc1-busy.txt")
    text = f"\n{SECTION}npu\n{table}\n== status 0\n\n{SECTION}files\n/etc/hccn.conf\n"
    facts = parse_host(text)
    assert [a.type for a in facts.accelerators] == ["Ascend 910B3"] * 2
    assert facts.files == {"/etc/hccn.conf"}
