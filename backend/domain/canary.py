"""One small request through every prefill and decode: which pairs, what is sent, what it shows.

What a router does to make two engines serve one request is data of the mode (`CanaryRecipe`), so a
pair can be tried without it, whatever the router thinks of the pair. Pure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backend.domain.group import Instance
from backend.domain.metrics_recipe import CanaryRecipe
from backend.domain.telling import Said, plainly, said, told
from backend.domain.template import Renderer
from backend.domain.watch_views import PairVerdict, PairView

MAX_TOKENS = 4
SLOW_FACTOR, SLOW_LEAST_S = 5.0, 1.0
"""A pair is slow when it took so much longer than the median of all, and at least so long."""
MOVED = 0.5
"""The part of the prompt that has to have come from prefill."""

PAIR = re.compile(
    r"___prefill_addr_(?P<prefill>\S+?:\d+)___decode_addr_(?P<decode>\S+?:\d+)(?:_|$)"
)
"""How a vLLM router names the pair that serves a request, in the request's id."""

_STORY = (
    "Every prompt is read once by a prefill, which keeps what it found until a decode comes for "
    "it. The decode writes the answer word by word and never reads the prompt again. Between the "
    "two lies a network, and on it travels everything that the one knows and the other needs. "
    "The next word of this story is"
)


@dataclass(frozen=True)
class Reply:
    """What one engine answered: `status` 0 where it did not, with the `problem`; `late` where it
    was not waited for any longer."""

    status: int = 0
    body: Mapping[str, Any] | None = None
    problem: str = ""
    seconds: float = 0.0
    late: bool = False

    @property
    def text(self) -> str | None:
        """The completion's text; None when the body is no completion."""
        try:
            return str((self.body or {})["choices"][0]["text"])
        except (KeyError, IndexError, TypeError):
            return None

    @property
    def tokens(self) -> int:
        """Tokens of the prompt, as the engine counted them; 0 when it does not say."""
        usage = (self.body or {}).get("usage")
        found = usage.get("prompt_tokens") if isinstance(usage, Mapping) else None
        return int(found) if isinstance(found, int) else 0

    @property
    def said(self) -> Said:
        """Why it is no answer."""
        if self.problem or not self.status:
            return plainly(self.problem) if self.problem else said("pair.no_answer")
        error = (self.body or {}).get("error")
        words = error.get("message") if isinstance(error, Mapping) else None
        if not words:
            return said("pair.http", status=self.status)
        return said("pair.http_words", status=self.status, words=str(words)[:200])


def prompt(nonce: str) -> str:
    """A prompt that no cache has seen: the nonce comes first."""
    return f"[{nonce}] {_STORY}"


