"""The form's model: what is set, inherited, generated; what a key does; what is saved."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.domain.documents import parse_deployment
from backend.domain.secrets import HIDDEN, masked
from pdtui.state import words
from pdtui.state.document import get, put, without
from pdtui.state.findings import placed, tab_of
from pdtui.state.form import Form, Item, blank
from tests.tui.catalogue import judged, modes
from tests.tui.factories import DOCUMENTS

QWEN = DOCUMENTS["qwen3-32b"]


def form(**spec: Any) -> Form:
    """A form on the stored 2P1D deployment, with more in its spec."""
    document = {**QWEN, "spec": {**QWEN["spec"], **spec}}
    return Form(document, document, modes())


def item(f: Form, tab: Any, key: str) -> Item:
    """The row of that key."""
    return next(i for i in f.items(tab) if i.key == key)


def entries(f: Form, tab: Any, path: str) -> list[tuple[str, str]]:
    """Text and marker of a list's rows."""
    return [(i.text, i.marker) for i in f.items(tab) if i.part == "entry" and i.field.path == path]


DECODE = "spec.roles.decode.parameters"
ROUTER = "spec.roles.router.parameters"


def test_an_empty_form_is_a_document_once_it_is_filled_in() -> None:
    f = Form(blank(), None, modes())
    assert not f.changed
    f = f.edit(item(f, "deployment", "metadata.name"), "qwen")
    f = f.edit(item(f, "deployment", "spec.model"), "/data/models/Qwen")
    f = f.choose_mode("vllm-nixl")
    f = f.edit(item(f, "prefill", "spec.roles.prefill.replicas"), "2")
    assert f.changed
    parsed = parse_deployment(f.output())
    assert parsed.spec.roles is not None
    assert (parsed.spec.roles.prefill.replicas, parsed.spec.roles.decode.replicas) == (2, 1)
    assert judged(f.output()) == []


def test_a_role_inherits_until_it_overrides_and_returns() -> None:
    f = form()
    assert entries(f, "decode", DECODE) == [("--max-model-len 32768", "inherit")]
    head = item(f, "decode", DECODE)
    assert head.marker == "inherit"
    own = f.override(head.field)
    assert get(own.document, DECODE) == ["--max-model-len", "32768"]
    assert item(own, "decode", DECODE).marker == "override"
    assert own.inherit(head.field).output() == f.output()


def test_changing_one_inherited_entry_makes_the_whole_list_the_roles_own() -> None:
    f = form(parameters=["--max-model-len", "32768", "--seed=1"])
    entry = item(f, "decode", f"{DECODE}[0]")
    f = f.edit(entry, "--max-model-len 4096")
    assert get(f.document, DECODE) == ["--max-model-len", "4096", "--seed=1"]
    assert get(f.document, "spec.parameters")[1] == "32768"


def test_an_emptied_override_stays_an_empty_list() -> None:
    f = form()
    f = f.edit(item(f, "decode", f"{DECODE}[0]"), "")
    assert get(f.document, DECODE) == []
    assert parse_deployment(f.output()).spec.roles.decode.parameters == []  # type: ignore[union-attr]


def test_variables_are_added_changed_and_taken_out_in_their_order() -> None:
    f = form(env={"A": "1", "B": "x=y"})
    f = f.edit(item(f, "deployment", "spec.env[0]"), "C=3")
    f = f.edit(item(f, "deployment", "spec.env+"), "D=")
    assert get(f.document, "spec.env") == {"C": "3", "B": "x=y", "D": ""}
    f = f.remove(item(f, "deployment", "spec.env[1]"))
    assert list(get(f.document, "spec.env")) == ["C", "D"]


def test_a_router_rows_life_generated_changed_generated_again() -> None:
    f = form()
    generated = entries(f, "router", ROUTER)
    assert ("--policy cache_aware", "generated") in generated
    assert ("--port {{port}}", "platform") in generated
    row = item(f, "router", f"{ROUTER}~--policy")
    assert f.edit(row, row.text) is f, "a row left as it is sets nothing"
    f = f.edit(row, "--policy round_robin")
    assert ("--policy round_robin", "changed") in entries(f, "router", ROUTER)
    assert get(f.output(), ROUTER) == ["--policy", "round_robin"]
    f = f.edit(item(f, "router", f"{ROUTER}+"), "--queue-size 10")
    assert ("--queue-size 10", "own") in entries(f, "router", ROUTER)
    changed = next(i for i in f.items("router") if i.marker == "changed")
    f = f.remove(changed)
    assert ("--policy cache_aware", "generated") in entries(f, "router", ROUTER)
    assert get(f.output(), ROUTER) == ["--queue-size", "10"]


def test_router_rows_that_repeat_the_mode_are_stripped_at_save() -> None:
    f = form(roles={"router": {"parameters": ["--policy=cache_aware", "--queue-size", "9"]}})
    assert get(f.output(), ROUTER) == ["--queue-size", "9"]
    only = form(roles={"router": {"parameters": ["--policy", "cache_aware"]}})
    assert get(only.output(), ROUTER) is None


def test_a_change_of_mode_brings_its_rows_and_keeps_ones_own() -> None:
    f = form()
    f = f.edit(item(f, "router", f"{ROUTER}+"), "--queue-size 10")
    f = f.choose_mode("vllm-mooncake")
    rows = entries(f, "router", ROUTER)
    assert ("--prefill-policy cache_aware", "generated") in rows
    assert ("--queue-size 10", "own") in rows
    assert not any(text.startswith("--policy") for text, _ in rows)


