"""Every check of the doctor: what passes, what is to look at, what stands in the way."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from backend.domain.checkup import (
    Box,
    Checkup,
    Listener,
    Marked,
    ModelCopy,
    NpuPort,
    Rdma,
    Reach,
    Xid,
)
from backend.domain.doctor import Finding, Needs, Patient, failures
from backend.domain.doctor_checks import examine
from backend.domain.errors import Problem
from backend.domain.host import Accelerator, Claim, Host, HostFacts, Interface, Use
from backend.domain.inside import Inside
from backend.domain.rules.words import say
from backend.domain.telling import told

HAN = re.compile("[\u4e00-\u9fff]")
GPU = Accelerator(index=0, uuid="GPU-0", vendor="nvidia", type="H100")
NPU = Accelerator(index=0, uuid="NPU-0", vendor="ascend", type="Ascend 910B3")
ETH0 = Interface(name="eth0", addresses=("10.0.0.1",))
ETH1 = Interface(name="eth1", addresses=("10.1.0.1",))
WELL: dict[str, Any] = {
    "disk_free": 100_000, "disk_total": 200_000, "writable": True, "forwarding": "",
    "skew_s": 0.1, "shm_total": 64_000, "memory_total": 512_000, "memory_free": 400_000,
    "limits": {"nofile": 1_048_576, "memlock": None},
}  # fmt: skip


def patient(
    facts: dict[str, Any] | None = None,
    checkup: dict[str, Any] | None = None,
    entry: dict[str, Any] | None = None,
    **more: Any,
) -> Patient:
    """A healthy host of one GPU, with changes."""
    host = Host.model_validate({"name": "gpu1", "address": "10.0.0.1", **(entry or {})})
    base = {
        "boot_id": "b", "address": "10.0.0.1", "hostname": "gpu1", "accelerators": (GPU,),
        "interfaces": (ETH0,),
    }  # fmt: skip
    return Patient(
        host=host,
        port_range=(30000, 30063),
        facts=HostFacts.model_validate({**base, **(facts or {})}),
        checkup=Checkup.model_validate({**WELL, **(checkup or {})}),
        owner="me",
        instances=frozenset({"chat-decode-aaaa"}),
        **more,
    )


def test_a_host_that_does_not_answer_is_named_once() -> None:
    problem = Problem(rule="host.refused", message="host gpu1 (10.0.0.1): nothing listens there.")
    (only,) = examine(replace(patient(), facts=None, checkup=None, problem=problem))
    assert only.seen == "host gpu1 (10.0.0.1): nothing listens there"
    (told,) = failures([only])
    assert told.message == "host gpu1 (10.0.0.1): nothing listens there."


def test_a_healthy_host_has_nothing_to_complain_of() -> None:
    found = examine(patient())
    assert {f.verdict for f in found} == {"pass"}
    assert {"ssh", "forwarding", "clock", "disk", "accelerators", "interface"} <= {
        f.check for f in found
    }
    assert failures(found) == ()


TWO = {"interfaces": (ETH0, ETH1)}
KV = {"needs": Needs(plane="data")}
MODEL = ModelCopy(path="/m", there=True, digest="a", weights=2, size=10)


@pytest.mark.parametrize(
    ("check", "verdict", "says", "changes"),
    [
        ("forwarding", "fail", "no TCP", {"checkup": {"forwarding": "open failed"}}),
        (
            "forwarding", "warn", "python3 there dials instead",
            {"checkup": {"forwarding": "open failed", "relays": ("python3", "nc")}},
        ),
        (
            "npu_link", "warn", "down of NPU 1",
            {"facts": {"accelerators": (NPU,)},
             "checkup": {"npu_ports": (NpuPort(device=0, address="10.0.0.9", link="UP"),
                                       NpuPort(device=1, link="DOWN"))}},
        ),
        (
            "npu_tls", "fail", "on for NPU 1 and off for the others",
            {"checkup": {"npu_ports": (NpuPort(device=0, tls=False), NpuPort(device=1, tls=True))}},
        ),
        (
            "npu_tls", "warn", "is off here, and otherwise on gpu2",
            {"checkup": {"npu_ports": (NpuPort(device=0, tls=False),)},
             "peers": {"gpu2": Checkup(npu_ports=(NpuPort(device=0, tls=True),)),
                       "gpu3": Checkup(npu_ports=(NpuPort(device=0, tls=False),)),
                       "gpu4": Checkup()}},
        ),
        (
            "xid", "warn", "Xid 79 (the card has fallen off the bus) on 0000:61:00, 2 times, 13 on",
            {"checkup": {"xids": (Xid(card="0000:61:00", number=79, count=2, text="gone"),
                                  Xid(card="0000:62:00", number=13))}},
        ),
        (
            "leftovers", "warn", "gone: pdtui-x-1-g1 (exited)",
            {"checkup": {"containers": (
                Box(name="pdtui-x-1-g1", state="exited", instance="x-1"),
                Box(name="pdtui-z", state="running", instance="chat-decode-aaaa"))}},
        ),
        ("port_bind", "warn", "on 30005, yet", {"checkup": {"unbindable": frozenset({30005})}}),
        ("tools", "fail", "flock, awk", {"facts": {"missing_tools": ("flock", "awk")}}),
        ("clock", "warn", "90 s behind ours", {"checkup": {"skew_s": -90.2}}),
        ("clock", "warn", "7 s ahead of ours", {"checkup": {"skew_s": 7}}),
        ("disk", "fail", "nothing can be written", {"checkup": {"writable": False}}),
        ("disk", "fail", "12 MiB", {"checkup": {"disk_free": 12}}),
        ("disk", "warn", "900 MiB", {"checkup": {"disk_free": 900}}),
        ("memory", "warn", "100 MiB of", {"checkup": {"memory_free": 100}}),
        ("shm", "warn", "64 MiB", {"checkup": {"shm_total": 64}}),
        ("nofile", "warn", "1024 files", {"checkup": {"limits": {"nofile": 1024}}}),
        ("memlock", "warn", "64 KiB", {"checkup": {
            "limits": {"memlock": 64}, "rdma": (Rdma(device="m", state="ACTIVE"),)}}),
        ("accelerators", "fail", "mismatch", {"facts": {
            "accelerators": (), "accelerator_note": "driver mismatch"}}),
        ("accelerators", "warn", "lost", {"facts": {"accelerator_note": "GPU 1 is lost"}}),
        ("mig", "warn", "MIG is on for 0", {"facts": {
            "accelerators": (GPU.model_copy(update={"mig": True}),)}}),
        ("foreign", "warn", "0 by python (pid 7, bob)", {"facts": {
            "uses": (Use(index=0, pid=7, name="python", user="bob"),)}}),
        ("fabric", "fail", "0, In Progress, N/A", {"checkup": {
            "nvswitch": True, "fabric": ("0, In Progress, N/A", "1, Completed, Success")}}),
        ("leftovers", "warn", "vllm (pid 9, of old-decode-bbbb)", {"checkup": {
            "marked": (Marked(pid=9, instance="old-decode-bbbb", name="vllm"),)}}),
        ("claims", "warn", "old", {"facts": {"claims": (Claim(owner="me", instance="old"),)}}),
        ("owners", "warn", "her", {"facts": {"claims": (Claim(owner="her", instance="x"),)}}),
        ("ports", "warn", "30005 (nginx, pid 3)", {
            "facts": {"listening": frozenset({30005, 22})},
            "checkup": {"listeners": (Listener(port=30005, pid=3, name="nginx"),)}}),
        ("ports", "fail", "30000", {"facts": {"listening": frozenset(range(30000, 30064))}}),
        ("port_range", "warn", "outgoing", {"facts": {"ephemeral": (30050, 60000)}}),
        ("port_range", "warn", "outgoing", {
            "facts": {"ephemeral": (30050, 60000), "reserved": ((30000, 30062),)}}),
        ("interface", "warn", "eth0, eth1", {"facts": TWO}),
        ("interface", "fail", "eth9 is not there", {"entry": {"kv_transfer_ifname": "eth9"}}),
        ("interface", "fail", "eth1 is down", {
            "facts": {"interfaces": (ETH0, ETH1.model_copy(update={"up": False}))},
            "entry": {"kv_transfer_ifname": "eth1"}}),
        ("interface", "fail", "no routable", {
            "facts": {"interfaces": (ETH0, Interface(name="eth1", addresses=("fe80::1",)))},
            "entry": {"kv_transfer_ifname": "eth1"}}),
        ("interface", "pass", "over eth1", {"facts": TWO, "entry": {"kv_transfer_ifname": "eth1"}}),
        ("interface", "pass", "over eth1", {"facts": TWO, "ifname": "eth1"}),
        ("kv_route", "fail", "gpu2 (10.1.0.2: No route to host)", {
            "reaches": (Reach(target="gpu2", address="10.1.0.2", interface="eth1", ok=False,
                              seen="No route to host"),)}),
        ("kv_route", "warn", "no answer", {
            "reaches": (Reach(target="gpu2", interface="eth1", seen="no answer within 4 s"),)}),
        ("kv_route", "warn", "gpu2 over eth0", {
            "reaches": (Reach(target="gpu2", interface="eth1", via="eth0", ok=True),)}),
        ("kv_route", "pass", "over eth1", {
            "reaches": (Reach(target="gpu2", interface="eth1", via="eth1", ok=True),)}),
        ("rdma", "warn", "m:1 (DOWN)", {"checkup": {"rdma": (Rdma(device="m", state="DOWN"),)}}),
        ("rdma", "pass", "1 RDMA", {"checkup": {"rdma": (Rdma(device="m", state="ACTIVE"),)}}),
        ("npu_network", "warn", "NPU 0", {"facts": {"accelerators": (NPU,)}}),
        ("npu_network", "pass", "addresses", {
            "facts": {"accelerators": (NPU,)}, "checkup": {"hccn": {"0": "192.168.1.2"}}}),
        ("runtime", "fail", "docker is not installed", {"entry": {"runtime": "docker"}}),
        ("runtime", "fail", "permission denied", {
            "entry": {"runtime": "docker"},
            "checkup": {"runtimes": {"docker": "!permission denied"}}}),
        ("inside", "fail", "does not see GPU-1", {
            "entry": {"runtime": "docker"},
            "checkup": {"runtimes": {"docker": "28.1"}, "inside": Inside(
                image="i", began=True, asked=("GPU-0", "GPU-1"), listed=("GPU-0",))}}),
        ("gpu_runtime", "warn", "see the GPUs", {
            "entry": {"runtime": "podman"}, "checkup": {"runtimes": {"podman": "4.3.1"}}}),
        ("program", "fail", "vllm is not there", {
            "checkup": {"programs": {"vllm": ""}}, "needs": Needs(programs=("vllm",))}),
        ("program", "pass", "/opt/vllm", {
            "checkup": {"programs": {"vllm": "/opt/vllm"}}, "needs": Needs(programs=("vllm",))}),
        ("model", "fail", "/m is not there", {"checkup": {"models": (ModelCopy(path="/m"),)}}),
        ("model", "fail", "config.json of /m differs from that on gpu2", {
            "checkup": {"models": (MODEL,)},
            "peers": {"gpu2": Checkup(models=(MODEL.model_copy(update={"digest": "b"}),))}}),
        ("model", "warn", "not so on gpu2 (1 weight files, 10 bytes)", {
            "checkup": {"models": (MODEL,)},
            "peers": {"gpu2": Checkup(models=(MODEL.model_copy(update={"weights": 1}),))}}),
        ("model", "pass", "2 weight files", {
            "checkup": {"models": (MODEL,)}, "peers": {"gpu2": Checkup(models=(MODEL,))}}),
    ],
)  # fmt: skip
def test_checks(check: str, verdict: str, says: str, changes: dict[str, Any]) -> None:
    found = examine(patient(**changes))
    ours = [f for f in found if f.check == check]
    assert [f.verdict for f in ours] == [verdict], found
    assert says in ours[0].seen
    if verdict != "pass":
        assert ours[0].remedy
    assert {f.verdict for f in found if f.check not in (check, "memlock")} <= {"pass"} | (
        {"warn"} if check in ("fabric", "ports", "rdma") else set()
    )
    order = [f.verdict for f in found]
    assert order == sorted(order, key=["fail", "warn", "pass"].index)
    assert bool(failures(found)) == (verdict == "fail")
    for f in found:
        in_both_languages(f)


def in_both_languages(f: Finding) -> None:
    """What a finding tells is its English words, and Chinese where it is more than a name."""
    assert f.said is not None
    assert f.advised is not None
    kept = Finding.model_validate_json(f.model_dump_json())
    assert (told(kept.said or f.said, "en"), told(f.advised, "en")) == (f.seen, f.remedy)
    if f.check != "runtime" or f.verdict != "pass":
        assert HAN.search(told(f.said, "zh")), f.seen
    if f.remedy:
        assert HAN.search(told(f.advised, "zh")), f.remedy
    for problem in failures([f]):
        assert say(problem, "en") == (problem.message, problem.remedy)
        message, remedy = say(problem, "zh")
        assert message.startswith(f"主机 {f.host}：")
        assert HAN.search(remedy)


def test_a_failure_without_words_as_data_is_said_as_it_came() -> None:
    """Findings of a backend of an earlier version."""
    (problem,) = failures([Finding(check="disk", host="a", verdict="fail", seen="full")])
    assert say(problem, "zh") == ("host a: full.", "")


CLAIM = Claim(owner="me", instance="chat-decode-aaaa", accelerators=(0,), ports=(30005,))


def test_what_is_ours_and_known_is_no_leftover() -> None:
    """A claimed card's own process, a claimed port, an instance of the store."""
    found = examine(
        patient(
            facts={
                "claims": (CLAIM,),
                "uses": (Use(index=0, pid=7, instance="chat-decode-aaaa"),),
                "listening": frozenset({30005}),
            },
            checkup={"marked": (Marked(pid=7, instance="chat-decode-aaaa"),)},
        )
    )  # fmt: skip
    assert {f.verdict for f in found} == {"pass"}


def test_a_host_that_does_not_answer_has_that_one_finding() -> None:
    problem = Problem(rule="host.timeout", message="no answer within 10 s", remedy="Check it.")
    silent = Patient(host=Host(name="gpu1", address="x"), port_range=(1, 2), problem=problem)
    (only,) = examine(silent)
    assert (only.check, only.verdict, only.remedy) == ("ssh", "fail", "Check it.")
    (found,) = failures([only])
    assert found.rule == "doctor.ssh"
    assert found.message == "host gpu1: no answer within 10 s."