def planned(
    prefills: Sequence[str], decodes: Sequence[str], most: int, turn: int = 0
) -> tuple[list[tuple[str, str]], int]:
    """At most `most` pairs and how many are left out. The first turn begins with every member; the
    next ones begin elsewhere, so that what one run leaves out another tries."""
    if not prefills or not decodes:
        return [], 0
    p, d = len(prefills), len(decodes)
    step = math.lcm(p, d)
    every = [(prefills[i % p], decodes[(i + i // step) % d]) for i in range(p * d)]
    start = turn * most % len(every) if len(every) > most else 0
    chosen = (every[start:] + every[:start])[:most]
    return sorted(chosen), len(every) - len(chosen)


def body(model: str, nonce: str) -> dict[str, Any]:
    """The completion that is asked for, before the mode's own fields."""
    return {
        "model": model,
        "prompt": prompt(nonce),
        "max_tokens": MAX_TOKENS,
        "temperature": 0,
        "stream": False,
    }


def fields(
    recipe: CanaryRecipe,
    prefill: Instance,
    nonce: str,
    *,
    engine_id: str = "",
    answered: Mapping[str, Any] | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The mode's own fields for the prefill's body and the decode's.

    Raises Refused for a placeholder that nothing here has a value for.
    """
    scope: dict[str, Any] = {
        "prefill.host": prefill.address,
        "prefill.url": prefill.url,
        "transfer_id": f"canary-{nonce}",
        "room": int(nonce, 16) % (1 << 62),
        "prefill.engine_id": engine_id or None,
    }
    scope |= {f"prefill.ports.{b.name}": b.base for b in prefill.bands}
    scope |= {f"prefill.{k}": v for k, v in (answered or {}).items()}
    first, second = Renderer(scope), Renderer(scope)
    sent = first.data(recipe.prefill, "the canary's prefill body")
    first.finish(prefill.id)
    if answered is None and not recipe.together:
        return sent, {}
    then = second.data(recipe.decode, "the canary's decode body")
    second.finish(prefill.id)
    return sent, then


def engine_id(answer: Any, path: Sequence[str]) -> str:
    """What stands at `path` in an answer; `*` is the first key. Empty where nothing does."""
    for step in path:
        if not isinstance(answer, Mapping) or not answer:
            return ""
        answer = next(iter(answer.values())) if step == "*" else answer.get(step)
    return answer if isinstance(answer, str) else ""


def moved(
    before: Mapping[str, float], after: Mapping[str, float], tokens: int, transfers: str | None
) -> bool | None:
    """Whether KV came to the decode, from its counters before and after; None where they do not
    show it. Other requests may have been counted meanwhile, so the canary's own prompt must not be
    among what was computed here."""
    grown = {k: after[k] - before[k] for k in after.keys() & before.keys()}
    if "tokens_external" in grown:
        need = max(1.0, MOVED * tokens)
        if grown["tokens_external"] < need:
            return False
        busy = grown.get("requests_finished", 1) > 1
        computed_here = grown.get("tokens_computed", 0.0) >= need
        return None if busy and computed_here else not computed_here
    count = grown.get(f"{transfers}.count") if transfers else None
    return None if count is None else count > 0


def judge(
    first: Reply,
    second: Reply,
    shown: bool | None,
    *,
    ids: tuple[str, str],
    log: Said | None = None,
) -> PairView:
    """The verdict on a pair from both answers; `log` is what the decode's log says of a failure."""
    seconds = round(first.seconds + second.seconds, 3)

    def view(verdict: PairVerdict, reason: str, words: Said, culprit: str = "") -> PairView:
        return PairView(
            prefill=ids[0], decode=ids[1], verdict=verdict, reason=reason, text=told(words, "en"),
            said=words, culprit=culprit, seconds=seconds, moved=shown,
        )  # fmt: skip

    def logged(words: Said) -> Said:
        return said("pair.logged", what=words, log=log) if log else words

    if 401 in (first.status, second.status):
        return view("unknown", "api_key", said("pair.engine_key"))
    if first.status != 200 or first.text is None:
        return view("failed", "prefill", said("pair.side", side="prefill", what=first.said), ids[0])
    if second.status != 200 or second.text is None:
        words = said("pair.side", side="decode", what=second.said)
        return view("failed", "decode", logged(words), ids[1])
    if shown is False:
        return view("not_moved", "not_moved", logged(said("pair.not_moved")))
    begins = first.text.rstrip("\N{REPLACEMENT CHARACTER}")  # half a character is no word yet
    if not second.text or not second.text.startswith(begins):
        words = said("pair.differs", first=repr(first.text), second=repr(second.text[:40]))
        return view("content", "content", words)
    return view("ok", "ok", said("pair.moved") if shown else said("pair.unproven"))


def settle(pairs: Sequence[PairView]) -> tuple[PairView, ...]:
    """All pairs, with those that took far longer than the others called slow, and with whom to
    blame: a member whose every pair fails while others work, else the pair itself."""
    times = sorted(p.seconds for p in pairs if p.verdict == "ok")
    median = times[len(times) // 2] if len(times) > 2 else math.inf
    out = []
    for pair in pairs:
        late = pair.seconds > max(SLOW_LEAST_S, SLOW_FACTOR * median)
        if pair.verdict == "ok" and late:
            words = said("pair.slow", seconds=f"{pair.seconds:.1f}", median=f"{median:.1f}")
            update = {"text": told(words, "en"), "said": words}
            pair = pair.model_copy(update={"verdict": "slow", "reason": "slow", **update})
        if pair.verdict in ("failed", "not_moved") and pair.reason != "prefill":
            pair = pair.model_copy(update={"culprit": _culprit(pair, pairs)})
        out.append(pair)
    return tuple(out)


def _culprit(pair: PairView, pairs: Iterable[PairView]) -> str:
    """The side whose other pairs fail too while the other side's work."""
    others = [p for p in pairs if p is not pair and p.verdict != "unknown"]
    of_decode = [p.verdict in ("ok", "slow") for p in others if p.decode == pair.decode]
    of_prefill = [p.verdict in ("ok", "slow") for p in others if p.prefill == pair.prefill]
    if of_prefill and not any(of_prefill) and any(of_decode):
        return pair.prefill
    if of_decode and not any(of_decode) and any(of_prefill):
        return pair.decode
    return f"{pair.prefill} -> {pair.decode}"


def served_by(response_id: str) -> str:
    """The pair in a response id of a vLLM router, `P -> D`, empty when the id names none."""
    found = PAIR.search(response_id)
    return f"{found['prefill']} -> {found['decode']}" if found else ""


def through_router(reply: Reply, shown: bool | None) -> PairView:
    """The verdict on one request through the router."""
    by = served_by(str((reply.body or {}).get("id", "")))
    seconds = round(reply.seconds, 3)

    def view(verdict: PairVerdict, reason: str, words: Said, **more: Any) -> PairView:
        return PairView(
            verdict=verdict, reason=reason, text=told(words, "en"), said=words, **more
        )  # fmt: skip

    if reply.status == 401:
        return view("unknown", "api_key", said("pair.router_key"))
    if reply.status != 200 or not reply.text:
        what = reply.said if reply.status != 200 else said("pair.empty")
        words = said("pair.side", side="router", what=what)
        return view("failed", "router", words, culprit="router", seconds=seconds)
    if shown is False:
        words = said("pair.by_unmoved", pair=by or said("pair.a_pair"))
        return view("not_moved", "not_moved", words, seconds=seconds, moved=False)
    words = said("pair.by", pair=by) if by else said("pair.answered")
    return view("ok", "ok", words, seconds=seconds, moved=shown)


BAD = ("failed", "not_moved", "content")


def summary(pairs: Sequence[PairView], router: PairView | None) -> Said | None:
    """What is wrong, the gravest first; None when nothing is."""
    bad = [p for p in pairs if p.verdict in BAD]
    if router is not None and router.verdict in BAD and not bad:
        return router.words
    if not bad:
        return None
    blamed = sorted({p.culprit or f"{p.prefill} -> {p.decode}" for p in bad})
    return said("canary.blamed", who=blamed, what=bad[0].words)
