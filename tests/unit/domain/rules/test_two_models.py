"""Roles of which one is known to run a model of another kind, or of which one is not known.

Each role names its model; what is proven of one says nothing of the other.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.domain.rules.conftest import Court, brief
from tests.unit.domain.rules.test_environment import (
    CHUNKED,
    CHUNKS,
    LATENT,
    LAYOUT,
    MLA,
    OFF,
    ON,
    PERMUTE,
    PLAIN,
    RECURRENT,
    SSM,
)

FIRST, SECOND = "/data/models/first", "/data/models/second"
P, D = ["--model", FIRST], ["--model", SECOND]


def judged(
    court: Court, rule: str, p: dict[str, Any], d: dict[str, Any], configs: list[Any], **spec: Any
) -> list[str]:
    """The findings of `rule` about two roles with a model each; None: it is not known."""
    about = {"configs": {m: c for m, c in zip((FIRST, SECOND), configs, strict=True) if c}}
    roles = [
        {**role, "parameters": [*model, *role.get("parameters", [])]}
        for role, model in ((p, P), (d, D))
    ]
    spec.setdefault("engine_version", "0.29.0")
    if any("engine_version" in role for role in roles):
        del spec["engine_version"]
    return brief(court.pair(*roles, about=about, **spec), f"pairing.{rule}")


def envs(name: str, p: str | None, d: str | None) -> list[dict[str, Any]]:
    return [{"env": {} if v is None else {name: v}} for v in (p, d)]


@pytest.mark.parametrize("known", [(PLAIN, None), (None, PLAIN)])
def test_a_layout_is_proven_only_of_two_known_models(court: Court, known: Any) -> None:
    found = judged(court, "kv_cache_layout", *envs(LAYOUT, "NHD", "HND"), [*known])
    assert found == ["unverified env_model_unknown"]


def test_layouts_of_a_latent_and_a_plain_model(court: Court) -> None:
    p, d = ({"env": {LAYOUT: layout, MLA: "0"}} for layout in ("NHD", "HND"))
    assert judged(court, "kv_cache_layout", p, d, [LATENT, PLAIN]) == ["refused env_differ"]
    assert judged(court, "kv_cache_layout", p, d, [PLAIN, LATENT]) == ["refused env_differ"]
    assert judged(court, "kv_cache_layout", p, d, [LATENT, LATENT]) == []


@pytest.mark.parametrize("configs", [[LATENT, PLAIN], [PLAIN, LATENT], [LATENT, LATENT]])
def test_one_latent_model_is_enough(court: Court, configs: list[Any]) -> None:
    assert judged(court, "mla", *envs(MLA, "0", "1"), configs) == ["refused differ"]


@pytest.mark.parametrize(
    ("configs", "expected"),
    [
        ([RECURRENT, None], ["unverified model_unknown"]),
        ([None, RECURRENT], ["unverified model_unknown"]),
        ([RECURRENT, PLAIN], []),
        ([PLAIN, RECURRENT], []),
        ([RECURRENT, RECURRENT], ["refused differ"]),
    ],
)
def test_a_recurrent_model_on_both_sides(
    court: Court, configs: list[Any], expected: list[str]
) -> None:
    assert judged(court, "ssm_conv_state_layout", *envs(SSM, "DS", "SD"), configs) == expected


@pytest.mark.parametrize("versions", [("0.29.0", "0.27.0"), ("0.27.0", "0.29.0")])
def test_both_versions_have_to_be_ones_the_tables_describe(
    court: Court, versions: tuple[str, str]
) -> None:
    roles = [
        {**role, "engine_version": version}
        for role, version in zip(envs(SSM, "DS", "SD"), versions, strict=True)
    ]
    found = judged(court, "ssm_conv_state_layout", *roles, [RECURRENT, RECURRENT])
    assert found == ["unverified version_unknown"]


MANAGERS = [
    # flags and variable of prefill and decode, models, versions
    (([OFF], None), ([], None), [PLAIN, None], None, ["unverified model_unknown"]),
    (([OFF], None), ([], None), [None, PLAIN], None, ["unverified model_unknown"]),
    (([ON], None), ([], None), [None, None], ("0.26.0", "0.29.0"), ["unverified model_unknown"]),
    (([ON], None), ([], None), [None, None], ("0.26.0", "0.27.1"), ["unverified model_unknown"]),
    (([ON], None), ([], None), [None, None], ("0.26.0", "0.27.0"), ["refused resolved"]),
    (([ON], None), ([], None), [None, None], ("0.27.1", "0.27.1"), ["unverified model_unknown"]),
    (([ON], None), ([], None), [PLAIN, PLAIN], ("0.27.1", "0.27.1"), []),
    (([], "0"), ([], "0"), [CHUNKS, PLAIN], None, ["refused resolved"]),
    (([], "0"), ([], "0"), [PLAIN, CHUNKS], None, ["refused resolved"]),
    (([ON], "0"), ([], "0"), [CHUNKS, CHUNKS], None, ["refused no_effect"]),
    (([], "0"), ([ON], "0"), [CHUNKS, CHUNKS], None, ["refused no_effect"]),
]


@pytest.mark.parametrize(("p", "d", "configs", "versions", "expected"), MANAGERS)
def test_the_manager_of_each_side(
    court: Court, p: Any, d: Any, configs: Any, versions: Any, expected: list[str]
) -> None:
    roles: list[dict[str, Any]] = []
    for at, (flags, variable) in enumerate((p, d)):
        role = {"parameters": flags, "env": {CHUNKED: variable} if variable else {}}
        roles.append({**role, "engine_version": versions[at]} if versions else role)
    assert judged(court, "hybrid_kv_cache_manager", *roles, configs) == expected


def test_a_model_whose_layers_all_attend_fully_is_not_windowed(court: Court) -> None:
    for kinds in (["attention", "full_attention"], ["full_attention"], ["attention"]):
        config = {**PLAIN, "layer_types": kinds}
        found = court.pair(
            *envs(LAYOUT, "HND", "NHD"), about={"config": config},
            disaggregation={"connector_extra": PERMUTE},
        )  # fmt: skip
        assert brief(found, "pairing.kv_cache_layout") == []


@pytest.mark.parametrize("name", ["LBNHC", "LBHNC", "LHBNC", "BLHNC", "BLNHC", "BHLNC"])
def test_every_layout_is_one(court: Court, name: str) -> None:
    same = court.pair(*envs(LAYOUT, name, f"{name.lower()} "))
    assert brief(same, "pairing.kv_cache_layout") == []
    other = "BHLNC" if name != "BHLNC" else "BLHNC"
    apart = court.pair(*envs(LAYOUT, name, other), about={"config": PLAIN})
    assert brief(apart, "pairing.kv_cache_layout") == ["refused env_differ"]


def test_another_connector_that_is_known_proves_nothing_of_layouts(court: Court) -> None:
    own = {"parameters": ['--kv-transfer-config={"kv_connector":"MooncakeConnector"}']}
    roles = [{**own, **env} for env in envs(LAYOUT, "NHD", "HND")]
    found = court.pair(*roles, about={"config": PLAIN})
    assert brief(found, "pairing.kv_cache_layout") == ["unverified env_buffer"]
