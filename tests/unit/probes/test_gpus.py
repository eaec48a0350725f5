"""nvidia-smi in its forms: query, more, processes, table; mutated samples never make a device."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.domain.host import Accelerator, Use
from backend.probes import gpus, npu, uses
from backend.probes.gpus import queried, tabled, with_more
from backend.probes.host import SECTION, parse

TOOLS = Path(__file__).parents[2] / "data" / "tools"
ROWS = "0, GPU-a0f, NVIDIA H100 80GB HBM3, 81559\n1, GPU-5b1, NVIDIA H100 80GB HBM3, 81559\n"


def card(index: int, **more: object) -> Accelerator:
    uuid = ("GPU-a0f", "GPU-5b1")[index]
    return Accelerator.model_validate(
        {"index": index, "uuid": uuid, "vendor": "nvidia", "type": "H100", **more}
    )


@pytest.mark.parametrize(
    "row",
    [
        "1, [GPU is lost], [GPU is lost], [GPU is lost]",
        "1, GPU-5b1, ERR!, 81559",
        "1, GPU-5b1, [Unknown Error], [Unknown Error]",
        "1, , NVIDIA H100, 81559",
        "one, GPU-5b1, NVIDIA H100, 81559",
        "99999999, GPU-5b1, NVIDIA H100, 81559",
        "0, GPU-5b1, a second card under a number already seen, 1",
        "٣, GPU-5b1, NVIDIA H100, 81559",
    ],
)
def test_a_lost_card_is_a_note_beside_the_good_ones(row: str) -> None:
    first = ROWS.splitlines()[0]
    found, note = queried(f"{first}\n{row}\n== status 0\n")
    assert [a.uuid for a in found] == ["GPU-a0f"]
    assert note == row


def test_driver_memory_and_mig_are_added_where_they_are_known() -> None:
    found, _ = queried(f"{ROWS}== status 0")
    more = with_more(found, "1, 550.54.15, 45, Enabled\n0, 550.54.15, [N/A], [N/A]\nnoise\n")
    assert [(a.driver, a.used_mib, a.mig) for a in more] == [
        ("550.54.15", 0, False),
        ("550.54.15", 45, True),
    ]
    assert with_more(found, None) == found
    assert with_more(found, 'Field "mig.mode.current" is not a valid field to query.') == found


def listing(*names: str) -> str:
    return "".join(f"GPU {i}: {n} (UUID: GPU-{i:04d})\n" for i, n in enumerate(names))


# number, used and whole memory in MiB, MIG: read off the samples by eye
TABLES = {
    "nvidia-smi-1-a100-mig7.txt": ("535.161.08", [(0, 38, 40960, True)]),
    "nvidia-smi-2-dgx-a100-mig-pending.txt": (
        "450.102.04",
        [
            (0, 400, 40537, False), (1, 5701, 40537, False), (2, 36121, 40537, False),
            (3, 0, 40537, False), (7, 0, 40537, False),
        ],
    ),
    "nvidia-smi-5-h100x2-idle-550.txt": ("550.54.15", [(0, 0, 81559, False), (1, 0, 81559, False)]),
    "nvidia-smi-8-h100-busy-535.txt": (
        "535.129.03",
        [(0, 18449, 81559, False), (1, 16273, 81559, False), (2, 16273, 81559, False)],
    ),
    "nvidia-smi-10-h200-bus8f.txt": ("570.124.06", [(0, 1, 143771, False), (1, 1, 143771, False)]),
    "nvidia-smi-14-h100-nvl-cuda13-idle.txt": (
        "580.95.05", [(0, 0, 95830, False), (1, 0, 95830, False)],
    ),
    "nvidia-smi-12-no-devices.txt": ("", []),
    "nvidia-smi-7-driver-mismatch.txt": ("", []),
    "nvidia-smi-4-device-handle-error.txt": ("", []),
}  # fmt: skip


@pytest.mark.parametrize("sample", TABLES)
def test_the_plain_table_is_read_where_there_is_no_query(sample: str) -> None:
    driver, cards = TABLES[sample]
    found = tabled((TOOLS / sample).read_text(), listing(*["NVIDIA Card"] * 8))
    assert [(a.index, a.used_mib, a.memory_mib, a.mig) for a in found] == cards
    assert {a.driver for a in found} <= {driver}
    assert all(a.uuid == f"GPU-{a.index:04d}" for a in found)


@pytest.mark.parametrize("sample", TABLES)
def test_a_table_without_a_listing_makes_no_device(sample: str) -> None:
    text = (TOOLS / sample).read_text()
    assert tabled(text, "") == tabled(text, None) == tabled(None, listing("A")) == ()


def test_processes_are_counted_where_they_run() -> None:
    text = (
        "GPU-5b1|4711| 40536|bob||/usr/bin/python3\n"
        "GPU-a0f|12|[N/A]|root|chat-prefill-abcd| VLLM::Worker|odd\n"
        "GPU-a0f|99|30|root||nvidia-cuda-mps-server\n"
        "GPU-zzz|5|1|root||elsewhere\n"
        "GPU-a0f|not a pid|1|||x\nGPU-a0f\n"
    )
    assert uses.by_uuid(text, [card(0), card(1)]) == (
        Use(index=0, pid=12, name="VLLM::Worker|odd", user="root", instance="chat-prefill-abcd"),
        Use(index=1, pid=4711, name="python3", memory_mib=40536, user="bob"),
    )
    assert Use(index=1, pid=4711, name="python3", memory_mib=40536, user="bob").text() == (
        "python3 (pid 4711, 40536 MiB, bob)"
    )


def test_npu_processes_are_found_by_npu_and_chip() -> None:
    table = (TOOLS / "npu-smi-2-910b2c-4cards-busy.txt").read_text()
    found, _ = npu.parse(table + "\n== status 0\n")
    text = "12 0| 78617|49385|root||python\n15 0|79097|49379|||python\n3 0|1|1|||x\n"
    assert [(u.index, u.pid) for u in uses.by_chip(text, table, found)] == [(0, 78617), (3, 79097)]


def test_a_whole_look_takes_the_table_only_when_the_query_failed() -> None:
    sample = (TOOLS / "nvidia-smi-5-h100x2-idle-550.txt").read_text()

    def look(**parts: str) -> str:
        return "".join(f"\n{SECTION}{n.replace('_', '-')}\n{b}\n" for n, b in parts.items())

    facts = parse(look(
        nvidia="Option not recognized\n== status 2",
        nvidia_list=listing("NVIDIA H100", "NVIDIA H100"), nvidia_table=sample,
    ))  # fmt: skip
    assert [a.uuid for a in facts.accelerators] == ["GPU-0000", "GPU-0001"]
    assert facts.accelerator_note == "Option not recognized"
    facts = parse(look(nvidia=f"{ROWS}== status 0", nvidia_uses="GPU-5b1|7|1|bob||python"))
    assert [u.index for u in facts.uses] == [1]


SAMPLES = [p.read_text() for p in sorted(TOOLS.glob("*smi*.txt"))] + [
    f"{ROWS}== status 0",
    listing("NVIDIA H100", "NVIDIA H100"),
]
WORD = re.compile(r"(?:GPU|MIG)-[0-9A-Za-z./-]+")


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A sample with pieces cut out, doubled, swapped or overwritten."""
    text = draw(st.sampled_from(SAMPLES))
    for _ in range(draw(st.integers(0, 6))):
        lines = text.split("\n")
        i = draw(st.integers(0, len(lines) - 1))
        match draw(st.sampled_from(["cut", "double", "swap", "char", "end", "join"])):
            case "cut":
                del lines[i]
            case "double":
                lines.insert(i, lines[i])
            case "swap":
                j = draw(st.integers(0, len(lines) - 1))
                lines[i], lines[j] = lines[j], lines[i]
            case "char":
                at = draw(st.integers(0, len(lines[i])))
                lines[i] = lines[i][:at] + draw(st.text(max_size=3)) + lines[i][at + 1 :]
            case "end":
                lines = lines[: i + 1]
            case "join":
                lines[i : i + 2] = ["".join(lines[i : i + 2])]
        text = "\n".join(lines)
    return text


@settings(max_examples=400, deadline=None)
@given(mutated(), mutated(), mutated())
def test_no_text_raises_or_makes_up_a_device(first: str, second: str, third: str) -> None:
    """Every device found stands in the text: by its UUID, or by its bus id for NPUs."""
    look = (
        f"\n{SECTION}nvidia\n{first}\n{SECTION}nvidia-more\n{second}\n{SECTION}nvidia-uses\n{third}"
        f"\n{SECTION}nvidia-list\n{second}\n{SECTION}nvidia-table\n{third}"
        f"\n{SECTION}npu\n{third}\n{SECTION}npu-uses\n{first}\n"
    )
    facts = parse(look, "10.0.0.1")
    for a in facts.accelerators:
        if a.vendor == "nvidia":
            assert a.uuid in WORD.findall(look)
            assert str(a.index) in look
        else:
            assert a.uuid.removeprefix("NPU-").rpartition("-")[0] in third
    assert len({a.index for a in facts.accelerators}) == len(facts.accelerators)
    assert all(u.index in {a.index for a in facts.accelerators} for u in facts.uses)
    assert isinstance(gpus.queried(look), tuple)
