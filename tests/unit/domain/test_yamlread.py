"""What the one reader of YAML and JSON gives, and the line of every mistake."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.domain.yamlread import MOST_DEPTH, Mistake, read_all, read_one
from pdtui.state.yamltext import dump

SCALARS = st.none() | st.booleans() | st.integers(-(10**18), 10**18) | st.text(max_size=20)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
PLAIN = st.recursive(
    SCALARS | NUMBERS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("a: 1\nb:\n  c: 2\n  c: 3\n", 4, "'c' is written twice, first on line 3"),
        ("x: &x {a: 1}\ny:\n  <<: *x\n  b: 1\n  b: 2\n", 5, "'b' is written twice"),
        ("a: [1,\nb: 2", 2, "expected"),
        ("a: 1\n1: 2", 2, "key '1' must be text"),
        ("a: 1\n? [x]\n: 2", 2, "must be text"),
        ("a: 1\nb: .inf", 2, "no finite number"),
        ("a: !!int x", 1, "'x' is no int"),
        ("a: !!binary aGk=", 1, "could not determine"),
        ("a: !!set {x}", 1, "could not determine"),
        ("a: =", 1, "could not determine"),
        ("a: &a\n  - *a", 1, "contains itself"),
        ("a: " + "9" * 5000, 1, "is no int"),
        ("[" * 5000, 1, "too deeply"),
        ("[" * (MOST_DEPTH + 2) + "]" * (MOST_DEPTH + 2), 1, "levels deep"),
        ("ok: 1\nb: \x01", 2, "not allowed"),
        ("a: 1\n---\nb: 2", 3, "second document"),
    ],
)
def test_a_mistake_has_its_line(text: str, line: int, why: str) -> None:
    with pytest.raises(Mistake) as caught:
        read_one(text)
    assert caught.value.line == line
    assert why in caught.value.why


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("on", "on"), ("No", "No"), ("y", "y"), ("true", True), ("FALSE", False),
        ("2024-01-01", "2024-01-01"), ("12:30", "12:30"), ("1:30.5", "1:30.5"),
        ("~", None), ("0x1F", 31), ("1e3", 1000.0), ("'1e3'", "1e3"), ("-2E-7", -2e-7),
        ("1.0e+3", 1000.0), ("'5'", "5"),
        ("!!str 5", "5"),
    ],
)  # fmt: skip
def test_words_mean_what_yaml_1_2_says(text: str, means: Any) -> None:
    assert read_one(f"a: {text}") == {"a": means}


def test_a_broken_document_hides_no_other_and_lines_count_from_the_text() -> None:
    text = "%YAML 1.1\n# head\n---\na: 1\n---\nb: [\n---\n# only a remark\n--- \nc:\n  d: 3\n"
    one, two, three = read_all(text)
    assert (one.data, one.line) == ({"a": 1}, 4)
    assert two.mistake is not None
    assert two.mistake.line in (6, 7)
    assert three.data == {"c": {"d": 3}}
    assert three.line_of(("c", "d")) == 11
    assert three.line_of(("c", "x", "y")) == 10


def test_a_shared_part_with_a_merge_may_be_written_twice() -> None:
    text = "x: &x {a: 1, b: 2}\ny: &y {<<: *x, b: 3}\nz: [*y, *y]\n"
    assert read_one(text)["z"] == [{"a": 1, "b": 3}] * 2


@settings(deadline=None)
@given(PLAIN)
def test_what_is_written_is_read_back(value: Any) -> None:
    for dumped in (dump(value), json.dumps(value)):
        found = read_all(dumped)
        assert [(d.mistake, d.data) for d in found] == ([] if value is None else [(None, value)])


@settings(deadline=None)
@given(st.text(alphabet="ab:-[]{}&*!|>'\"%#?,\n \t\\0=<~.", max_size=60) | st.text(max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    for document in read_all(text):
        json.dumps(document.data, allow_nan=False)
