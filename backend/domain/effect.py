"""Whether prefill/decode disaggregation does anything, from what the members count. Pure.

A verdict is about traffic: without any in the last ten minutes there is none. A series that no page
has is "not measurable", never zero. Every comparison of what the router sent with what a member did
looks at a longer time for the member, so that the clocks of two scrapes can only hide a fault for a
moment, never invent one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from backend.domain import rates
from backend.domain.metrics_recipe import MetricsRecipe
from backend.domain.pages import key
from backend.domain.rates import Samples
from backend.domain.telling import said, told
from backend.domain.watch_views import EffectVerdict, EffectView

WINDOWS = (4, 12, 120)
"""Lengths in scrape intervals; the shortest in which there was traffic is judged."""
GOOD, NONE = 0.9, 0.1
"""Shares from which on PD is called good, and below which it does nothing."""
WORST: tuple[EffectVerdict, ...] = (
    "failing", "none", "partial", "good", "no_traffic", "not_measurable", "unknown",
)  # fmt: skip
BAD: frozenset[str] = frozenset({"failing", "none"})


class History(Protocol):
    """The kept samples of one instance."""

    def since(self, at: float) -> Cut: ...


class Cut(Samples, Protocol):
    """A stretch that can be cut at its end."""

    def until(self, at: float) -> Cut: ...


@dataclass(frozen=True)
class Side:
    """One instance as this module sees it. `history` is None before its first page."""

    id: str
    role: str
    url: str
    history: History | None
    problem: str = ""


@dataclass(frozen=True)
class _Look:
    """What one member did in one window."""

    side: Side
    samples: Cut
    router: Cut | None
    at: float
    span: float
    numbers: dict[str, float] = field(default_factory=dict)

    def grown(self, name: str) -> float | None:
        return rates.increase(self.samples, name)

    def routed(self, name: str = "routed") -> float | None:
        if self.router is None:
            return None
        return rates.increase(self.router, key(name, self.side.url))


def effects(
    recipe: MetricsRecipe | None,
    members: Sequence[Side],
    router: Side | None,
    now: float,
    every_s: float,
) -> dict[str, EffectView]:
    """The verdict on each member, by its id."""
    return {m.id: _of_member(recipe, m, router, now, every_s) for m in members}


def of_group(found: Mapping[str, EffectView], roles: Mapping[str, str]) -> EffectView | None:
    """The group's verdict: its worst member's, with the share over all decodes."""
    if not found:
        return None
    name, worst = min(found.items(), key=lambda item: WORST.index(item[1].verdict))
    decodes = [e for n, e in found.items() if roles.get(n) == "decode"]
    moved = sum(e.numbers.get("tokens_external", 0.0) for e in decodes)
    computed = sum(e.numbers.get("tokens_computed", 0.0) for e in decodes)
    numbers = {"tokens_external": moved, "tokens_computed": computed}
    if (part := rates.share(moved, computed)) is not None:
        numbers["share"] = round(part, 4)
    if worst.verdict in ("failing", "none", "partial"):
        words = said("effect.of_member", member=name, what=worst.words)
        update = {"text": told(words, "en"), "said": words, "numbers": numbers}
        return worst.model_copy(update={**update, "values": {**worst.values, "member": name}})
    best = next((e for e in decodes if e.verdict == worst.verdict), worst)
    if worst.verdict == "good" and "share" in numbers:
        percent = round(100 * numbers["share"])
        return _view("good", "moves", {"percent": percent}, numbers, best.at, best.window_s)
    return best.model_copy(update={"numbers": numbers})


def _of_member(
    recipe: MetricsRecipe | None, side: Side, router: Side | None, now: float, every_s: float
) -> EffectView:
    if recipe is None:
        return _view("not_measurable", "no_disaggregation")
    if side.history is None or side.problem:
        if not side.problem:
            return _view("unknown", "no_page", {"problem": "not read yet"}, case="not_read")
        return _view("unknown", "no_page", {"problem": side.problem})
    latest = _dead_end(side, router, now, every_s)
    if latest is not None:
        return latest
    for look in _looks(side, router, now, every_s):
        if not _traffic(look):
            continue
        look.numbers.update(_numbers(look, recipe))
        return (_decode if side.role == "decode" else _prefill)(look, recipe)
    return _view("no_traffic", "no_traffic", {"minutes": round(WINDOWS[-1] * every_s / 60)}, at=now)


def _looks(side: Side, router: Side | None, now: float, every_s: float) -> Iterator[_Look]:
    assert side.history is not None
    for count in WINDOWS:
        samples = side.history.since(now - count * every_s)
        if not samples.times:
            return
        at = samples.times[-1]
        sent = None
        if router is not None and router.history is not None:
            sent = router.history.since(now - (count - 1) * every_s).until(at)
        yield _Look(side, samples, sent, at, rates.seconds(samples))


def _traffic(look: _Look) -> bool:
    counted = ("prompt_tokens", "kv_failed", "kv_receive_failed", "kv_expired")
    return bool(look.routed()) or any(look.grown(name) for name in counted)


def _numbers(look: _Look, recipe: MetricsRecipe) -> dict[str, float]:
    """Everything that was counted, for people and for the group's sums."""
    names = [
        "tokens_external", "tokens_computed", "tokens_cached", "prompt_tokens",
        *recipe.failures, *([recipe.expired] if recipe.expired else []),
    ]  # fmt: skip
    found = {name: look.grown(name) for name in names}
    found["requests"] = look.grown("requests_finished")
    found["routed"], found["routed_failed"] = look.routed(), look.routed("routed_failed")
    if recipe.transfers:
        found["transfers"] = look.grown(f"{recipe.transfers}.count")
    found["share"] = rates.share(found["tokens_external"], found["tokens_computed"])
    return {name: round(value, 4) for name, value in found.items() if value is not None}


