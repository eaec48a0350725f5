"""A role that a rule has nothing to say of does not hide the other one; what is found is placed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.domain.rules.conftest import Court, brief

OWN = {"run_command": ["mine"]}
UNSEEN: dict[str, Any] = {"h1": {"unseen": True}, "h2": {"ports": [40000, 40003]}}
ON_H1, ON_H2 = ({"hosts": {"names": [h]}} for h in ("h1", "h2"))


def card(*indices: int, host: str = "h1", **more: Any) -> dict[str, Any]:
    return {"placement": [{"host": host, "accelerators": [i]} for i in indices], **more}


def share(text: str) -> dict[str, Any]:
    return {"parameters": ["--gpu-memory-utilization", text]}


def places(found: Any, rule: str) -> list[str]:
    return [p.path for p in found if p.rule == rule]


def test_ports_of_a_role_beside_one_whose_host_was_not_seen(court: Court) -> None:
    found = court.pair({**ON_H1, "replicas": 9}, {**ON_H2, "replicas": 3}, about={"hosts": UNSEEN})
    assert places(found, "host.port_budget") == ["spec.roles.decode.replicas"]


def test_ports_of_members_without_accelerators(court: Court) -> None:
    about = {"hosts": {"h1": {"accelerators": 0, "ports": [40000, 40001]}}}
    document = court.document(None, accelerators=0, replicas=3)
    assert brief(court.judge(document, about)) == ["refused host.port_budget range"]


def test_a_share_that_cannot_be_read_hides_no_other(court: Court) -> None:
    found = court.pair(card(0, **share("much")), card(0, 0, **share("0.9")),
                       about={"hosts": {"h1": {}}})  # fmt: skip
    assert places(found, "host.memory_utilization") == ["spec.roles.decode.parameters[0]"]


@pytest.mark.parametrize(
    ("p", "d", "expected"),
    [("0.33333", "0.66671", 0), ("0.3333", "0.6669", 1), ("1.5", None, 0)],
)
def test_shares_of_a_card_within_rounding(
    court: Court, p: str, d: str | None, expected: int
) -> None:
    other = card(0, **share(d)) if d else card(1, **share("0.1"))
    found = court.pair(card(0, **share(p)), other, about={"hosts": {"h1": {}}})
    assert len(places(found, "host.memory_utilization")) == expected


def test_a_host_is_told_once_by_its_last_member(court: Court) -> None:
    found = court.pair(card(0, 0, 1, **share("0.9")), card(0, 1, **share("0.8")),
                       about={"hosts": {"h1": {}}})  # fmt: skip
    (one,) = [p for p in found if p.rule == "host.memory_utilization"]
    assert one.path == "spec.roles.decode.parameters[0]"
    assert one.values["members"] == ["prefill 0.9", "prefill 0.9", "decode 0.8"]


def test_the_interface_for_all_hosts_is_enough(court: Court) -> None:
    about = {"hosts": {"h1": {"interfaces": ["eth0", "ib0"]}}}
    assert brief(court.pair(about=about)) == ["refused host.kv_interface"]
    assert brief(court.pair(about={**about, "kv_transfer_ifname": "ib0"})) == []


def test_accelerators_of_another_kind_hold_no_member(court: Court) -> None:
    hosts = {"h1": {}, "h2": {"vendor": "ascend", "interfaces": ["eth0", "ib0"]}}
    assert brief(court.pair(about={"hosts": hosts})) == []


@pytest.mark.parametrize(
    ("ports", "expected"),
    [([19937, 20000], ["warning host.engine_ports"]), ([19936, 19999], []),
     ([20801, 20864], [])],
)  # fmt: skip
def test_the_second_window_of_transports(
    court: Court, ports: list[int], expected: list[str]
) -> None:
    assert brief(court.pair(about={"hosts": {"h1": {"ports": ports}}})) == expected


def test_a_range_of_ones_own_is_what_is_compared(court: Court) -> None:
    clear = {"ports": [20900, 20963], "ephemeral": [32768, 60999]}
    assert brief(court.pair(about={"hosts": {"h1": clear}})) == []
    inside = {"ports": [50000, 50063], "ephemeral": [50000, 60999]}
    assert brief(court.pair(about={"hosts": {"h1": inside}})) == ["warning host.ephemeral_ports"]


def test_an_image_of_one_role_is_none_of_the_other(court: Court) -> None:
    about = {"hosts": {"h1": {"vendor": "ascend", "runtime": "docker"}}}
    found = court.pair({"image": "mine"}, mode="vllm-ascend-mooncake", about=about)
    assert places(found, "host.image") == ["spec.image"]
    assert next(p for p in found if p.rule == "host.image").values["role"] == "decode"


def test_a_command_of_ones_own_may_write_any_flag(court: Court) -> None:
    ports = {"parameters": ["--port", "1"]}
    assert brief(court.pair({**OWN, **ports}, OWN, mode="custom")) == []
    found = court.pair({**OWN, **ports}, ports, mode="custom")
    assert places(found, "structure.reserved_flag") == ["spec.roles.decode.parameters[0]"]


def test_a_flag_that_is_written_twice_in_one_line_is_told_once(court: Court) -> None:
    found = court.pair(parameters=["--port 1 --port 2"])
    assert places(found, "structure.reserved_flag") == ["spec.parameters[0]"]
    apart = court.pair(parameters=["--port", "1", "--port=2", "--host x"])
    assert places(apart, "structure.reserved_flag") == [
        "spec.parameters[0]", "spec.parameters[2]", "spec.parameters[3]",
    ]  # fmt: skip


def test_an_image_beside_a_version_is_told_where_both_stand(court: Court) -> None:
    both = {"image": "a", "engine_version": "0.29.0"}
    assert places(court.pair({}, both), "structure.image_version") == [
        "spec.roles.decode.engine_version"
    ]
    assert places(court.pair(**both), "structure.image_version") == ["spec.engine_version"]


def test_ranks_of_a_role_beside_one_with_its_own_command(court: Court) -> None:
    wide = {"parameters": ["--dtype=auto", "-tp", "4"], "accelerators": 2}
    found = court.pair(OWN, wide, mode="custom")
    assert places(found, "structure.accelerators") == ["spec.roles.decode.parameters[1]"]
    plain = court.pair({}, {"parameters": ["-pp", "4"], "accelerators": 2}, mode="custom")
    assert places(plain, "structure.accelerators") == ["spec.roles.decode.accelerators"]


def test_a_cache_of_one_role_beside_none_of_the_other(court: Court) -> None:
    kept = {"extended_kv_cache": {"kind": "in_process"}}
    none = {"extended_kv_cache": {"kind": "none"}}
    for p, d, role in ((none, kept, "decode"), (kept, none, "prefill")):
        (found,) = court.pair(p, d, mode="custom")
        assert (found.rule, found.path) == ("cache.mode", f"spec.roles.{role}.extended_kv_cache")


def test_a_name_beside_another_kind_is_no_second_service(court: Court) -> None:
    p = {"extended_kv_cache": {"kind": "service", "service": "lm"}}
    d = {"extended_kv_cache": {"kind": "in_process", "service": "other"}}
    found = court.pair(p, d, about={"services": {"lm": "lmcache"}})
    assert "cache.two_services" not in {f.rule for f in found}


def test_digests_of_plain_replicas_are_not_compared(court: Court) -> None:
    """Each replica answers by itself: another revision on one host is no wrong answer."""
    hosts = {"h1": {"config": {"a": 1}}, "h2": {"config": {"a": 2}}}
    assert brief(court.judge(court.document(None), {"hosts": hosts})) == []


def test_digests_are_shown_by_their_beginning(court: Court) -> None:
    hosts = {h: {"config": {}, "weights": 40 * h[-1]} for h in ("h1", "h2")}
    (found,) = court.pair(about={"hosts": hosts})
    assert (found.values["digest"], found.values["other_digest"]) == ("1" * 12, "2" * 12)


PATH = {"parameters": ["--dtype=auto", "--model-path", "/data/models/m"]}
HUB = {"parameters": ["--model-path", "org/m"]}


def test_a_missing_model_of_one_role(court: Court) -> None:
    gone = {"hosts": {"h1": {"missing": True}}}
    found = court.pair(HUB, PATH, mode="sglang-nixl", about=gone)
    assert places(found, "host.model_missing") == ["spec.roles.decode.parameters[1]"]


def test_each_role_is_told_where_its_model_is_missing(court: Court) -> None:
    hosts = {"h1": {"missing": True}, "h2": {"missing": True}, "h3": {"config": {}}}
    found = court.pair(ON_H1, ON_H2, about={"hosts": hosts})
    assert [(p.values["role"], p.values["hosts"], p.values["there"]) for p in found] == [
        ("prefill", ["h1"], ["-"]), ("decode", ["h2"], ["-"]),
    ]  # fmt: skip
    both = court.pair(about={"hosts": hosts})
    assert [(p.values["hosts"], p.values["there"]) for p in both] == [(["h1", "h2"], ["h3"])]
    there = {**hosts, "h1": {"config": {}}}
    (late,) = court.pair(ON_H1, ON_H2, about={"hosts": there})
    assert late.values["role"] == "decode"
