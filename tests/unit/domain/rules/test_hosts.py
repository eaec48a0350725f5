"""Rules on hosts: ports, interfaces, images, shared cards, and the models they have."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.domain.rules.conftest import Court, brief

ASCEND = {"vendor": "ascend", "accelerators": 8}


def one(**about: Any) -> dict[str, Any]:
    return {"hosts": {"h1": about}}


PORTS = [
    ("vllm-nixl", {"ports": [40000, 40063]}, []),
    ("vllm-nixl", {"ports": [17000, 17063]}, ["warning host.engine_ports"]),
    ("vllm-nixl", {"ports": [17001, 17064]}, []),
    ("vllm-nixl", {"ports": [14000, 15000]}, ["warning host.engine_ports"]),
    ("vllm-nixl", {"ports": [14000, 14999]}, []),
    ("vllm-nixl", {"ports": [14000, 21000]}, ["warning host.engine_ports"] * 2),
    (None, {"ports": [17000, 17063]}, []),
    ("vllm-nixl", {"ephemeral": [32768, 60999]}, ["warning host.ephemeral_ports"]),
    ("vllm-nixl", {"ephemeral": [40063, 60999]}, ["warning host.ephemeral_ports"]),
    (None, {"ephemeral": [32768, 60999]}, ["warning host.ephemeral_ports"]),
    ("vllm-nixl", {"ephemeral": [32768, 60999], "unseen": True}, []),
    ("vllm-ascend-mooncake", {**ASCEND, "ports": [27936, 27999]}, ["warning host.npu_ports"]),
    ("vllm-ascend-mooncake", {**ASCEND, "ports": [28000, 28063]}, []),
    ("vllm-ascend-mooncake", {**ASCEND, "ports": [20800, 20863]}, ["warning host.engine_ports"]),
    ("vllm-ascend-mooncake", {**ASCEND, "accelerators": 16, "ports": [35999, 36010]},
     ["warning host.npu_ports"]),
    ("vllm-nixl", {"ports": [27936, 27999]}, []),
]  # fmt: skip


@pytest.mark.parametrize(("mode", "about", "expected"), PORTS)
def test_port_ranges(court: Court, mode: str | None, about: Any, expected: list[str]) -> None:
    assert brief(court.judge(court.document(mode), one(**about))) == expected


def test_hosts_with_one_range_are_warned_of_together(court: Court) -> None:
    wide = {"ephemeral": [32768, 60999]}
    (found,) = court.pair(about={"hosts": {"h1": wide, "h2": wide}})
    assert found.values["hosts"] == ["h1", "h2"]
    assert found.values["range"] == ["40000-40063"]


def test_hosts_with_ranges_of_their_own_are_warned_of_together(court: Court) -> None:
    """One finding, one line to type: what is reserved already stays so."""
    hosts = {
        "h1": {"ephemeral": [32768, 60999], "reserved": [[50000, 50001]]},
        "h2": {"ephemeral": [32768, 60999], "ports": [40064, 40127]},
        "h3": {"ephemeral": [32768, 60999], "ports": [44000, 44010]},
        "h4": {"ephemeral": [32768, 60999], "ports": [30000, 30063]},
    }
    (found,) = court.pair(about={"hosts": hosts})
    assert found.values["hosts"] == ["h1", "h2", "h3"]
    assert found.values["range"] == ["40000-40127", "44000-44010"]
    assert found.values["window"] == ["32768-60999"]
    assert found.remedy.endswith("ports=40000-40127,44000-44010,50000-50001.")


@pytest.mark.parametrize(
    ("reserved", "warned"),
    [
        ([[40000, 40063]], False),
        ([[30000, 50000]], False),
        ([[40000, 40030], [40031, 40063]], False),
        ([[40000, 40030], [40032, 40063]], True),
        ([[40001, 40063]], True),
        ([[40000, 40062]], True),
        ([], True),
    ],
)
def test_reserved_ports_are_nobodys(court: Court, reserved: Any, *, warned: bool) -> None:
    about = one(ephemeral=[32768, 60999], reserved=reserved)
    assert bool(court.pair(about=about)) is warned


def test_an_eighth_member_of_nine_ports_is_refused(court: Court) -> None:
    """A TP8 member on Ascend takes nine ports: 64 hold seven of them."""
    host = {**ASCEND, "accelerators": 64, "ports": [40000, 40063]}
    eight = court.pair({"replicas": 8}, mode="vllm-ascend-mooncake", accelerators=8,
                       about=one(**host))  # fmt: skip
    (found,) = [p for p in eight if p.rule == "host.port_budget"]
    assert (found.verdict, found.path) == ("refused", "spec.roles.prefill.replicas")
    assert {k: found.values[k] for k in ("each", "ports", "fit", "missing")} == {
        "each": 9, "ports": 64, "fit": 7, "missing": 8,
    }  # fmt: skip
    seven = court.pair({"replicas": 7}, mode="vllm-ascend-mooncake", accelerators=8,
                       about=one(**host))  # fmt: skip
    assert brief(seven, "host.port_budget") == []


@pytest.mark.parametrize(
    ("replicas", "taken", "expected", "missing"),
    [
        (2, [], [], 0),
        (3, [], ["refused range"], 1),
        (4, [], ["refused range"], 2 + 1),
        (2, [40000], [], 0),
        (2, [40000, 40001], ["warning free"], 1),
        (2, [40000, 40001, 40002], ["warning free"], 2),
    ],
)
def test_port_budget(
    court: Court, replicas: int, taken: list[int], expected: list[str], missing: int
) -> None:
    """Two ports a member: five ports hold two of them, and one is left over."""
    about = one(ports=[40000, 40004], taken=taken)
    found = court.pair({"replicas": replicas}, about=about)
    assert brief(found, "host.port_budget") == expected
    if expected:
        assert found[0].values["missing"] == missing


def test_port_budget_over_hosts(court: Court) -> None:
    hosts = {"h1": {"ports": [40000, 40002]}, "h2": {"ports": [40000, 40002]}}
    assert brief(court.pair({"replicas": 2}, about={"hosts": hosts})) == []
    short = court.pair({"replicas": 3}, about={"hosts": hosts})
    assert [(p.case, p.values["missing"]) for p in short] == [("range", 1)]
    uneven = {"h1": {"ports": [40000, 40001]}, "h2": {"ports": [40000, 40002]}}
    (budget,) = court.pair({"replicas": 3}, about={"hosts": uneven})
    assert budget.values["missing"] == 1  # the host that has a port to spare needs one more
    unseen = {**hosts, "h3": {"unseen": True}}
    assert brief(court.pair({"replicas": 3}, about={"hosts": unseen})) == []
    bare = {"h1": hosts["h1"], "h2": {**hosts["h2"], "accelerators": 0}}
    assert brief(court.pair({"replicas": 2}, about={"hosts": bare}), "host.port_budget") == [
        "refused range"
    ]
    plain = court.document(None, replicas=4)
    assert [p.path for p in court.judge(plain, {"hosts": hosts})] == []
    many = court.document(None, replicas=7)
    (found,) = court.judge(many, {"hosts": hosts})
    assert (found.path, found.values["role"]) == ("spec.replicas", "replica")


@pytest.mark.parametrize(
    ("mode", "about", "expected"),
    [
        ("vllm-nixl", {"interfaces": ["eth0"]}, []),
        ("vllm-nixl", {"interfaces": ["eth0", "docker0"]}, []),
        ("vllm-nixl", {"interfaces": ["eth0", "ib0"]}, ["refused host.kv_interface"]),
        ("vllm-nixl", {"interfaces": ["eth0", "ib0"], "kv_transfer_ifname": "ib0"}, []),
        ("vllm-nixl", {"interfaces": ["eth0", "ib0"], "unseen": True}, []),
        ("vllm-nixl", {"interfaces": ["eth0", "ib0"], "accelerators": 0}, []),
        ("vllm-mooncake", {"interfaces": ["eth0", "ib0"]}, []),
        ("vllm-ascend-mooncake", {**ASCEND, "interfaces": ["eth0", "ib0"]}, []),
        (None, {"interfaces": ["eth0", "ib0"]}, []),
    ],
)
def test_interfaces(court: Court, mode: str | None, about: Any, expected: list[str]) -> None:
    found = court.judge(court.document(mode), one(**about))
    wide = [e for e in brief(found) if "too_wide" not in e and "port_budget" not in e]
    assert wide == expected


def test_hosts_that_are_not_selected_do_not_matter(court: Court) -> None:
    hosts = {"h1": {"interfaces": ["eth0", "ib0"], "labels": {"rack": "a"}},
             "h2": {"labels": {"rack": "b"}}}  # fmt: skip
    assert brief(court.pair(about={"hosts": hosts})) == ["refused host.kv_interface"]
    for chosen in ({"names": ["h2"]}, {"labels": {"rack": "b"}}):
        assert brief(court.pair(hosts=chosen, about={"hosts": hosts})) == []
    pinned = {"placement": [{"host": "h2"}]}
    assert brief(court.pair(pinned, pinned, about={"hosts": hosts})) == []
    half = court.pair({**pinned, "replicas": 2}, pinned, about={"hosts": hosts})
    assert brief(half) == ["refused host.kv_interface"]


CARD = {"placement": [{"host": "h1", "accelerators": [0]}]}


@pytest.mark.parametrize(
    ("p", "d", "expected"),
    [
        ([], [], ["refused"]),
        (["--gpu-memory-utilization", "0.5"], ["--gpu_memory_utilization=0.5"], []),
        (["--gpu-memory-utilization", "0.5"], ["--device-memory-utilization", "0.6"], ["refused"]),
        (["--gpu-memory-utilization", "0.5"], ["--gpu-memory-utilization", "much"], []),
        (["--gpu-memory-utilization", "0.1"], [], []),
        (["--gpu-memory-utilization", "0.11"], [], ["refused"]),
    ],
)
def test_members_that_share_a_card(
    court: Court, p: list[str], d: list[str], expected: list[str]
) -> None:
    found = court.pair({**CARD, "parameters": p}, {**CARD, "parameters": d}, about=one())
    assert brief(found, "host.memory_utilization") == expected
    other = {"placement": [{"host": "h1", "accelerators": [1]}], "parameters": d}
    apart = court.pair({**CARD, "parameters": p}, other, about=one())
    assert brief(apart) == []


def test_the_shares_of_a_card_are_named(court: Court) -> None:
    found = court.pair(CARD, CARD, mode="sglang-mooncake", about=one(),
                       parameters=["--mem-fraction-static", "0.7"])  # fmt: skip
    (card,) = [p for p in found if p.rule == "host.memory_utilization"]
    assert card.values["members"] == ["prefill 0.7", "decode 0.7"]
    assert card.values["sum"] == "1.4"
    assert card.path == "spec.parameters[0]"


CONFIG = {"a": 1}
MODELS: list[tuple[dict[str, Any], list[str]]] = [
    ({"h1": {"config": CONFIG}, "h2": {"config": CONFIG}}, []),
    ({"h1": {"config": CONFIG}, "h2": {"config": {"a": 2}}},
     ["refused pairing.model_digest config"]),
    ({"h1": {"config": CONFIG, "weights": "x"}, "h2": {"config": CONFIG, "weights": "y"}},
     ["refused pairing.model_digest weights"]),
    ({"h1": {"config": CONFIG, "weights": "x"}, "h2": {"config": CONFIG}}, []),
    ({"h1": {"config": CONFIG}, "h2": {}}, []),
    ({"h1": {"config": CONFIG}, "h2": {"missing": True}}, ["warning host.model_missing somewhere"]),
    ({"h1": {"missing": True}, "h2": {"missing": True}}, ["refused host.model_missing nowhere"]),
    ({"h1": {"missing": True}, "h2": {}}, ["warning host.model_missing somewhere"]),
]  # fmt: skip


@pytest.mark.parametrize(("hosts", "expected"), MODELS)
def test_models_on_hosts(court: Court, hosts: Any, expected: list[str]) -> None:
    assert brief(court.pair(mode="vllm-mooncake", about={"hosts": hosts})) == expected


def test_a_hub_id_may_be_missing_and_digests_can_be_let_through(court: Court) -> None:
    gone = {"h1": {"missing": True}}
    assert brief(court.pair(model="org/m", about={"hosts": gone})) == []
    apart = {"h1": {"config": CONFIG}, "h2": {"config": {"a": 2}}}
    allowed = {"mode": "vllm-nixl", "allow": ["pairing.model_digest"]}
    found = court.pair(disaggregation=allowed, about={"hosts": apart})
    assert brief(found) == ["unverified pairing.model_digest config"]


@pytest.mark.parametrize(
    ("mode", "runtime", "image", "expected"),
    [
        ("vllm-ascend-mooncake", "docker", None, ["refused host.image"]),
        ("vllm-ascend-mooncake", "podman", "mine", []),
        ("vllm-ascend-mooncake", "process", None, []),
        ("vllm-nixl", "docker", None, []),
    ],
)
def test_images(
    court: Court, mode: str, runtime: str, image: str | None, expected: list[str]
) -> None:
    vendor = "ascend" if "ascend" in mode else "nvidia"
    found = court.pair(mode=mode, image=image, about=one(vendor=vendor, runtime=runtime))
    assert brief(found) == expected


def test_unknown_hosts_are_refused_where_there_is_an_inventory(court: Court) -> None:
    found = court.pair(hosts={"names": ["h9"]}, about=one())
    assert [(p.rule, p.case) for p in found] == [("host.unknown", "")]
    assert court.pair(hosts={"names": ["h9"]}) == ()


def test_a_model_named_by_a_flag_is_looked_for_by_it(court: Court) -> None:
    known = {"hosts": {"h1": {"missing": True}}}
    document = court.document(parameters=["--dtype", "auto", "--model", "/data/models/m"])
    (found,) = court.judge(document, known)
    assert (found.rule, found.path) == ("host.model_missing", "spec.parameters[2]")


def test_the_widest_host_is_named_and_the_role_that_is_too_wide(court: Court) -> None:
    hosts = {"z": {"accelerators": 2}, "a": {"accelerators": 4}}
    pins = {"placement": [{"host": "a", "accelerators": [0, 1, 2, 3, 4]}]}
    found = [p for p in court.pair({}, pins, about={"hosts": hosts}) if "too_wide" in p.rule]
    assert [(p.path, p.values["host"], p.values["widest"]) for p in found] == [
        ("spec.roles.decode.accelerators", "a", 4)
    ]


def test_both_roles_that_find_too_few_ports_are_told(court: Court) -> None:
    many = {"replicas": 3}
    found = court.pair(many, many, about=one(ports=[40000, 40003]))
    assert [p.path for p in found] == [
        "spec.roles.prefill.replicas", "spec.roles.decode.replicas",
    ]  # fmt: skip