def _dead_end(side: Side, router: Side | None, now: float, every_s: float) -> EffectView | None:
    """A member that computed nothing of what the router sent it last, and holds nothing either."""
    if router is None or router.history is None or side.history is None:
        return None
    whole = side.history.since(now - WINDOWS[-1] * every_s)
    if len(whole.times) < 2:
        return None
    at = whole.times[-1]
    sent = router.history.since(now - WINDOWS[-1] * every_s).until(at)
    when = _last_growth(sent, key("routed", side.url))
    if when is None:
        return None
    before, routed = when
    own = side.history.since(before - every_s)
    if len(own.times) < 2 or own.times[0] > before:
        return None  # its samples do not reach back so far
    held = (rates.last(own, "requests_running") or 0) + (rates.last(own, "requests_waiting") or 0)
    done = rates.increase(own, "prompt_tokens")
    if done is None or done > 0 or held > 0:
        return None
    span = rates.seconds(own)
    numbers = {"routed": routed, "prompt_tokens": 0.0}
    return _view("failing", "answers_nothing", {"routed": round(routed)}, numbers, at, span)


def _last_growth(samples: Cut, name: str) -> tuple[float, float] | None:
    """When the counter last began to grow, and by how much it then did."""
    column = samples.column(name)
    if column is None:
        return None
    for n in range(len(column) - 1, 0, -1):
        low, high = column[n - 1], column[n]
        if high != high:  # NaN: the page lacked it
            continue
        grown = high if low != low or high < low else high - low
        if grown > 0:
            return samples.times[n - 1], grown
    return None


def _failures(look: _Look, recipe: MetricsRecipe) -> EffectView | None:
    failed = sum(look.numbers.get(name, 0.0) for name in recipe.failures)
    if failed > 0:
        return _judged(look, "failing", "transfers_failed", count=round(failed))
    expired = look.numbers.get(recipe.expired or "", 0.0)
    if expired > 0:
        return _judged(look, "failing", "lease_expired", count=round(expired))
    return None


def _decode(look: _Look, recipe: MetricsRecipe) -> EffectView:
    if (bad := _failures(look, recipe)) is not None:
        return bad
    numbers = look.numbers
    part = numbers.get("share")
    if part is not None:
        percent = round(100 * part)
        if part >= GOOD:
            return _judged(look, "good", "moves", percent=percent)
        return _judged(look, "none" if part < NONE else "partial", "recomputes", percent=percent)
    if "tokens_external" in numbers:
        return _judged(look, "no_traffic", "all_cached")
    return _by_transfers(look, recipe, numbers.get("routed") or numbers.get("requests"))


def _prefill(look: _Look, recipe: MetricsRecipe) -> EffectView:
    if (bad := _failures(look, recipe)) is not None:
        return bad
    if recipe.counted_role == "prefill" and recipe.transfers and "transfers" in look.numbers:
        return _by_transfers(look, recipe, look.numbers.get("requests"))
    count = round(look.numbers.get("requests") or look.numbers.get("routed") or 0)
    return _judged(look, "good", "computes", count=count)


def _by_transfers(look: _Look, recipe: MetricsRecipe, requests: float | None) -> EffectView:
    """A verdict from transfers for requests, where tokens are not told apart by their source."""
    transfers = look.numbers.get("transfers")
    if recipe.transfers is None:
        return _judged(look, "not_measurable", "exports_nothing")
    if not recipe.per_request:
        return _judged(look, "not_measurable", "counts_probes")
    if look.side.role != recipe.counted_role:
        return _judged(look, "not_measurable", "counted_elsewhere", role=recipe.counted_role)
    if transfers is None:
        return _judged(look, "not_measurable", "exports_nothing")
    if not requests:
        return _judged(look, "no_traffic", "no_traffic", minutes=round(look.span / 60))
    part = transfers / requests
    values = {"transfers": round(transfers), "requests": round(requests)}
    if part >= GOOD:
        return _judged(look, "good", "transfers", **values)
    return _judged(look, "none" if part < NONE else "partial", "few_transfers", **values)


def _judged(look: _Look, verdict: EffectVerdict, reason: str, **values: Any) -> EffectView:
    return _view(verdict, reason, values, look.numbers, look.at, look.span)


def _view(
    verdict: EffectVerdict,
    reason: str,
    values: Mapping[str, Any] | None = None,
    numbers: Mapping[str, float] | None = None,
    at: float = 0.0,
    span: float = 0.0,
    case: str = "",
) -> EffectView:
    values = dict(values or {})
    words = said(f"effect.{case or reason}", **values)
    return EffectView(
        verdict=verdict,
        reason=reason,
        text=told(words, "en"),
        said=words,
        values=values,
        numbers=dict(numbers or {}),
        at=at,
        window_s=round(span, 1),
    )
