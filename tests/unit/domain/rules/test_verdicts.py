"""The table itself: its order, its defaults; and the structural rules' edges."""

from __future__ import annotations

from typing import Any

import pytest

from backend.domain.errors import Problem
from backend.domain.group import Group
from backend.domain.rules import table
from backend.domain.rules.known import Known
from backend.domain.rules.structure import scale_refusal
from backend.domain.rules.table import BY_ID, Rule, judge
from backend.domain.rules.words import finding, say
from tests.unit.domain.rules.conftest import Court, brief


def test_a_rule_refuses_and_holds_always_unless_it_says_otherwise() -> None:
    rule = Rule("a.b", "document", "", "", ())
    assert (rule.verdicts, rule.overridable) == (("refused",), False)


def test_the_worst_comes_first(court: Court) -> None:
    roles = {
        "prefill": {"parameters": ["--max-model-len", "1k", "--block-size", "16"]},
        "decode": {"parameters": ["--max-model-len", "2k"]},
        "router": {"parameters": ["--prefill-policy", "random"]},
    }
    document = court.document(roles=roles)
    found = court.judge(document, every=True)
    verdicts = [p.verdict for p in found]
    assert verdicts == sorted(verdicts, key=["refused", "warning", "unverified", "fine"].index)
    assert set(verdicts) == {"refused", "warning", "unverified", "fine"}
    plain = judge(document, Known(court.catalogue, inventory=False))
    assert {p.verdict for p in plain} == {"refused", "warning", "unverified"}


def test_a_finding_of_no_rule_is_a_mistake_of_ours(
    court: Court, monkeypatch: pytest.MonkeyPatch
) -> None:
    stray = Rule("a.b", "document", "", "", (lambda s: iter([Problem(rule="x.y", message="")]),))
    monkeypatch.setattr(table, "RULES", (stray,))
    with pytest.raises(KeyError, match=r"^'x\.y is not in the table of rules'$"):
        court.judge(court.document())


def test_a_finding_refuses_at_no_place_unless_it_is_said() -> None:
    found = finding("structure.allow", "never", name="n", known=[None, True])
    assert (found.path, found.verdict) == ("", "refused")
    assert "not set, on" in found.message
    assert "未设置、开启" in say(found, "zh")[0]


def test_the_router_of_a_mode_without_one_is_named(court: Court) -> None:
    document = court.document("custom", roles={"router": {"run_command": None}})
    (found,) = [p for p in court.judge(document) if p.case == "router"]
    assert (found.path, found.values["role"]) == ("spec.run_command", "router")
    assert found.values["mode"] == "custom"


def test_every_place_a_host_is_named_in_is_looked_at(court: Court) -> None:
    pin = [{"host": "gone"}]
    roles = {"prefill": {"placement": pin}, "decode": {"hosts": {"names": ["h1", "away"]}},
             "router": {"placement": pin}}  # fmt: skip
    document = court.document(roles=roles, hosts={"names": ["far"]})
    found = [p for p in court.judge(document, {"hosts": {"h1": {}}}) if p.rule == "host.unknown"]
    assert [(p.path, p.values["host"]) for p in found] == [
        ("spec.hosts.names[0]", "far"),
        ("spec.roles.prefill.placement[0].host", "gone"),
        ("spec.roles.decode.hosts.names[1]", "away"),
        ("spec.roles.router.placement[0].host", "gone"),
    ]


def test_only_hosts_that_were_all_seen_are_too_narrow(court: Court) -> None:
    wide = {"accelerators": 4}
    seen = {"h1": {"accelerators": 2}, "h2": {"accelerators": 2}}
    found = [p for p in court.pair(about={"hosts": seen}, **wide) if "too_wide" in p.rule]
    assert [(p.values["host"], p.values["widest"]) for p in found] == [("h2", 2)]
    half = {**seen, "h2": {"unseen": True}}
    assert "placement.too_wide" not in str(brief(court.pair(about={"hosts": half}, **wide)))
    bare = {"h1": {"unseen": True}}
    assert "placement.too_wide" not in str(brief(court.pair(about={"hosts": bare}, **wide)))


PINS = [
    ([{"host": "h1"}, {"host": "h1", "accelerators": [0, 0]}], None, ["twice 1"]),
    ([{"host": "h1", "accelerators": [0, 1, 1]}], None, ["twice 0"]),
    ([{"host": "h1", "accelerators": [0]}, {"host": "h1", "accelerators": [0]}], None,
     ["twice 1"]),
    ([{"host": "h1", "accelerators": [0]}, {"host": "h2", "accelerators": [0]}], None, []),
    ([{"host": "h1", "accelerators": [0, 1]}], [{"host": "h1", "accelerators": [1, 0]}],
     ["twice 0"]),
    ([{"host": "h1", "accelerators": [0, 0]}, {"host": "h1", "accelerators": [1, 1]}], None,
     ["twice 0", "twice 1"]),
]  # fmt: skip


@pytest.mark.parametrize(("p", "d", "expected"), PINS)
def test_pins(court: Court, p: Any, d: Any, expected: list[str]) -> None:
    found = court.pair({"placement": p}, {"placement": d} if d else {})
    told = [f for f in found if f.rule == "structure.placement"]
    assert [f"{f.case} {f.path.split('[')[1][0]}" for f in told] == expected


@pytest.mark.parametrize(("count", "fits"), [(0, False), (1, True), (2, True), (513, False)])
def test_counts(court: Court, count: int, fits: bool) -> None:
    group = Group(name="chat", version=1, document=court.document(), revision="r")
    found = scale_refusal(group, {"prefill": count})
    assert (found is None) == fits
    assert found is None or found.values["most"] == 512


def test_ids_are_found_by_name() -> None:
    assert all(BY_ID[rule.id] is rule for rule in table.RULES)
