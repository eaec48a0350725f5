"""What makes a group's configuration changed, and what does not."""

from __future__ import annotations

from typing import Any

import pytest

from backend.domain.deployment import Deployment
from backend.domain.revision import changes, changes_beside, revision

BASE: dict[str, Any] = {
    "model": "/m",
    "engine": "vllm",
    "parameters": ["--max-model-len", "32768"],
    "env": {"A": "1", "HF_TOKEN": "hidden"},
    "disaggregation": {"mode": "vllm-nixl"},
    "roles": {"prefill": {"replicas": 2}, "decode": {"parameters": ["--max-num-seqs", "256"]}},
}


def build(*path_and_value: Any) -> Deployment:
    """The base document with one value set at a path; a value of `...` deletes."""
    body: dict[str, Any] = Deployment.model_validate(
        {"metadata": {"name": "q"}, "spec": BASE}
    ).model_dump(mode="json", by_alias=True, exclude_unset=True)
    if path_and_value:
        *path, last, value = path_and_value
        node = body
        for key in path:
            node = node.setdefault(key, {})
        if value is ...:
            node.pop(last, None)
        else:
            node[last] = value
    return Deployment.model_validate(body)


SAME = [
    ("spec", "roles", "prefill", "replicas", 7),
    ("spec", "roles", "decode", "hosts", {"names": ["h"]}),
    ("spec", "roles", "decode", "placement", [{"host": "h"}]),
    ("spec", "roles", "router", "hosts", {"names": ["h"]}),
    ("spec", "hosts", {"labels": {"rack": "a"}}),
    ("spec", "placement", [{"host": "h"}]),
    ("spec", "paused", True),
    ("spec", "disaggregation", "allow", ["pairing.tensor_parallel"]),
    ("metadata", "labels", {"team": "x"}),
    ("spec", "roles", "prefill", "env", None),
    ("spec", "roles", "router", {}),
    ("spec", "engine_version", None),
    ("spec", "accelerators", 1),
]
OTHER = [
    (("spec", "model", "/n"), "spec.model: /m -> /n"),
    (("spec", "parameters", ["--max-model-len", "16384"]),
     "spec.parameters[1]: 32768 -> 16384"),
    (("spec", "parameters", ["--x", "--max-model-len", "32768"]),
     "spec.parameters[0]: added --x"),
    (("spec", "parameters", []), "spec.parameters: removed (was --max-model-len 32768)"),
    (("spec", "env", "A", "2"), "spec.env.A: 1 -> 2"),
    (("spec", "env", "HF_TOKEN", "other"), "spec.env.HF_TOKEN: (secret) -> (secret)"),
    (("spec", "accelerators", 4), "spec.accelerators: added 4"),
    (("spec", "roles", "decode", "parameters", ["--max-num-seqs", "512"]),
     "spec.roles.decode.parameters[1]: 256 -> 512"),
    (("spec", "roles", "prefill", "env", {}), "spec.roles.prefill.env: added {}"),
    (("spec", "roles", "router", "parameters", ["--retry-max-retries", "5"]),
     "spec.roles.router.parameters: added --retry-max-retries 5"),
    (("spec", "disaggregation", "kv_load_failure_policy", "recompute"),
     "spec.disaggregation.kv_load_failure_policy: added recompute"),
    (("spec", "disaggregation", "connector_extra", {"prefill": {"kv_buffer_device": "cpu"}}),
     "spec.disaggregation.connector_extra: added {\"prefill\": {\"kv_buffer_device\": \"cpu\"}}"),
    (("spec", "extended_kv_cache", {"kind": "in_process"}),
     "spec.extended_kv_cache: added {\"kind\": \"in_process\"}"),
    (("spec", "image", "i:1"), "spec.image: added i:1"),
    (("metadata", "name", "r"), "name: q -> r"),
]  # fmt: skip


