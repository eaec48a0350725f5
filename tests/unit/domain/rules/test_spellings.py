"""How a flag is spelled never changes a verdict."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backend.domain.errors import Problem
from tests.unit.domain.rules.conftest import Court

FACTORS: dict[str, tuple[list[str], list[str]]] = {
    "max_model_len": (["--max-model-len", "--max_model_len"], ["8192", "4096", "8k", "auto", "x"]),
    "tensor": (["--tensor-parallel-size", "--tensor_parallel_size", "-tp"], ["1", "2", "4"]),
    "data": (["--data-parallel-size", "-dp"], ["1", "2"]),
    "dtype": (["--dtype"], ["auto", "half", "float16", "bfloat16"]),
    "kv_cache_dtype": (["--kv-cache-dtype", "--kv_cache_dtype"], ["auto", "fp8", "fp8_e5m2"]),
    "block_size": (["--block-size", "--block_size"], ["16", "32"]),
    "layout": (["--kv-cache-layout", "--kv_cache_layout"], ["HND", "NHD"]),
    "backend": (["--attention-backend", "--attention_backend"], ["FLASHINFER", "FLASH_ATTN"]),
    "model": (["--model"], ["/a", "/b"]),
    "revision": (["--revision"], ["a", "b"]),
    "speculative": (
        ["--speculative-config", "--speculative_config"],
        [json.dumps({"method": "eagle3", "model": "/e"}), '{"method": "ngram"}'],
    ),
    "connector": (
        ["--kv-transfer-config", "--kv_transfer_config"],
        [json.dumps({"kv_connector": "NixlConnector", "kv_role": "kv_both"}),
         json.dumps({"kv_connector": "NixlConnector", "kv_connector_extra_config":
                     {"enable_cross_layers_blocks": True}})],
    ),
    "fraction": (["--gpu-memory-utilization", "--device-memory-utilization"], ["0.9", "0.4"]),
}  # fmt: skip
Wish = tuple[str, str]

wishes = st.lists(
    st.sampled_from(sorted(FACTORS)).flatmap(
        lambda f: st.tuples(st.just(f), st.sampled_from(FACTORS[f][1]))
    ),
    max_size=5,
)


@st.composite
def written(draw: st.DrawFn, wanted: Sequence[Wish]) -> list[str]:
    """`wanted` in some spelling: names, `=`, tokens apart, in one text, or all in one pasted line.

    An earlier occurrence of another value may stand before: the last one wins.
    """
    items: list[list[str]] = []
    for factor, value in wanted:
        names, values = FACTORS[factor]
        if draw(st.booleans()):
            items.append([draw(st.sampled_from(names)), draw(st.sampled_from(values))])
        items.append([draw(st.sampled_from(names)), value])
    if draw(st.booleans()):
        return [" ".join(part for item in items for part in item)] if items else []
    out: list[str] = []
    for name, value in items:
        style = draw(st.sampled_from(["apart", "equals", "together"]))
        out += {"apart": [name, value], "equals": [f"{name}={value}"],
                "together": [f"{name} {value}"]}[style]  # fmt: skip
    return out


def plainly(wanted: Sequence[Wish]) -> list[str]:
    return [t for factor, value in wanted for t in (FACTORS[factor][0][0], value)]


def said(found: Sequence[Problem]) -> list[tuple[object, ...]]:
    """A finding without the place it names: that is where the spelling stands."""
    return sorted((p.rule, p.case, p.verdict, p.message, p.path.partition("[")[0]) for p in found)


@pytest.mark.parametrize("mode", ["vllm-nixl", "vllm-mooncake", "vllm-ascend-mooncake", "custom"])
@settings(max_examples=25, deadline=None,
          suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
@given(data=st.data())
def test_respelling_changes_no_verdict(court: Court, mode: str, data: st.DataObject) -> None:
    """Plain tokens first, then any other way to write the same."""
    p, d = data.draw(wishes, "prefill"), data.draw(wishes, "decode")
    plain = court.pair({"parameters": plainly(p)}, {"parameters": plainly(d)}, mode=mode)
    respelled = court.pair(
        {"parameters": data.draw(written(p))}, {"parameters": data.draw(written(d))}, mode=mode
    )
    assert said(respelled) == said(plain)


@settings(max_examples=25, deadline=None,
          suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
@given(data=st.data())
def test_inheriting_is_as_writing_it_on_both_sides(court: Court, data: st.DataObject) -> None:
    wanted = data.draw(wishes)
    shared = court.pair(parameters=plainly(wanted))
    both = court.pair({"parameters": plainly(wanted)}, {"parameters": data.draw(written(wanted))})
    assert {(p.rule, p.case, p.verdict) for p in shared} == {
        (p.rule, p.case, p.verdict) for p in both
    }
