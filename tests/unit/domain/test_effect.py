"""The verdicts on disaggregation: what each situation is called, and that none is invented."""

from __future__ import annotations

from typing import Any

import pytest

from backend.adapters.recipes import load_catalogue
from backend.domain.effect import Side, effects, of_group
from backend.domain.watch_views import EffectView
from backend.observe.ring import Ring

MODES = load_catalogue().modes
P, D, R = "http://10.0.0.1:40000", "http://10.0.0.2:40000", "http://10.0.0.3:40000"
EVERY = 5.0


def history(*pages: dict[str, float], start: float = 0.0, epoch: float = 1.0) -> Ring:
    made = Ring(200)
    for n, page in enumerate(pages):
        made.add(start + n * EVERY, epoch, page)
    return made


def growing(count: int = 12, **per_page: float) -> Ring:
    pages = [{k: n * v for k, v in per_page.items()} for n in range(count)]
    return history(*[{"requests_running": 0.0, "requests_waiting": 0.0, **p} for p in pages])


def sent(count: int = 12, **per_page: float) -> Ring:
    urls = {"prefill": P, "decode": D}
    pages = [{f"routed[{urls[k]}]": n * v for k, v in per_page.items()} for n in range(count)]
    return history(*[{k: v for k, v in p.items() if v} for p in pages])


def judge(
    mode: str = "vllm-nixl",
    prefill: Ring | None = None,
    decode: Ring | None = None,
    router: Ring | None = None,
    now: float = 57.0,
    **problems: str,
) -> dict[str, EffectView]:
    sides = [
        Side("p", "prefill", P, prefill or growing(prompt_tokens=0), problems.get("p", "")),
        Side("d", "decode", D, decode or growing(prompt_tokens=0), problems.get("d", "")),
    ]
    through = Side("r", "router", R, router or sent())
    return effects(MODES[mode].metrics, sides, through, now, EVERY)


def said(view: EffectView) -> tuple[str, str]:
    return view.verdict, view.reason


WORKING: dict[str, Any] = {
    "prefill": growing(prompt_tokens=100, requests_finished=1, tokens_computed=100),
    "decode": growing(
        prompt_tokens=100, tokens_external=97, tokens_computed=3, requests_finished=1,
        **{"kv_bytes.count": 1},
    ),
    "router": sent(prefill=1, decode=1),
}  # fmt: skip


def test_a_working_group_is_good() -> None:
    found = judge(**WORKING)
    assert said(found["p"]) == ("good", "computes")
    assert said(found["d"]) == ("good", "moves")
    assert found["d"].text == "97 % of the prompt tokens came from prefill"
    group = of_group(found, {"p": "prefill", "d": "decode"})
    assert group is not None
    assert said(group) == ("good", "moves")
    assert group.numbers["share"] == 0.97


def test_without_traffic_there_is_no_verdict() -> None:
    found = judge()
    assert {said(v) for v in found.values()} == {("no_traffic", "no_traffic")}


def test_a_decode_that_computes_its_prompts_itself() -> None:
    decode = growing(prompt_tokens=100, tokens_external=0, tokens_computed=100)
    found = judge(**{**WORKING, "decode": decode})
    assert said(found["d"]) == ("none", "recomputes")
    group = of_group(found, {"p": "prefill", "d": "decode"})
    assert group is not None
    assert group.text.startswith("d: only 0 % of the prompt tokens came from prefill")


def test_half_is_partial_and_prompts_in_its_own_cache_do_not_count() -> None:
    half = growing(prompt_tokens=200, tokens_external=50, tokens_computed=50, tokens_cached=100)
    assert said(judge(**{**WORKING, "decode": half})["d"]) == ("partial", "recomputes")
    cached = growing(prompt_tokens=100, tokens_external=0, tokens_computed=0, tokens_cached=100)
    assert said(judge(**{**WORKING, "decode": cached})["d"]) == ("no_traffic", "all_cached")


def test_a_prefill_that_answers_errors_behind_a_router_that_answers_200() -> None:
    found = judge(**{**WORKING, "prefill": growing(prompt_tokens=0)})
    assert said(found["p"]) == ("failing", "answers_nothing")
    assert found["p"].text == "the router sent it 1 requests and it computed none of them"
    assert said(found["d"]) == ("good", "moves")


