"""Several logs read together, and whose the ports in them are."""

from __future__ import annotations

from pathlib import Path

import pytest

from backend.domain.diagnosis.model import Diagnosis, Finding, one_line
from backend.domain.diagnosis.pair import differences, facts, first_causes, together
from backend.domain.diagnosis.places import Scene, Seat, placed
from backend.domain.diagnosis.scan import diagnose
from backend.domain.instance import Band

LOGS = Path(__file__).parents[3] / "data" / "logs"
HASH = (LOGS / "vdk.log").read_bytes().decode()
START = (
    (LOGS / "vp.log").read_bytes().decode().partition("(EngineCore pid=26467) INFO 11-30 04:53")[0]
)
LEASE = (
    "WARNING 11-30 05:00:00 [base.py:1] Releasing expired KV blocks for request a which were "
    "retrieved by 0 remote worker(s) before lease expired."
)
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
SILENT = (
    "ERROR [b.py:1] NIXL transfer failure: handshake_failed | Context: {'failure_type': 'x', "
    "'remote_host': '10.0.0.1', 'remote_port': 40001}\nzmq.error.Again: Resource temporarily "
    "unavailable"
)
REFUSED = "Prefill request failed to http://10.0.0.1:40000/v1/completions: Connection refused"


def bands(base: int) -> tuple[Band, ...]:
    """HTTP and side channel, one after another."""
    return (Band(name="http", base=base), Band(name="kv_side_channel", base=base + 1, count=2))


SEATS = (
    Seat("prefill-1", "prefill", "node1", "10.0.0.1", bands(40000)),
    Seat("decode-1", "decode", "node2", "10.0.0.2", bands(40000)),
    Seat("router", "router", "node2", "10.0.0.2", (Band(name="http", base=40010),)),
)
ADDRESSES = {"10.0.0.1": "node1", "10.0.0.2": "node2"}


def scene(me: str, **more: object) -> Scene:
    """Around one of SEATS."""
    host = next(s.host for s in SEATS if s.instance == me)
    return Scene(me=me, host=host, seats=SEATS, addresses=ADDRESSES, **more)  # type: ignore[arg-type]


SCENES = {s.instance: scene(s.instance) for s in SEATS}


def read(name: str, log: str, ended: bool = False) -> Diagnosis:
    """A member's diagnosis; its role is its name's beginning."""
    return diagnose(log, name=name, role=name.partition("-")[0], ended=ended)


def group(
    logs: dict[str, str], *dead: str, told: dict[str, dict[str, str]] | None = None
) -> dict[str, Diagnosis]:
    """Members' logs read together, by name."""
    found = [read(n, log, n in dead) for n, log in logs.items()]
    facts_ = told if told is not None else {n: facts(log) for n, log in logs.items()}
    done = together(found, SCENES, {n: n in dead for n in logs}, facts_)
    return {d.name: d for d in done}


def test_decodes_mismatch_is_the_cause_of_prefills_lost_leases() -> None:
    found = group({"prefill-1": f"{START}\n{LEASE}", "decode-1": HASH})
    decode, prefill = found["decode-1"], found["prefill-1"]
    assert decode.first is not None
    assert decode.first.rule == "pairing.nixl_hash"
    assert decode.first.explains == ("prefill-1 transfer.lease_expired",)
    assert prefill.peer == "decode-1"
    assert [name for name, _ in first_causes(tuple(found.values()))] == ["decode-1"]


def test_a_mismatch_names_what_differs_between_the_two_logs() -> None:
    found = group({"prefill-1": START, "decode-1": HASH})["decode-1"]
    assert found.first is not None
    assert [n.en for n in found.first.notes] == [
        "kv_cache_dtype differs: fp8 here, the default on prefill-1."
    ]
    assert found.first.notes[0].zh == "kv_cache_dtype 不同：本侧为 fp8，prefill-1 为默认值。"


def test_real_logs_of_a_group_have_one_cause_at_the_member_it_lies_with() -> None:
    """Decode reads the same weights by another path; prefill and the router only suffer."""
    logs = {
        name: (LOGS / f"model-path-{file}.log").read_bytes().decode()
        for name, file in (("prefill-1", "prefill"), ("decode-1", "decode"), ("router", "router"))
    }
    found = group(logs)
    cause = found["decode-1"].first
    assert cause is not None
    assert cause.rule == "pairing.nixl_hash"
    assert len(cause.explains) == 2
    assert [n.en for n in cause.notes] == [
        "model differs: /srv/renamed/tiny here, /models/tiny on prefill-1."
    ]
    assert (found["prefill-1"].peer, found["router"].peer) == ("decode-1", "decode-1")