def test_modes_of_other_engines_cannot_be_chosen() -> None:
    f = form()
    locked = {i.name: i.locked for i in f.items("disaggregation") if i.part == "mode"}
    assert locked["sglang-nixl"]
    assert not locked["vllm-mooncake"]
    assert not locked["custom"]
    assert not locked[""]


def test_membership_is_the_modes_until_the_router_has_its_own_command() -> None:
    f = form()
    assert f.membership == "dynamic"
    assert f.choose_mode("vllm-mooncake").membership == "restart"
    f = f.edit(item(f, "router", "spec.roles.router.run_command"), "my-router --port 1")
    assert f.membership == "manual"
    assert f.choose_mode(None).membership == "none"


def test_without_disaggregation_roles_are_kept_but_not_saved() -> None:
    f = form().choose_mode(None)
    assert "roles" not in f.output()["spec"]
    assert f.tabs == ("deployment", "disaggregation", "yaml")
    back = f.choose_mode("vllm-nixl")
    assert get(back.output(), "spec.roles.prefill.replicas") == 2
    f = f.edit(item(f, "deployment", "spec.replicas"), "3")
    assert f.output()["spec"]["replicas"] == 3
    assert "replicas" not in f.choose_mode("vllm-nixl").output()["spec"]


def test_what_makes_no_sense_is_kept_and_refused_at_its_field() -> None:
    from backend.domain.errors import Invalid

    f = form()
    f = f.edit(item(f, "prefill", "spec.roles.prefill.replicas"), "two")
    with pytest.raises(Invalid) as caught:
        judged(f.output())
    found = placed(f.items("prefill"), caught.value.problems)
    assert list(found) == ["spec.roles.prefill.replicas"]
    assert item(f, "prefill", "spec.roles.prefill.replicas").text == "two"


def test_a_finding_stands_at_the_entry_it_is_about() -> None:
    f = form(roles={"decode": {"parameters": ["--seed", "1", "--max-model-len", "4096"]}})
    problems = judged(f.output())
    found = placed(f.items("decode"), problems)
    assert [p.rule for p in found[f"{DECODE}[2]"]] == ["pairing.max_model_len"]
    assert tab_of(problems[0].path) == "decode"
    assert placed(f.items("deployment"), problems) == {}


def test_secrets_are_hidden_and_counts_of_tokens_are_not() -> None:
    shown = masked(
        {
            "env": {"HF_TOKEN": "hf_x", "PATH": "/bin"},
            "parameters": ["--api-key", "k", "--max-num-batched-tokens", "8192", "--token=t"],
            "tokenizer": "auto",
        }
    )
    assert shown["env"] == {"HF_TOKEN": HIDDEN, "PATH": "/bin"}
    assert shown["parameters"] == [
        "--api-key", HIDDEN, "--max-num-batched-tokens", "8192", f"--token={HIDDEN}",
    ]  # fmt: skip
    assert shown["tokenizer"] == "auto"


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("hosts", "gpu-1 gpu-2 rack=a", {"names": ["gpu-1", "gpu-2"], "labels": {"rack": "a"}}),
        (
            "placement",
            "gpu-1:0,1 gpu-2",
            [{"host": "gpu-1", "accelerators": [0, 1]}, {"host": "gpu-2"}],
        ),
        ("cache", "service lmc", {"kind": "service", "service": "lmc"}),
        ("labels", "team=a stage=b", {"team": "a", "stage": "b"}),
        ("command", "run 'a b' {{port}}", ["run", "a b", "{{port}}"]),
        ("number", "12", 12),
        ("json", '{"kv_buffer_device": "cpu"}', {"kv_buffer_device": "cpu"}),
    ],
)
def test_each_kind_is_written_as_it_is_read(kind: Any, text: str, value: Any) -> None:
    assert words.read(kind, text) == value
    assert words.written(kind, value) == text


def test_a_caches_other_settings_survive_another_service() -> None:
    before = {"kind": "service", "service": "a", "chunk_size": 256}
    assert words.read("cache", "service b", before) == {**before, "service": "b"}
    assert words.read("cache", "none", before) == {"kind": "none"}


ODD = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=12)


@given(st.lists(ODD, max_size=5), ODD)
def test_no_text_is_lost_or_refused_by_a_list(tokens: list[str], text: str) -> None:
    rows = words.rows("list", tokens)
    assert sum(stop - start for (start, stop), _, _ in rows) == len(tokens)
    for at, _, _ in rows:
        out = words.spliced("list", tokens, at, text)
        assert out[: at[0]] == tokens[: at[0]]


@given(
    st.lists(st.text("ab-_= '\"\\{}:,1", min_size=1, max_size=8).map(lambda v: v.strip() or "v"))
)
def test_an_argument_written_back_unchanged_stays_the_same(values: list[str]) -> None:
    tokens = [t for i, v in enumerate(values) if v[:1] not in "-{[" for t in (f"--f{i}", v)]
    for at, _, text in words.rows("list", tokens):
        assert words.spliced("list", tokens, at, text) == tokens


def test_paths_are_put_and_taken_without_touching_the_old() -> None:
    data: dict[str, Any] = {"spec": {"a": {"b": 1}}}
    assert put(data, "spec.a.c", 2) == {"spec": {"a": {"b": 1, "c": 2}}}
    assert without(data, "spec.a.b") == {"spec": {}}
    assert data == {"spec": {"a": {"b": 1}}}
    assert get(data, "spec.a.b.c") is None
