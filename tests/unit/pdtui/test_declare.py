"""Documents of files on their way: told apart, put in order, their secrets put back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.domain.kinds import parse
from backend.domain.secrets import HIDDEN, masked
from backend.domain.yamlread import read_one
from pdtui.cli.files import read_parts
from pdtui.cli.planned import read_items, worst
from pdtui.state.secrets import restored
from pdtui.state.yamltext import dump

GOOD = "kind: {kind}\nmetadata: {{name: {name}}}\nspec: {{model: /m, engine: vllm}}\n"


def write(folder: Path, **texts: str) -> Path:
    """Files of a folder by name without suffix."""
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder


def test_a_folder_is_read_by_name_and_its_folders_when_asked(tmp_path: Path) -> None:
    write(tmp_path, b="x: 2", a="x: 1\n---\nx: 3")
    (tmp_path / "c.json").write_text('{"x": 4}')
    (tmp_path / "notes.txt").write_text("no")
    (tmp_path / ".hidden.yaml").write_text("no: 1")
    inner = tmp_path / "inner"
    inner.mkdir()
    write(inner, z="x: 5")
    assert [p.data["x"] for p in read_parts([tmp_path])] == [1, 3, 2, 4]
    assert [p.data["x"] for p in read_parts([tmp_path], recursive=True)] == [1, 3, 2, 4, 5]
    (empty,) = read_parts([inner / "no"])
    assert empty.problem is not None
    assert empty.problem.rule == "file.unreadable"


def test_documents_come_in_the_order_in_which_they_refer_to_each_other(tmp_path: Path) -> None:
    kinds = ("Deployment", "CacheService", "Host")
    write(tmp_path, **{f"a{i}": GOOD.format(kind=k, name="x") for i, k in enumerate(kinds)})
    items = read_items([tmp_path])
    assert [i.kind for i in items] == ["Host", "CacheService", "Deployment"]
    assert [i.code for i in items] == [0, 0, 0]


def test_a_broken_document_stays_its_own_problem(tmp_path: Path) -> None:
    write(tmp_path, a="a: [\n", b=GOOD.format(kind="Deployment", name="x"),
          c=GOOD.format(kind="Deployment", name="x"), d="kind: Nothing\n")  # fmt: skip
    found = {i.part.file.stem: i for i in read_items([tmp_path])}
    assert {name: i.code for name, i in found.items()} == {"a": 2, "b": 0, "c": 2, "d": 2}
    (twice,) = found["c"].problems
    assert twice.rule == "file.twice"
    assert "b.yaml:1" in twice.message


@pytest.mark.parametrize(
    ("codes", "code"),
    [([], 0), ([0, 0], 0), ([0, 3], 3), ([3, 4], 4), ([4, 1], 1), ([1, 2, 3], 2), ([0, 130], 130)],
)
def test_the_gravest_code_leaves(codes: list[int], code: int) -> None:
    assert worst(codes) == code


SECRETS: dict[str, Any] = {
    "spec": {
        "env": {"HF_TOKEN": "t", "A": "b"},
        "parameters": ["--api-key", "k", "--port=1", "--my-secret=s"],
        "roles": {"decode": {"env": {"PASSWORD": "p"}}},
    }
}


def test_masked_values_come_back_from_what_is_saved() -> None:
    hidden = masked(SECRETS)
    assert restored(hidden, SECRETS) == (SECRETS, [])
    moved = {"spec": {**hidden["spec"], "parameters": ["--x", *hidden["spec"]["parameters"][::1]]}}
    document, left = restored(moved, SECRETS)
    assert document["spec"]["parameters"][:3] == ["--x", "--api-key", "k"]
    assert left == []


def test_a_mask_without_a_saved_value_is_named() -> None:
    for saved in (None, {}, {"spec": {"env": {"HF_TOKEN": HIDDEN}}}):
        _, left = restored(masked(SECRETS), saved)
        assert left == ["spec.env.HF_TOKEN", "spec.parameters[1]", "spec.parameters[3]",
                        "spec.roles.decode.env.PASSWORD"]  # fmt: skip


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
NAMES = st.from_regex(r"[A-Z_][A-Z0-9_]{0,6}", fullmatch=True)
ROLE = st.fixed_dictionaries(
    {"replicas": st.integers(1, 9)},
    optional={
        "parameters": st.none() | st.lists(TEXT, max_size=3),
        "env": st.none() | st.dictionaries(NAMES, TEXT, max_size=2),
        "image": st.none() | TEXT,
        "accelerators": st.none() | st.integers(0, 8),
    },
)
DOCUMENTS = st.fixed_dictionaries(
    {
        "kind": st.just("Deployment"),
        "metadata": st.fixed_dictionaries(
            {"name": st.from_regex(r"[a-z]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)},
            optional={"labels": st.dictionaries(TEXT, TEXT, max_size=2)},
        ),
        "spec": st.fixed_dictionaries(
            {"model": TEXT.filter(bool), "engine": st.sampled_from(["vllm", "sglang", "custom"])},
            optional={
                "parameters": st.lists(TEXT, max_size=4),
                "env": st.dictionaries(NAMES, TEXT, max_size=3),
                "run_command": st.lists(TEXT, max_size=3),
                "paused": st.booleans(),
                "extended_kv_cache": st.just({"kind": "in_process", "ram_size_gib": 1.5}),
                "disaggregation": st.just({"mode": "vllm-nixl", "allow": ["x"]}),
                "roles": st.fixed_dictionaries({"prefill": ROLE, "decode": ROLE}),
            },
        ),
    }
)


@settings(deadline=None)
@given(DOCUMENTS)
def test_a_document_survives_every_round_trip(document: dict[str, Any]) -> None:
    meant = parse(document)
    written = dump(meant.document())
    assert parse(read_one(written)) == meant
    assert dump(parse(read_one(written)).document()) == written
