"""Arguments are read the same in every spelling."""

from __future__ import annotations

import json
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.domain import engine_args as ea

FLAGS = {
    "tensor_parallel": ["--tensor-parallel-size", "-tp"],
    "data_parallel": ["--data-parallel-size", "-dp"],
    "pipeline_parallel": ["--pipeline-parallel-size", "-pp"],
}
CONNECTOR = {"kv_connector": "NixlConnector", "kv_role": "kv_producer"}


@pytest.mark.parametrize(
    ("written", "tokens"),
    [
        (["--a", "1"], ["--a", "1"]),
        (["--a 1"], ["--a", "1"]),
        (["--a=1"], ["--a=1"]),
        (["--a 1 --b=2 -c 'x y'"], ["--a", "1", "--b=2", "-c", "x y"]),
        (["--a 1 \\\n  --b 2"], ["--a", "1", "--b", "2"]),
        (['--j {"k": [1, 2]} --b 2'], ["--j", '{"k": [1, 2]}', "--b", "2"]),
        (['--j={"k": "a b"} --b 2'], ['--j={"k": "a b"}', "--b", "2"]),
        (["--j", '{"k": "a b"}'], ["--j", '{"k": "a b"}']),
        (['--j \'{"k": "a b"}\''], ["--j", '{"k": "a b"}']),
        (["--t=a b c"], ["--t=a b c"]),
        (["--t", "a b --c"], ["--t", "a b --c"]),
        (["--t it's broken"], ["--t", "it's broken"]),
        (["--names a b"], ["--names", "a", "b"]),
        (["-tp 2"], ["-tp", "2"]),
        (["--x", "-1"], ["--x", "-1"]),
        ([""], [""]),
    ],
)
def test_flatten(written: list[str], tokens: list[str]) -> None:
    assert list(ea.flatten(written)) == tokens


@given(st.lists(st.text()))
def test_flatten_keeps_every_value_that_starts_without_a_dash(values: list[str]) -> None:
    items = [v for v in values if not v.strip().startswith("-")]
    assert list(ea.flatten(items)) == items


@given(st.text(alphabet="ab '\"\\\\\\n\\t=-$#{}["))
def test_a_pasted_line_is_split_as_a_shell_does(text: str) -> None:
    """The standard splitter is the oracle; JSON is where they are meant to differ."""
    try:
        expected: list[str] | None = shlex.split(text, comments=False)
    except ValueError:
        expected = None
    try:
        found: list[str] | None = ea._shell_words(text)
    except ValueError:
        found = None
    if found != expected:
        assert found is not None
        assert any(word.endswith(("}", "]")) for word in found)


@pytest.mark.parametrize(
    "text", ["-x " + "[" * 100_000, "-x '" + "a b " * 30_000, "-x " + "a " * 60_000]
)
def test_huge_items_are_read(text: str) -> None:
    assert "".join(ea.flatten([text])).replace(" ", "") == text.replace(" ", "")


@given(st.lists(st.from_regex(r"--[a-z]{1,8}(=[a-z0-9]{1,5})?|[a-z0-9]{1,5}", fullmatch=True)))
def test_flatten_twice_is_flatten_once(items: list[str]) -> None:
    once = ea.flatten(items)
    assert ea.flatten(once) == once


@pytest.mark.parametrize(
    "args",
    [
        ["--max-model-len", "32K"],
        ["--max-model-len=32K"],
        ["--max_model_len 32K"],
        ["--max_model_len=32K"],
        ["-max-model-len", "32K"],
        ["--max-model-len", "8K", "--max_model_len=32K"],
        ["--max-model-len=32K", "--max-model-len"],
    ],
)
def test_value_in_any_spelling_and_the_last_wins(args: list[str]) -> None:
    assert ea.value(ea.flatten(args), "--max-model-len") == "32K"


def test_a_flag_without_value_is_present_and_has_none() -> None:
    args = ("--enforce-eager", "--dtype", "half")
    assert ea.present(args, "--enforce-eager")
    assert ea.value(args, "--enforce-eager") is None
    assert ea.without(args, "--enforce_eager") == ("--dtype", "half")


def test_a_negative_number_is_a_value() -> None:
    assert ea.value(("--max-model-len", "-1"), "--max-model-len") == "-1"


@pytest.mark.parametrize(
    "args",
    [
        ["--kv-transfer-config", json.dumps(CONNECTOR)],
        ["--kv_transfer_config=" + json.dumps(CONNECTOR)],
        ["--kv-transfer-config " + json.dumps(CONNECTOR)],
        [
            "--kv-transfer-config.kv_connector NixlConnector",
            "--kv_transfer_config.kv_role=kv_producer",
        ],
    ],
)
def test_json_value_whole_or_key_by_key(args: list[str]) -> None:
    assert ea.json_value(ea.flatten(args), "--kv-transfer-config") == CONNECTOR


def test_json_value_nested_keys_and_types() -> None:
    args = ("--c.extra.port", "7", "--c.extra.host", "h", "--c.on=true")
    assert ea.json_value(args, "--c") == {"extra": {"port": 7, "host": "h"}, "on": True}
    assert ea.json_value(("--d", "1"), "--c") is None


@pytest.mark.parametrize("text", ["[1]", "nothing", "3"])
def test_json_value_refuses_what_is_no_object(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        ea.json_value(("--c", text), "--c")


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("32768", 32768), ("1k", 1000), ("1K", 1024), ("25.6k", 25600), ("128k", 128000),
        ("32K", 32768), ("1m", 10**6), ("2M", 2 * 2**20), ("1g", 10**9), ("1G", 2**30),
        ("auto", None), ("AUTO", None), ("-1", None), (" 8 ", 8),
    ],
)  # fmt: skip
def test_lengths(text: str, tokens: int | None) -> None:
    assert ea.parse_length(text) == tokens


@pytest.mark.parametrize("text", ["", "1e5", "25.6K", "25.6", "k", "-2", "0", "32KB", "many"])
def test_unreadable_lengths(text: str) -> None:
    with pytest.raises(ValueError, match=r"length|fraction"):
        ea.parse_length(text)


@pytest.mark.parametrize(
    ("args", "accelerators", "expected"),
    [
        ([], 4, (4, 1, 1)),
        ([], 0, (1, 1, 1)),
        (["-tp", "2"], 4, (2, 1, 1)),
        (["--data-parallel-size=4"], 4, (1, 4, 1)),
        (["--tensor_parallel_size 2", "-dp 2"], 4, (2, 2, 1)),
        (["-pp", "2"], 4, (1, 1, 2)),
        (["-tp", "many"], 4, (4, 1, 1)),
    ],
)
def test_parallel(args: list[str], accelerators: int, expected: tuple[int, int, int]) -> None:
    found = ea.parallel(ea.flatten(args), FLAGS).resolve(accelerators)
    assert (found.tensor, found.data, found.pipeline) == expected
