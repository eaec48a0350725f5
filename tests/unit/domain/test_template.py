"""Placeholders: typed, one pass, and none left over unnoticed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.domain.errors import Refused
from backend.domain.template import Renderer, names

SCOPE = {"port": 40000, "name": "q", "urls": ["http://a", "http://b"], "none": None, "extra": {}}


def test_a_lone_placeholder_keeps_its_type() -> None:
    r = Renderer(SCOPE)
    assert r.data({"a": "{{port}}", "b": "p{{port}}", "c": ["{{extra}}"]}, "x") == {
        "a": 40000, "b": "p40000", "c": [{}],
    }  # fmt: skip


def test_json_arguments_are_rendered_typed() -> None:
    r = Renderer(SCOPE)
    assert r.tokens('{"kv_port": "{{port}}"}', "x") == ['{"kv_port":40000}']
    assert r.tokens('--c={"kv_port":"{{port}}"}', "x") == ['--c={"kv_port":40000}']
    assert r.tokens('{"kv_port": {{port}}}', "x") == ['{"kv_port": 40000}']
    assert r.tokens('{"a":  1}', "x") == ['{"a":  1}']


def test_a_lone_list_gives_one_argument_each() -> None:
    r = Renderer(SCOPE)
    assert r.tokens("{{urls}}", "x") == ["http://a", "http://b"]
    assert r.tokens("--p={{urls}}", "x") == ["--p=http://a,http://b"]


def test_optional_keys() -> None:
    r = Renderer(SCOPE)
    assert r.data({"a?": "{{none}}", "b?": "{{name}}", "c?": "{{nowhere}}"}, "x") == {"b": "q"}
    r.finish("i1")


def test_every_leftover_is_named() -> None:
    r = Renderer(SCOPE, {"none": "Set it."})
    r.text("{{none}} {{nowhere}}", "env A")
    with pytest.raises(Refused) as caught:
        r.finish("i1")
    first, second = caught.value.problems
    assert first.rule == second.rule == "render.placeholder"
    assert "{{none}} in env A of i1 has no value" in first.message
    assert first.remedy == "Set it."
    assert "{{nowhere}} in env A of i1 is not a known placeholder" in second.message


def test_spaced_braces_are_passed_on() -> None:
    assert Renderer(SCOPE).tokens("{{ messages }}", "x") == ["{{ messages }}"]


@given(st.text())
def test_a_value_is_never_rendered_again(text: str) -> None:
    r = Renderer({"a": text, "b": "{{a}}"})
    assert r.text("{{a}}", "x") == text
    assert r.text("<{{b}}>", "x") == "<{{a}}>"
    r.finish("i1")


def test_names_finds_placeholders_in_any_shape() -> None:
    assert list(names({"{{k}}": ["{{a.b}}", {"x": "{{c-d}} {{ no }}"}]})) == ["k", "a.b", "c-d"]
