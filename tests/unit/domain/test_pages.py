"""Metrics pages of real engines and routers, read into the catalogue's series."""

from __future__ import annotations

from pathlib import Path

import pytest

from backend.adapters.recipes import load_catalogue
from backend.domain.metrics_recipe import SeriesRecipe, SeriesSource
from backend.domain.pages import PageReader

SAMPLES = Path(__file__).parents[2] / "data" / "metrics"
SERIES = load_catalogue().series


def read(name: str) -> dict[str, float]:
    return PageReader(SERIES).read((SAMPLES / f"metrics-{name}.txt").read_text())


def test_a_decode_of_vllm_tells_where_its_prompts_came_from() -> None:
    found = read("vllm-0.32-nixl-decode")
    sources = [found[f"tokens_{s}"] for s in ("external", "computed", "cached")]
    assert sources == [1011, 0, 0]
    assert sum(sources) == found["prompt_tokens"]
    assert (found["kv_bytes.count"], found["kv_bytes.sum"]) == (5, 1179648)
    assert found["first_token.le:inf"] == found["requests_finished"] == 5
    assert (found["kv_failed"], found["kv_expired"], found["requests_failed"]) == (0, 0, 0)


def test_an_engine_without_a_connector_lacks_its_series_rather_than_showing_zero() -> None:
    found = read("vllm-0.32-plain")
    assert not any(k.startswith("kv_") for k in found)
    assert found["tokens_computed"] == 26


@pytest.mark.parametrize("version", ["0.1.15-igw", "0.1.15-nonigw", "0.1.17-igw"])
def test_a_router_tells_what_it_sent_to_whom(version: str) -> None:
    found = read(f"vllm-router-{version}")
    sent = {k: v for k, v in found.items() if k.startswith("routed[")}
    assert found["router_requests"] > 0
    assert len(sent) >= 2
    assert all(k.startswith("routed[http://127.0.0.1:18") for k in sent)


def test_an_sglang_router_counts_outcomes_by_worker() -> None:
    found = read("sglang-router-0.3.2")
    assert found["routed[http://127.0.0.1:18021]"] == 14  # 4 successes and 10 failures
    assert found["routed_failed[http://127.0.0.1:18021]"] == 10
    assert found["router_requests"] == 40


@pytest.mark.parametrize(
    "spelling", ["vllm:nixl_num_kv_expired_reqs", "vllm:nixl_num_kv_expired_reqs_total"]
)
def test_both_spellings_of_a_counter_are_read(spelling: str) -> None:
    page = f'# TYPE x counter\n{spelling}{{engine="0"}} 2.0\n{spelling}{{engine="1"}} 1.0\n'
    assert PageReader(SERIES).read(page) == {"kv_expired": 3.0}


def test_every_sample_of_a_page_reads_the_same_the_second_time() -> None:
    """The second reading takes the short way."""
    for path in sorted(SAMPLES.glob("*.txt")):
        reader = PageReader(SERIES)
        assert reader.read(path.read_text()) == reader.read(path.read_text()), path.name


def test_the_first_name_that_a_page_has_is_taken_and_others_are_added_only_where_said() -> None:
    two = (SeriesSource(name="new"), SeriesSource(name="old", scale=2))
    first = {"s": SeriesRecipe(kind="counter", sources=two)}
    added = {"s": SeriesRecipe(kind="counter", sources=two, together=True)}
    page = "old 5\nnew_total 3\n"
    assert PageReader(first).read(page) == {"s": 3}
    assert PageReader(added).read(page) == {"s": 13}
    assert PageReader(first).read("old 5\n") == {"s": 10}


def test_the_fullest_rank_stands_for_a_cache() -> None:
    page = 'sglang:token_usage{tp_rank="0"} 0.2\nsglang:token_usage{tp_rank="1"} 0.9\n'
    assert PageReader(SERIES).read(page) == {"cache_usage": 0.9}


def test_odd_label_values_and_timestamps_are_understood() -> None:
    line = 'vllm_router_pd_prefill_requests_total{worker="http://h:1/a b} \\"c\\""} 4'
    for page in (f"{line}\n", f"{line} 1700000000000\n"):
        reader = PageReader(SERIES)
        for _ in range(2):
            assert reader.read(page) == {'routed[http://h:1/a b} "c"]': 4}


@pytest.mark.parametrize(
    "page",
    [
        "",
        "<html><body>404</body></html>",
        'vllm:prompt_tokens_total{engine="0',
        "vllm:prompt_tokens_total x",
    ],
)
def test_what_is_no_metrics_page_is_said_to_be_none(page: str) -> None:
    with pytest.raises(ValueError, match=r"no metric|no sample|no number"):
        PageReader(SERIES).read(page)


def test_a_name_with_total_in_the_catalogue_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="without _total"):
        SeriesSource(name="vllm:prompt_tokens_total")


def test_real_engines_behind_the_real_router_count_what_we_look_for() -> None:
    """vLLM 0.32 with NIXL on a CPU, as `make test-real` runs it: four requests."""
    real = SAMPLES.parent / "real"
    found = {
        role: PageReader(SERIES).read((real / f"1p1d-{role}.metrics.txt").read_text())
        for role in ("prefill", "decode", "router")
    }
    decode, prefill = found["decode"], found["prefill"]
    assert decode["tokens_external"] == decode["prompt_tokens"] == 278
    assert decode["tokens_computed"] == 0
    assert decode["kv_bytes.count"] == decode["requests_finished"] == 4
    assert prefill["tokens_computed"] == prefill["prompt_tokens"] == 278
    routed = {k: v for k, v in found["router"].items() if k.startswith("routed[")}
    assert sorted(routed.values()) == [4, 4]
