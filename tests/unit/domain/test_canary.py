"""What a canary tries, what it shows, and whom it blames."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.adapters.recipes import load_catalogue
from backend.domain import canary
from backend.domain.canary import Reply
from backend.domain.errors import Refused
from backend.domain.group import Instance
from backend.domain.instance import Band
from backend.domain.telling import told
from backend.domain.watch_views import PairView

MODES = load_catalogue().modes
NONCE = "00112233445566ff"
PREFILL = Instance(
    id="p", group="g", role="prefill", host="h", revision="r", address="10.0.0.1",
    bands=(Band(name="http", base=40000), Band(name="bootstrap", base=40001)),
)  # fmt: skip


def recipe(mode: str) -> Any:
    found = MODES[mode].canary
    assert found is not None
    return found


def answer(text: str = "word", status: int = 200, **more: Any) -> Reply:
    body = {"choices": [{"text": text}], "usage": {"prompt_tokens": 100}, **more}
    return Reply(status, body, "", 0.1)


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 90), st.integers(0, 5))
def test_every_pair_once_and_every_member_first(p: int, d: int, most: int, turn: int) -> None:
    prefills, decodes = [f"p{n}" for n in range(p)], [f"d{n}" for n in range(d)]
    pairs, left_out = canary.planned(prefills, decodes, most, turn)
    assert len(pairs) == len(set(pairs)) == min(most, p * d)
    assert len(pairs) + left_out == p * d
    if most >= max(p, d) and turn == 0:
        assert {a for a, _ in pairs} == set(prefills)
        assert {b for _, b in pairs} == set(decodes)


def test_what_one_run_leaves_out_another_tries() -> None:
    tried = set()
    for turn in range(4):
        pairs, _ = canary.planned(["a", "b", "c", "d"], ["x", "y", "z", "w"], 4, turn)
        tried |= set(pairs)
    assert len(tried) == 16


def test_nixl_hands_on_what_prefill_answered() -> None:
    params = {"remote_engine_id": "e", "remote_block_ids": [1]}
    first, _ = canary.fields(recipe("vllm-nixl"), PREFILL, NONCE)
    assert first["kv_transfer_params"]["do_remote_decode"] is True
    assert first["kv_transfer_params"]["remote_engine_id"] is None
    _, second = canary.fields(
        recipe("vllm-nixl"), PREFILL, NONCE, answered={"kv_transfer_params": params}
    )
    assert second == {"kv_transfer_params": params}


def test_a_prefill_that_hands_nothing_on_is_refused_not_guessed() -> None:
    with pytest.raises(Refused, match="kv_transfer_params"):
        canary.fields(recipe("vllm-nixl"), PREFILL, NONCE, answered={})


def test_mooncake_names_the_transfer_on_both_sides() -> None:
    one, two = canary.fields(recipe("vllm-mooncake"), PREFILL, NONCE, engine_id="eng", answered={})
    first, second = one["kv_transfer_params"], two["kv_transfer_params"]
    assert first["transfer_id"] == second["transfer_id"] == f"canary-{NONCE}"
    assert second["remote_bootstrap_addr"] == "http://10.0.0.1:40001"
    assert second["remote_engine_id"] == "eng"


def test_sglang_sends_both_the_same_room() -> None:
    one, two = canary.fields(recipe("sglang-nixl"), PREFILL, NONCE)
    assert one == two
    assert (one["bootstrap_host"], one["bootstrap_port"]) == ("10.0.0.1", 40001)
    assert 0 <= one["bootstrap_room"] < 1 << 62


@pytest.mark.parametrize(
    ("grown", "shown"),
    [
        ({"tokens_external": 100, "tokens_computed": 0, "requests_finished": 1}, True),
        ({"tokens_external": 0, "tokens_computed": 100, "requests_finished": 1}, False),
        ({"tokens_external": 10, "tokens_computed": 0, "requests_finished": 1}, False),
        # somebody else's KV moved, ours may not have
        ({"tokens_external": 100, "tokens_computed": 100, "requests_finished": 2}, None),
        ({"tokens_external": 900, "tokens_computed": 2, "requests_finished": 9}, True),
        ({"kv_bytes.count": 1}, True),
        ({"kv_bytes.count": 0}, False),
        ({"prompt_tokens": 100}, None),
    ],
)
def test_whether_kv_moved(grown: dict[str, float], shown: bool | None) -> None:
    before = dict.fromkeys(grown, 7.0)
    after = {k: 7.0 + v for k, v in grown.items()}
    assert canary.moved(before, after, 100, "kv_bytes") is shown


@pytest.mark.parametrize(
    ("first", "second", "shown", "verdict", "words"),
    [
        (answer("a"), answer("a b"), True, "ok", "KV moved"),
        (answer("a"), answer("a b"), None, "ok", "nothing shows"),
        (answer("a"), answer("a b"), False, "not_moved", "computed the prompt itself"),
        (answer("a"), answer("z b"), True, "content", "begins with 'a', decode with 'z b'"),
        (answer("\N{REPLACEMENT CHARACTER}"), answer("é b"), True, "ok", "KV moved"),
        (answer("a"), answer(""), True, "content", "the answers differ"),
        (Reply(500, {"error": {"message": "boom"}}), Reply(), None, "failed", "HTTP 500: boom"),
        (Reply(problem="refused"), Reply(), None, "failed", "prefill: refused"),
        (answer(), Reply(500, {}), None, "failed", "decode: HTTP 500"),
        (answer(), Reply(200, {"choices": []}), None, "failed", "decode: HTTP 200"),
        (Reply(401, {}), Reply(), None, "unknown", "API key"),
    ],
)
def test_verdicts(
    first: Reply, second: Reply, shown: bool | None, verdict: str, words: str
) -> None:
    view = canary.judge(first, second, shown, ids=("p", "d"))
    assert (view.verdict, view.prefill, view.decode) == (verdict, "p", "d")
    assert words in view.text


def pair(prefill: str, decode: str, verdict: str = "ok", seconds: float = 0.1) -> PairView:
    return PairView(
        prefill=prefill, decode=decode, verdict=verdict,  # type: ignore[arg-type]
        reason="decode" if verdict == "failed" else verdict, text=verdict, seconds=seconds,
    )  # fmt: skip


def test_the_side_whose_pairs_all_fail_is_to_blame() -> None:
    grid = [
        pair("p1", "d1", "failed"), pair("p1", "d2", "failed"), pair("p2", "d1"), pair("p2", "d2"),
    ]  # fmt: skip
    assert {p.culprit for p in canary.settle(grid) if p.verdict == "failed"} == {"p1"}
    wrong = canary.summary(canary.settle(grid), None)
    assert wrong is not None
    assert told(wrong, "en").startswith("p1: ")
    assert told(wrong, "zh").startswith("p1：")
    grid = [pair("p1", "d1", "failed"), pair("p1", "d2"), pair("p2", "d1"), pair("p2", "d2")]
    assert canary.settle(grid)[0].culprit == "p1 -> d1"
    assert canary.settle([pair("p1", "d1", "failed")])[0].culprit == "p1 -> d1"


def test_a_pair_that_takes_far_longer_than_the_others_is_slow() -> None:
    grid = [pair("p1", "d1"), pair("p1", "d2"), pair("p2", "d1"), pair("p2", "d2", seconds=4.0)]
    assert [p.verdict for p in canary.settle(grid)] == ["ok", "ok", "ok", "slow"]
    assert canary.summary(canary.settle(grid), None) is None


def test_the_router_alone_can_be_at_fault() -> None:
    wrong = canary.through_router(Reply(503, {"error": {"message": "No available workers"}}), None)
    assert canary.summary([pair("p", "d")], wrong) == wrong.said
    assert wrong.text == "router: HTTP 503: No available workers"


def test_an_engine_id_is_found_where_the_recipe_says() -> None:
    body = {"0": {"engine_id": "eng", "worker_addr": {}}}
    assert canary.engine_id(body, ["*", "engine_id"]) == "eng"
    assert canary.engine_id({}, ["*", "engine_id"]) == ""
    assert canary.engine_id({"0": 3}, ["*", "engine_id"]) == ""
