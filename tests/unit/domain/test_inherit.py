"""Null inherits, everything else replaces whole."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from backend.domain.deployment import Overridable, Spec
from backend.domain.inherit import effective, plain

BASE: dict[str, Any] = {
    "model": "/m",
    "engine": "vllm",
    "engine_version": "0.29.0",
    "image": "img",
    "executable": "/opt/venv",
    "run_command": ["sh"],
    "parameters": ["--a", "1"],
    "env": {"A": "1"},
    "accelerators": 2,
    "hosts": {"names": ["h1"]},
    "placement": [{"host": "h1"}],
    "extended_kv_cache": {"kind": "in_process"},
}


def spec(mode: str = "vllm-nixl", **roles: Any) -> Spec:
    return Spec.model_validate(BASE | {"disaggregation": {"mode": mode}, "roles": roles})


@pytest.mark.parametrize("role", ["prefill", "decode"])
def test_silence_inherits_everything(role: Literal["prefill", "decode"]) -> None:
    found = effective(spec(), role)
    assert found.inherited == frozenset(Overridable.model_fields)
    assert (found.engine, found.engine_version, found.image) == ("vllm", "0.29.0", "img")
    assert (found.parameters, dict(found.env)) == (("--a", "1"), {"A": "1"})
    assert (found.accelerators, found.run_command) == (2, ("sh",))
    assert found.extended_kv_cache.kind == "in_process"


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("parameters", [], ()),
        ("parameters", ["--b"], ("--b",)),
        ("env", {}, {}),
        ("env", {"B": "2"}, {"B": "2"}),
        ("image", "", ""),
        ("executable", "", ""),
        ("run_command", [], ()),
        ("accelerators", 0, 0),
        ("placement", [], ()),
    ],
)
def test_any_explicit_value_replaces_whole(field: str, value: Any, expected: Any) -> None:
    found = effective(spec(decode={field: value}), "decode")
    assert getattr(found, field) == expected
    assert field not in found.inherited
    assert field in effective(spec(decode={field: value}), "prefill").inherited


def test_an_explicit_cache_of_none_is_not_inheritance() -> None:
    found = effective(spec(decode={"extended_kv_cache": {"kind": "none"}}), "decode")
    assert found.extended_kv_cache.kind == "none"


def test_a_managed_router_takes_env_image_and_hosts_and_no_engine_settings() -> None:
    found = effective(spec(), "router")
    assert (found.parameters, found.run_command, found.executable) == ((), None, None)
    assert (dict(found.env), found.image, found.accelerators) == ({"A": "1"}, "img", 0)
    assert found.hosts is not None
    assert found.hosts.names == ["h1"]
    assert found.placement is None
    assert found.extended_kv_cache.kind == "none"
    assert dict(effective(spec(router={"env": {}}), "router").env) == {}


def test_only_custom_shares_the_run_command_with_its_router() -> None:
    assert effective(spec("custom"), "router").run_command == ("sh",)
    own = effective(spec("custom", router={"run_command": ["r"]}), "router")
    assert own.run_command == ("r",)
    assert "run_command" not in own.inherited


def test_plain() -> None:
    found = plain(Spec.model_validate(BASE | {"replicas": 3}))
    assert (found.name, found.replicas, found.parameters) == ("replica", 3, ("--a", "1"))


def test_width_is_the_widest_explicit_choice() -> None:
    pins = [{"host": "h", "accelerators": [0, 1, 2, 3]}, {"host": "h"}]
    assert effective(spec(decode={"placement": pins}), "decode").width == 4
    assert effective(spec(), "decode").width == 2