def test_a_member_that_died_explains_what_its_peers_tell() -> None:
    found = group({"prefill-1": OOM, "decode-1": SILENT, "router": REFUSED}, "prefill-1")
    assert [name for name, _ in first_causes(tuple(found.values()))] == ["prefill-1"]
    assert (found["decode-1"].peer, found["router"].peer) == ("prefill-1", "prefill-1")
    assert found["prefill-1"].first is not None
    assert len(found["prefill-1"].first.explains) == 2


def test_another_member_than_the_one_aimed_at_explains_nothing() -> None:
    aimed_elsewhere = REFUSED.replace("10.0.0.1:40000", "10.0.0.2:40000")
    found = group({"prefill-1": OOM, "router": aimed_elsewhere}, "prefill-1")
    assert found["router"].peer == ""
    assert {name for name, _ in first_causes(tuple(found.values()))} == {"prefill-1", "router"}


def test_a_dead_members_own_cause_is_never_a_peers() -> None:
    found = group({"prefill-1": OOM, "decode-1": SILENT}, "prefill-1", "decode-1")
    assert found["decode-1"].peer == ""


def test_facts_of_a_real_start_log() -> None:
    told = facts(HASH)
    assert told["version"] == "0.32.0"
    assert told["kv_cache_dtype"] == "fp8"
    assert told["model"] == "/opt/pd/model/qwen3"
    assert facts("") == {}
    assert differences({}, told, "x") == ()
    assert differences(told, {**told, "version": "0.31.0"}, "p")[0].en == (
        "version differs: 0.32.0 here, 0.31.0 on p."
    )


ADDRESS = "zmq.error.ZMQError: Address already in use (addr='tcp://{}:{}')"


@pytest.mark.parametrize(
    ("me", "log", "listening", "notes"),
    [
        ("decode-1", ADDRESS.format("10.0.0.2", 40002), (),
         ["Port 40002 is this instance's own kv_side_channel."]),
        ("decode-1", ADDRESS.format("10.0.0.2", 40002), (40002,),
         ["Port 40002 is this instance's own kv_side_channel.",
          "Something listens on it at node2 now: a process left over from an earlier start, or a "
          "program outside pdtui. `pdtui doctor node2` looks for it."]),
        ("decode-1", ADDRESS.format("127.0.0.1", 40010), (),
         ["Port 40010 is the http of router on node2."]),
        ("decode-1", ADDRESS.format("10.0.0.2", 51234), (),
         ["Port 51234 is in no band that was given out on node2: a program outside pdtui, or one "
          "that chose the port by itself, holds it."]),
        ("decode-1", "OSError: [Errno 98] Address already in use", (),
         ["Port 40000 is this instance's own http."]),
        ("router", REFUSED, (), ["Port 40000 is the http of prefill-1 on node1.",
                                 "10.0.0.1 is the host node1."]),
        ("decode-1",
         "sock.c:334  UCX  ERROR   connect(fd=120, dest_addr=10.244.13.0:34313) failed: "
         "Connection refused", (),
         ["10.244.13.0 is no address of any host of the inventory; it looks like a container "
          "bridge's."]),
        ("decode-1", OOM, (), []),
        ("decode-1", "RuntimeError: odd: address already in use: 40001", (),
         ["Port 40001 is this instance's own kv_side_channel."]),
    ],
)  # fmt: skip
def test_whose_a_port_is(me: str, log: str, listening: tuple[int, ...], notes: list[str]) -> None:
    found = diagnose(log).first
    assert found is not None
    seen = placed(found, scene(me, listening=frozenset(listening)))
    assert [n.en for n in seen.notes] == notes
    assert all(n.zh for n in seen.notes)


def test_one_line_names_the_cause_and_whose_the_port_is() -> None:
    found = diagnose(ADDRESS.format("10.0.0.2", 40002)).first
    assert found is not None
    assert one_line(placed(found, scene("decode-1"))).endswith(
        "cannot listen (port 40002). Port 40002 is this instance's own kv_side_channel."
    )
    assert one_line(Finding(text="odd")) == "odd"
