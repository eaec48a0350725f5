"""Plain data as a document: an error names the path, what was found, what is wanted, a remedy."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.domain.deployment import Deployment
from backend.domain.documents import explain, parse_deployment, path_of
from backend.domain.errors import Invalid, Problem
from backend.domain.host import Host

GOOD: dict[str, Any] = {
    "apiVersion": "pdtui/v1",
    "kind": "Deployment",
    "metadata": {"name": "chat"},
    "spec": {
        "model": "/m",
        "engine": "vllm",
        "parameters": ["--max-model-len", "4096"],
        "env": {"A": "1"},
        "disaggregation": {"mode": "vllm-nixl"},
        "roles": {"prefill": {"replicas": 2}, "decode": {"placement": [{"host": "h1"}]}},
    },
}


def wrong(*path: str | int, value: Any) -> list[Problem]:
    """The problems of GOOD with one value put at a path."""
    data = copy.deepcopy(GOOD)
    at: Any = data
    for part in path[:-1]:
        at = at[part]
    at[path[-1]] = value
    with pytest.raises(Invalid) as caught:
        parse_deployment(data)
    return list(caught.value.problems)


def test_a_good_document_reads_and_writes_back() -> None:
    document = parse_deployment(GOOD)
    assert parse_deployment(document.document()) == document


S = "spec"
KINDS: list[tuple[tuple[str | int, ...], Any, str, str, str]] = [
    (("kind",), "Pod", "kind", "structure.value", "Write 'Deployment'."),
    (("apiVersion",), "v2", "apiVersion", "structure.value", "Write 'pdtui/v1'."),
    (("metadata", "name"), "Big Name", "metadata.name", "structure.value", "message says"),
    ((S, "engine"), "tgi", "spec.engine", "structure.value", "'sglang'"),
    ((S, "model"), "", "spec.model", "structure.value", "Write some text."),
    ((S, "model"), None, "spec.model", "structure.value", "Write text."),
    ((S, "accelerators"), -1, "spec.accelerators", "structure.value", "a number of at least 0"),
    ((S, "accelerators"), 2000, "spec.accelerators", "structure.value", "a number of at most 1024"),
    ((S, "accelerators"), "two", "spec.accelerators", "structure.value", "a whole number"),
    ((S, "accelerators"), 1.5, "spec.accelerators", "structure.value", "a whole number"),
    ((S, "accelerators"), [1], "spec.accelerators", "structure.value", "a whole number"),
    ((S, "paused"), "perhaps", "spec.paused", "structure.value", "true or false"),
    ((S, "parameters"), "--a 1", "spec.parameters", "structure.value", "Write a list."),
    ((S, "parameters", 1), 4096, "spec.parameters[1]", "structure.value", 'in quotes, "4096"'),
    ((S, "engine_version"), 0.29, "spec.engine_version", "structure.value", 'in quotes, "0.29"'),
    ((S, "env"), ["A=1"], "spec.env", "structure.value", "Write a mapping."),
    ((S, "env", "DEBUG"), True, "spec.env.DEBUG", "structure.value", 'in quotes, "true"'),
    ((S, "env"), {"1A": "x"}, "spec.env", "structure.value", "message says"),
    ((S, "env"), {1: "x"}, "spec.env", "structure.value", 'in quotes, "1"'),
    ((S,), None, "spec", "structure.value", "Write a mapping."),
    ((S, "roles", "prefill"), [], "spec.roles.prefill", "structure.value", "Write a mapping."),
    ((S, "roles", "prefill", "replicas"), 0, "spec.roles.prefill.replicas", "structure.value",
     "at least 1"),
    ((S, "disaggregation"), {}, "spec.disaggregation.mode", "structure.missing_field",
     "Add 'mode'."),
    ((S, "roles", "decode", "placement", 0), {}, "spec.roles.decode.placement[0].host",
     "structure.missing_field", "Add 'host'."),
    ((S, "extended_kv_cache"), {"kind": "service", "ram_size_gib": 0},
     "spec.extended_kv_cache.ram_size_gib", "structure.value", "a number above 0"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "named", "rule", "remedy"), KINDS)
def test_each_kind_of_error(
    path: tuple[str | int, ...], value: Any, named: str, rule: str, remedy: str
) -> None:
    (problem, *_) = wrong(*path, value=value)
    assert problem.path.startswith(named)
    assert problem.rule == rule
    assert remedy in problem.remedy
    if rule == "structure.value":
        assert problem.values["expected"]
        assert "found" in problem.values
    assert problem.message.endswith(".")
    assert ".." not in problem.message.removesuffix("...")


NEAR: list[tuple[tuple[str | int, ...], str]] = [
    ((S, "parameter"), "parameters"),
    ((S, "servedModelName"), "served_model_name"),
    ((S, "engine-version"), "engine_version"),
    ((S, "Accelerators"), "accelerators"),
    ((S, "roles", "prefil"), "prefill"),
    ((S, "roles", "prefill", "replica"), "replicas"),
    ((S, "roles", "decode", "placement", 0, "accelerator"), "accelerators"),
    ((S, "disaggregation", "kv_load_failure"), "kv_load_failure_policy"),
    (("api_versions",), "apiVersion"),
    (("metadata", "label"), "labels"),
]


@pytest.mark.parametrize(("path", "meant"), NEAR)
def test_a_near_miss_is_told_what_was_meant(path: tuple[str | int, ...], meant: str) -> None:
    (problem,) = wrong(*path, value="x")
    assert problem.rule == "structure.unknown_field"
    assert problem.path == path_of(path)
    assert problem.remedy == f"Did you mean {meant!r}?"


def test_a_field_that_is_like_nothing_is_told_what_there_is() -> None:
    (problem,) = wrong(S, "roles", "router", value={"count": 2})
    assert problem.path == "spec.roles.router.count"
    assert problem.remedy.startswith("Known here: image, executable, run_command")
    assert problem.values["field"] == "count"
    assert "2" in problem.message


def test_every_wrong_field_is_told_at_once() -> None:
    with pytest.raises(Invalid) as caught:
        parse_deployment({"spec": {"engine": "x", "nope": 1}, "metadata": {}})
    assert {p.path for p in caught.value.problems} == {
        "metadata.name", "spec.model", "spec.engine", "spec.nope",
    }  # fmt: skip


@pytest.mark.parametrize("data", [None, 3, "text", [], [GOOD], b"x", 1.5, True])
def test_what_is_no_mapping_is_told_so(data: object) -> None:
    with pytest.raises(Invalid, match="a deployment is a mapping"):
        parse_deployment(data)


@pytest.mark.parametrize("name", ["HF_TOKEN", "OPENAI_API_KEY", "DB_PASSWORD", "aws_secret"])
def test_a_secret_is_never_repeated(name: str) -> None:
    for path in [(S, "env", name), (S, name)]:
        text = "".join(p.model_dump_json() for p in wrong(*path, value=918273645))
        assert "918273645" not in text
    text = "".join(p.model_dump_json() for p in wrong(S, "env", value=f"{name}=918273645"))
    assert "918273645" not in text


def test_another_model_is_explained_the_same_way() -> None:
    from pydantic import ValidationError

    with pytest.raises(ValidationError) as caught:
        Host.model_validate({"name": "h1", "address": "a", "service_port_ranges": [1, 2]})
    (problem,) = explain(caught.value, Host).problems
    assert problem.remedy == "Did you mean 'service_port_range'?"


@pytest.mark.parametrize(
    ("location", "text"),
    [((), ""), (("spec",), "spec"), (("a", 0, "b", 1, 2), "a[0].b[1][2]"), ((0,), "[0]")],
)
def test_paths(location: tuple[str | int, ...], text: str) -> None:
    assert path_of(location) == text


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.dates()
KEYS = (
    st.sampled_from([
        "spec", "metadata", "roles", "prefill", "env", "placement", "model", "engine", "name",
        "apiVersion", "parameters", "hosts", "disaggregation", "extended_kv_cache",
    ])
    | st.text(max_size=5)
    | st.integers()
    | st.none()
    | st.booleans()
)  # fmt: skip
DATA = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=15,
)


def _problems_are_whole(data: object) -> None:
    try:
        found = parse_deployment(data)
    except Invalid as error:
        for problem in error.problems:
            assert problem.message
            assert problem.remedy
            assert problem.rule.startswith("structure.")
            problem.model_dump_json()
    else:
        assert isinstance(found, Deployment)


@settings(max_examples=250, deadline=None)
@given(DATA)
def test_anything_that_yaml_can_hold_is_answered(data: object) -> None:
    _problems_are_whole(yaml.safe_load(yaml.safe_dump(data)))


@settings(max_examples=250, deadline=None)
@given(st.dictionaries(KEYS, DATA, max_size=3), st.dictionaries(KEYS, DATA, max_size=3))
def test_anything_beside_a_good_document_is_answered(
    top: dict[Any, Any], spec: dict[Any, Any]
) -> None:
    _problems_are_whole(GOOD | top)
    _problems_are_whole(GOOD | {"spec": GOOD["spec"] | spec})


def test_a_document_that_holds_itself_is_answered() -> None:
    data = yaml.safe_load("&a {spec: *a, metadata: {name: x, labels: *a}}")
    _problems_are_whole(data)
