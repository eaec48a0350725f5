"""What makes no sense as a deployment, wherever it would run."""

from __future__ import annotations

from typing import Any

import pytest

from backend.domain.rules.known import Known
from backend.domain.rules.structure import RULES
from backend.domain.rules.subject import Subject
from tests.unit.domain.conftest import Kit

PD = {"mode": "vllm-nixl"}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], list[tuple[str, str]]]] = {
    "fine": ({"disaggregation": PD}, {}, []),
    "plain and fine": (
        {"replicas": 2, "scaling_schedule": [{"cron": "0 8 * * *", "replicas": 4}]},
        {},
        [],
    ),
    "no such mode": (
        {"disaggregation": {"mode": "vllm-nix"}},
        {},
        [("mode.unknown", "spec.disaggregation.mode")],
    ),
    "another engine": (
        {"engine": "sglang", "disaggregation": PD},
        {},
        [("mode.engine", "spec.engine"), ("mode.engine", "spec.engine")],
    ),
    "another engine of a role": (
        {"disaggregation": PD, "roles": {"decode": {"engine": "sglang"}}},
        {},
        [("mode.engine", "spec.roles.decode.engine")],
    ),
    "roles without disaggregation": ({"roles": {}}, {}, [("structure.roles", "spec.roles")]),
    "one count for two roles": (
        {"disaggregation": PD, "replicas": 2},
        {},
        [("structure.replicas", "spec.replicas")],
    ),
    "a schedule for two roles": (
        {"disaggregation": PD, "scaling_schedule": [{"cron": "* * * * *", "replicas": 1}]},
        {},
        [("structure.schedule", "spec.scaling_schedule")],
    ),
    "a custom engine without a command": (
        {"engine": "custom"},
        {},
        [("structure.run_command", "spec.run_command")],
    ),
    "a custom mode without a router": (
        {"engine": "vllm", "disaggregation": {"mode": "custom"}},
        {},
        [("structure.run_command", "spec.run_command")],
    ),
    "a custom mode with one command for all": (
        {"engine": "custom", "disaggregation": {"mode": "custom"}, "run_command": ["serve"]},
        {},
        [],
    ),
    "a custom mode with a router of its own": (
        {"disaggregation": {"mode": "custom"}, "roles": {"router": {"run_command": ["route"]}}},
        {},
        [],
    ),
    "unknown hosts": (
        {
            "disaggregation": PD,
            "hosts": {"names": ["h1", "h7"]},
            "roles": {
                "decode": {"placement": [{"host": "h1"}, {"host": "h8"}]},
                "router": {"hosts": {"names": ["h9"]}},
            },
        },
        {"hosts": {"h1"}},
        [
            ("host.unknown", "spec.hosts.names[1]"),
            ("host.unknown", "spec.roles.decode.placement[1].host"),
            ("host.unknown", "spec.roles.router.hosts.names[0]"),
        ],
    ),
    "wider than every host": (
        {"disaggregation": PD, "roles": {"decode": {"accelerators": 16}}},
        {"hosts": {"h1", "h2"}, "widths": {"h1": 8, "h2": 4}},
        [("placement.too_wide", "spec.roles.decode.accelerators")],
    ),
    "wider, and so by inheritance": (
        {"disaggregation": PD, "accelerators": 16},
        {"hosts": {"h1"}, "widths": {"h1": 8}},
        [("placement.too_wide", "spec.accelerators")] * 2,
    ),
    "wider, but a host was not seen": (
        {"disaggregation": PD, "accelerators": 16},
        {"hosts": {"h1", "h2"}, "widths": {"h1": 8}},
        [],
    ),
    "pins of two widths": (
        {
            "placement": [
                {"host": "h1", "accelerators": [0, 1]},
                {"host": "h1", "accelerators": [2]},
            ]
        },
        {"hosts": {"h1"}},
        [("structure.placement", "spec.placement[1].accelerators")],
    ),
    "an accelerator for two roles": (
        {
            "disaggregation": PD,
            "roles": {
                "prefill": {"placement": [{"host": "h1", "accelerators": [0]}]},
                "decode": {"placement": [{"host": "h1", "accelerators": [0]}]},
            },
        },
        {"hosts": {"h1"}},
        [("structure.placement", "spec.roles.decode.placement[0].accelerators")],
    ),
    "the same pins inherited by both roles": (
        {"disaggregation": PD, "placement": [{"host": "h1", "accelerators": [0]}]},
        {"hosts": {"h1"}},
        [("structure.placement", "spec.placement[0].accelerators")],
    ),
    "an accelerator twice in one pin": (
        {"placement": [{"host": "h1", "accelerators": [0, 0]}]},
        {"hosts": {"h1"}},
        [("structure.placement", "spec.placement[0].accelerators")],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_structure(kit: Kit, name: str) -> None:
    spec, about, expected = CASES[name]
    known = Known(kit.catalogue, frozenset(about.get("hosts", ())), about.get("widths", {}))
    subject = Subject(kit.document(None, **{"accelerators": 1} | spec), known)
    found = [p for rule in RULES for p in rule(subject)]
    assert [(p.rule, p.path) for p in found] == expected
    for problem in found:
        assert problem.message
        assert problem.remedy
        assert problem.values
        assert problem.verdict == "refused"
