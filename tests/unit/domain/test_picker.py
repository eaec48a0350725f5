"""Which modes fit, which one is recommended, and when a version is warned about."""

from __future__ import annotations

from typing import Any

import pytest

from backend.domain.picker import choices, version_warnings


@pytest.mark.parametrize(
    ("engine", "vendors", "recommended", "fitting"),
    [
        ("vllm", ["nvidia"], "vllm-nixl", {"vllm-nixl", "vllm-mooncake", "custom"}),
        ("sglang", ["nvidia"], "sglang-mooncake", {"sglang-mooncake", "sglang-nixl", "custom"}),
        ("vllm-ascend", ["ascend"], "vllm-ascend-mooncake", {"vllm-ascend-mooncake", "custom"}),
        ("vllm", ["ascend"], None, {"custom"}),
        ("vllm", [], None, {"custom"}),
        ("vllm", None, "vllm-nixl", {"vllm-nixl", "vllm-mooncake", "custom"}),
        ("vllm", ["nvidia", "ascend"], None, {"vllm-nixl", "vllm-mooncake", "custom"}),
        ("custom", ["nvidia"], None, {"custom"}),
    ],
)
def test_choices(
    kit: Any, engine: str, vendors: Any, recommended: str | None, fitting: set[str]
) -> None:
    found = choices(kit.catalogue, engine, vendors)
    assert {c.mode for c in found if not c.why_not} == fitting
    assert [c.mode for c in found if c.recommended] == ([recommended] if recommended else [])
    assert {c.mode for c in found} == set(kit.catalogue.modes)


def test_reasons_name_both_sides(kit: Any) -> None:
    why = {c.mode: c.why_not for c in choices(kit.catalogue, "vllm", ["ascend"])}
    assert why["vllm-nixl"] == "it needs nvidia accelerators; the hosts have ascend"
    assert why["sglang-nixl"] == "it is for sglang, not vllm"


@pytest.mark.parametrize(
    ("spec", "ranges"),
    [
        ({"engine_version": "0.27.0"}, [">=0.27.1"]),
        ({"engine_version": "0.27.1"}, []),
        ({"engine_version": None}, []),
        ({"engine_version": "0.20.0", "image": "own:1"}, []),
        ({"engine_version": "0.20.0-custom"}, []),
        ({"engine_version": "0.20.0+cu12"}, []),
        ({"engine_version": "0.20.0rc1"}, []),
        ({"engine_version": "nightly"}, []),
        ({"engine_version": "0.25.0", "extended_kv_cache": {"kind": "in_process"}},
         [">=0.27.1", ">=0.26.0"]),
    ],
)  # fmt: skip
def test_version_warnings(kit: Any, spec: dict[str, Any], ranges: list[str]) -> None:
    found = version_warnings(kit.catalogue, kit.document(**spec).spec)
    assert [p.values["range"] for p in found] == ranges
    assert {p.verdict for p in found} <= {"warning"}


def test_a_roles_own_version_is_its_own_warning(kit: Any) -> None:
    roles = {"decode": {"engine_version": "0.26.0"}}
    found = version_warnings(kit.catalogue, kit.document(engine_version="0.28.0", roles=roles).spec)
    assert [p.path for p in found] == ["spec.roles.decode.engine_version"]


def test_a_cache_service_has_a_range_of_its_own(kit: Any) -> None:
    spec = kit.document(
        "vllm-mooncake",
        engine_version="0.28.0",
        extended_kv_cache={"kind": "service", "service": "s"},
    ).spec
    found = version_warnings(kit.catalogue, spec, "mooncake")
    assert [p.values["range"] for p in found] == [">=0.29.0"]
    assert version_warnings(kit.catalogue, spec, "lmcache") == ()
