"""Values kept elsewhere: read, shown, stored and rendered as references, never as what they say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.domain import references
from backend.domain.documents import parse_deployment
from backend.domain.errors import Invalid
from backend.domain.instance import LaunchSpec
from backend.domain.revision import changes
from backend.domain.secrets import HIDDEN, is_secret, masked
from backend.steps import launching

REFERENCES: list[dict[str, Any]] = [
    {"from_env": "HF_TOKEN"},
    {"from_file": "/run/secrets/hf"},
    {"from_file": "~/a b"},
    {"from_command": ["pass", "show", "hf token"]},
]


def document(**env: Any) -> dict[str, Any]:
    return {
        "apiVersion": "pdtui/v1",
        "kind": "Deployment",
        "metadata": {"name": "chat"},
        "spec": {"model": "/m", "engine": "vllm", "env": env},
    }


@pytest.mark.parametrize("reference", REFERENCES, ids=str)
def test_a_reference_comes_back_as_it_was_written(reference: dict[str, Any]) -> None:
    parsed = parse_deployment(document(HF_TOKEN=reference, A="plain"))
    assert parsed.document()["spec"]["env"] == {"HF_TOKEN": reference, "A": "plain"}
    stored = json.loads(parsed.model_dump_json(by_alias=True))
    assert parse_deployment(stored) == parsed
    assert references.literal(parsed.spec.env) == {"A": "plain"}
    line = references.said(parsed.spec.env["HF_TOKEN"])
    assert references.read(line) == reference


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"from_env": "A", "from_file": "/b"},
        {"from_vault": "x"},
        {"from_env": ""},
        {"from_env": "not a name"},
        {"from_file": "relative"},
        {"from_command": "pass show"},
        {"from_command": []},
        {"from_command": ["a", 1]},
    ],
    ids=str,
)
def test_what_is_no_reference_is_refused_at_its_field(wrong: dict[str, Any]) -> None:
    with pytest.raises(Invalid) as caught:
        parse_deployment(document(HF_TOKEN=wrong))
    assert caught.value.problem.path == "spec.env.HF_TOKEN"


@given(st.text())
def test_no_text_of_a_document_is_taken_for_a_reference(text: str) -> None:
    try:
        parsed = parse_deployment(document(A=text))
    except Invalid:
        return  # what no process can be started with
    assert not references.is_reference(parsed.spec.env["A"])
    assert parsed.document()["spec"]["env"] == {"A": text}


def test_a_launch_keeps_the_reference_and_its_files_too() -> None:
    spec = LaunchSpec.model_validate(
        {"argv": ["x"], "address": "h", "port": 1, "env": {"T": {"from_env": "T"}, "A": "1"}}
    )
    assert LaunchSpec.model_validate_json(spec.model_dump_json()) == spec
    args = launching.start_args(
        ".pdtui", "me", "a", 1, spec, {}, run_id="r", log_limit=1, rotate_every_s=1,
        env={"T": "the value", "A": "1"},
    )  # fmt: skip
    assert [a for a in args if "the value" in a] == [
        launching.env_text(
            {"T": "the value", "A": "1", "PDTUI_RUN_ID": "r", "PDTUI_INSTANCE": "a",
             "PDTUI_ROLE": ""}
        )
    ]  # fmt: skip
    assert json.loads(args[-3]) == {"T": {"from_env": "T"}, "A": "1"}
    assert json.loads(args[-2])["launch"]["env"] == {"T": {"from_env": "T"}, "A": "1"}


def test_an_unresolved_reference_cannot_reach_a_shell() -> None:
    spec = LaunchSpec.model_validate(
        {"argv": ["x"], "address": "h", "port": 1, "env": {"T": {"from_env": "T"}}}
    )
    with pytest.raises(ValueError, match="NUL"):
        launching.start_args(
            ".pdtui", "me", "a", 1, spec, {}, run_id="r", log_limit=1, rotate_every_s=1
        )


def test_a_changed_reference_is_a_change_and_is_told() -> None:
    old = parse_deployment(document(HF_TOKEN={"from_env": "A"}))
    new = parse_deployment(document(HF_TOKEN={"from_env": "B"}))
    assert changes(old, new) == ("spec.env.HF_TOKEN.from_env: A -> B",)
    (line,) = changes(parse_deployment(document(HF_TOKEN="aaaaaaaa")), new)
    assert "aaaaaaaa" not in line


def test_masking_hides_values_and_shows_references() -> None:
    body = document(HF_TOKEN="hf_abc", OTHER={"from_env": "X"}, A="1")
    assert masked(body)["spec"]["env"] == {
        "HF_TOKEN": HIDDEN, "OTHER": {"from_env": "X"}, "A": "1",
    }  # fmt: skip
    assert masked({"parameters": ["--api-key", "k", "--hf-token=k", "--max-num-seqs", "8"]}) == {
        "parameters": ["--api-key", HIDDEN, f"--hf-token={HIDDEN}", "--max-num-seqs", "8"]
    }


@pytest.mark.parametrize("name", ["HF_TOKEN", "API_KEY", "my-passphrase", "AUTHORIZATION_BEARER"])
def test_names_that_tell_a_secret(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize("name", ["max_num_batched_tokens", "TOKENIZER_MODE", "MONKEY", "keys"])
def test_names_that_do_not(name: str) -> None:
    assert not is_secret(name)