@pytest.mark.parametrize("edit", SAME, ids=lambda e: ".".join(map(str, e[:-1])))
def test_what_only_places_or_counts_is_no_change(kit: Any, edit: tuple[Any, ...]) -> None:
    edited = build(*edit)
    assert revision(edited, kit.catalogue) == revision(build(), kit.catalogue)
    assert changes(build(), edited, kit.catalogue, kit.catalogue) == ()


@pytest.mark.parametrize(("edit", "line"), OTHER, ids=[line for _, line in OTHER])
def test_what_shapes_a_launch_is_a_change(kit: Any, edit: tuple[Any, ...], line: str) -> None:
    edited = build(*edit)
    assert revision(edited, kit.catalogue) != revision(build(), kit.catalogue)
    assert changes(build(), edited)[0] == line


def test_secrets_are_not_written_out() -> None:
    assert "hidden" not in " ".join(changes(build(), build("spec", "env", ...)))
    assert "other" not in " ".join(changes(build(), build("spec", "env", "HF_TOKEN", "other")))
    role = build("spec", "roles", "decode", "env", {"HF_TOKEN": "other"})
    assert "other" not in " ".join(changes(build(), role))


def test_an_upgraded_recipe_is_a_change_that_is_named(kit: Any) -> None:
    body = kit.catalogue.model_dump(mode="json")
    body["modes"]["vllm-nixl"]["lease"]["value_s"] = 90
    upgraded = type(kit.catalogue).model_validate(body)
    assert revision(build(), upgraded) != revision(build(), kit.catalogue)
    lines = changes(build(), build(), kit.catalogue, upgraded)
    assert lines == ("recipe.mode.lease.value_s: 60 -> 90",)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("title",), "Other"),
        (("versions", "range"), ">=1"),
        (("notes",), ["x"]),
        (("router", "policies"), "x"),
        (("cache", "in_process", "note"), "x"),
    ],
)
def test_what_a_recipe_only_shows_is_no_change(kit: Any, path: tuple[str, ...], value: Any) -> None:
    body = kit.catalogue.model_dump(mode="json")
    node = body["modes"]["vllm-nixl"]
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    upgraded = type(kit.catalogue).model_validate(body)
    assert revision(build(), upgraded) == revision(build(), kit.catalogue)


def test_another_mode_or_engine_of_the_catalogue_is_no_change(kit: Any) -> None:
    pinned = kit.catalogue.pin(build().spec)
    assert set(pinned.modes) == {"vllm-nixl"}
    assert set(pinned.engines) == {"vllm"}
    assert revision(build(), pinned) == revision(build(), kit.catalogue)
    again = type(pinned).model_validate_json(pinned.model_dump_json())
    assert again == pinned


def test_the_digest_is_a_sha256(kit: Any) -> None:
    assert len(revision(build(), kit.catalogue)) == 64


def test_what_a_revision_leaves_out_is_told_apart() -> None:
    """Labels and places: no launch depends on them, and a history that hid them would lie."""
    roles = {"prefill": {"placement": [{"host": "a"}]}, "decode": {"replicas": 3}}
    before = {"model": "/m", "engine": "vllm", "disaggregation": {"mode": "vllm-nixl"}}
    after = before | {
        "roles": roles,
        "hosts": {"labels": {"rack": "b"}},
        "disaggregation": {"mode": "vllm-nixl", "allow": ["pairing.tensor_parallel"]},
    }
    old = Deployment.model_validate(
        {"metadata": {"name": "m", "labels": {"x": "1"}}, "spec": before}
    )
    new = Deployment.model_validate(
        {"metadata": {"name": "m", "labels": {"x": "2"}}, "spec": after}
    )
    assert changes(old, new) == ()
    assert changes_beside(old, new) == (
        "metadata.labels.x: 1 -> 2",
        'spec.roles.prefill.placement: added [{"host": "a"}]',
        'spec.hosts: added {"labels": {"rack": "b"}}',
        "spec.disaggregation.allow: added pairing.tensor_parallel",
    )
    assert changes_beside(new, new) == ()