def test_the_fault_stays_named_when_the_traffic_ends() -> None:
    stopped = [{f"routed[{P}]": float(min(n, 5))} for n in range(12)]
    found = judge(prefill=growing(prompt_tokens=0), router=history(*stopped))
    assert said(found["p"]) == ("failing", "answers_nothing")


def test_a_prefill_that_still_works_on_a_long_prompt_is_not_blamed() -> None:
    busy = history(*[{"prompt_tokens": 0.0, "requests_running": 1.0} for _ in range(12)])
    assert judge(prefill=busy, router=sent(prefill=1))["p"].verdict != "failing"


@pytest.mark.parametrize("lag", range(12))
def test_scrapes_that_are_out_of_step_blame_nobody(lag: int) -> None:
    """One request long ago, seen by the router's page at any moment around the member's."""
    pages = [{"prompt_tokens": 0.0 if n < 6 else 100.0, "requests_running": 0.0} for n in range(12)]
    routed = history(
        *[{f"routed[{P}]": 1.0} if n >= 6 else {} for n in range(12)], start=lag / 2 - 3
    )
    found = judge(prefill=history(*pages), router=routed)
    assert found["p"].verdict in ("good", "no_traffic"), found["p"]


def test_failed_transfers_and_lost_leases_are_named() -> None:
    failing = growing(prompt_tokens=100, tokens_external=50, tokens_computed=50, kv_failed=1)
    assert said(judge(**{**WORKING, "decode": failing})["d"]) == ("failing", "transfers_failed")
    losing = growing(prompt_tokens=100, requests_finished=1, kv_expired=1)
    view = judge(**{**WORKING, "prefill": losing})["p"]
    assert said(view) == ("failing", "lease_expired")
    assert "computed and thrown away unread" in view.text


def test_what_a_connector_does_not_export_is_not_measurable() -> None:
    """Ascend's connector counts nothing, and old engines do not tell tokens apart."""
    plain = growing(prompt_tokens=100, requests_finished=1)
    found = judge("vllm-ascend-mooncake", plain, plain, sent(prefill=1, decode=1))
    assert said(found["d"]) == ("not_measurable", "exports_nothing")


def test_mooncake_counts_on_prefill() -> None:
    plain = growing(prompt_tokens=100, requests_finished=1)
    moving = growing(prompt_tokens=100, requests_finished=1, **{"kv_bytes.count": 1})
    found = judge("vllm-mooncake", moving, plain, sent(prefill=1, decode=1))
    assert said(found["p"]) == ("good", "transfers")
    assert said(found["d"]) == ("not_measurable", "counted_elsewhere")
    still = growing(prompt_tokens=100, requests_finished=1, **{"kv_bytes.count": 0})
    assert said(judge("vllm-mooncake", still, plain)["p"]) == ("none", "few_transfers")


def test_sglang_takes_no_share_of_what_counts_probes_too() -> None:
    plain = growing(prompt_tokens=100, **{"kv_bootstrap.count": 3, "whole_request.count": 1})
    found = judge("sglang-nixl", plain, plain, sent(prefill=1, decode=1))
    assert said(found["d"]) == ("not_measurable", "counts_probes")
    failing = growing(prompt_tokens=100, kv_bootstrap_failed=1)
    assert said(judge("sglang-nixl", failing, plain)["p"]) == ("failing", "transfers_failed")


def test_a_page_that_cannot_be_read_is_unknown() -> None:
    assert said(judge(**WORKING, d="it answers HTTP 404")["d"]) == ("unknown", "no_page")


def test_a_restarted_decode_is_judged_by_both_its_lives() -> None:
    pages = Ring(200)
    for n in range(12):
        life = n % 6
        values = {
            "prompt_tokens": 100.0 * life,
            "tokens_external": 100.0 * life,
            "tokens_computed": 0.0,
        }
        pages.add(n * EVERY, 1.0 if n < 6 else 2.0, values)
    assert said(judge(**{**WORKING, "decode": pages})["d"]) == ("good", "moves")
