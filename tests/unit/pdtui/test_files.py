"""Files of documents: what is read, and what is told instead of read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from backend.domain.documents import LONGEST_TEXT, parse_deployment
from backend.domain.errors import Invalid
from pdtui.cli.common import plain
from pdtui.cli.files import MOST_BYTES, read_documents

BOMB = "a0: &a0 [x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 26)
)


def _file(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "d.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("text", "rule", "said"),
    [
        ("a: [1,\nb: 2", "file.yaml", "line 2"),
        ("a: 1\nb:\n  c: 2\n  c: 3\n", "file.yaml", "'c' is written twice"),
        (BOMB, "file.yaml", "aliases are written out"),
        ("a: &a [*a]", "file.yaml", "aliases are written out"),
        (b"\xff\xfe", "file.unreadable", "UTF-8"),
        ("", "file.empty", "no document"),
        ("---\n---\n", "file.empty", "no document"),
        ("#" * (MOST_BYTES + 1), "file.too_large", "MiB"),
        ("a: !!python/object/apply:os.system [x]", "file.yaml", "could not determine"),
    ],
)
def test_what_cannot_be_read_is_told(
    tmp_path: Path, text: str | bytes, rule: str, said: str
) -> None:
    with pytest.raises(Invalid) as caught:
        read_documents(_file(tmp_path, text))
    assert caught.value.problem.rule == rule
    assert said in caught.value.problem.sentence()
    assert "d.yaml" in caught.value.problem.message


def test_shared_parts_and_merges_are_fine(tmp_path: Path) -> None:
    text = "x: &x {a: 1, b: 2}\ny: {<<: *x, b: 3}\nz: [*x, *x]\n"
    (found,) = read_documents(_file(tmp_path, text))
    assert found["y"] == {"a": 1, "b": 3}
    assert found["z"] == [found["x"]] * 2


def test_json_written_with_escapes_reads_as_what_it_means(tmp_path: Path) -> None:
    document = {"name": "🎉 中文"}
    (found,) = read_documents(_file(tmp_path, json.dumps(document)))
    assert found == document


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a\0b", "NUL character at position 1"),
        ("\ud83c", "half of a character"),
        ("x" * (LONGEST_TEXT + 1), "bytes long"),
    ],
)
def test_text_that_starts_no_process_is_refused_where_it_stands(text: str, said: str) -> None:
    spec = {"model": "/m", "engine": "vllm", "parameters": ["--a", text], "env": {"A": text}}
    with pytest.raises(Invalid) as caught:
        parse_deployment({"metadata": {"name": "x"}, "spec": spec})
    assert [p.path for p in caught.value.problems] == ["spec.parameters[1]", "spec.env.A"]
    assert all(said in p.message for p in caught.value.problems)


def test_the_longest_argument_is_fine() -> None:
    spec = {"model": "/m", "engine": "vllm", "parameters": ["x" * LONGEST_TEXT]}
    assert parse_deployment({"metadata": {"name": "x"}, "spec": spec}).spec.parameters


@pytest.mark.parametrize(
    ("log", "shown"),
    [
        ("\x1b[31mred\x1b[0m\n", "red\n"),
        ("a\x1b]0;title\x07b", "ab"),
        ("a\x1b]8;;http://x\x1b\\b", "ab"),
        ("a\x07\x08\x7fb\tc\r\n", "ab\tc\r\n"),
        ("a\x1bPq#0\x1b\\b", "ab"),
        ("中文 🎉", "中文 🎉"),
    ],
)
def test_a_log_does_not_drive_the_terminal(log: str, shown: str) -> None:
    assert plain(log) == shown
