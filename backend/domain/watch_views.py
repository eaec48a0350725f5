"""What the API shows of watching: effectiveness, canaries, alerts, and histories of figures."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from backend.domain.telling import Said, plainly
from backend.domain.value import Value

EffectVerdict = Literal[
    "good",            # KV comes from prefill
    "partial",         # some does; the rest is computed again, or lost
    "none",            # nearly none does: decode computes its prompts itself
    "failing",         # transfers fail, or a member answers errors
    "no_traffic",      # nothing was asked of it: no verdict
    "not_measurable",  # its connector exports nothing that shows it
    "unknown",         # its metrics cannot be read
]  # fmt: skip
PairVerdict = Literal["ok", "not_moved", "content", "slow", "failed", "unknown"]


class _Told(Value):
    """What is told: `text` is what `said` says in English (None from an earlier version)."""

    text: str = ""
    said: Said | None = None

    @property
    def words(self) -> Said:
        """What is told, as data."""
        return self.said or plainly(self.text)


class EffectView(_Told):
    """Whether one member (or a whole group) does its part of the disaggregation.

    `reason` names the rule that decided and `text` says it with its `values`; `numbers` are
    what was counted in the last `window_s` seconds up to `at` (epoch seconds).
    """

    verdict: EffectVerdict
    reason: str
    values: dict[str, Any] = Field(default_factory=dict)
    numbers: dict[str, float] = Field(default_factory=dict)
    at: float = 0.0
    window_s: float = 0.0


class PairView(_Told):
    """One request through a prefill and a decode, or (both empty) through the router.

    `moved` is null where nothing shows it; `seconds` is the whole request.
    """

    prefill: str = ""
    decode: str = ""
    verdict: PairVerdict
    reason: str = ""
    culprit: str = ""
    seconds: float = 0.0
    moved: bool | None = None


class CanaryView(Value):
    """The last canary of a group: every pair that was tried, and one request through the router.

    `why` is what set it off: `asked`, `formed`, `interval`. `left_out` counts the pairs that this
    run did not try, where there are more than one run may cost. `note` is what `said` says in
    English.
    """

    at: float
    seconds: float = 0.0
    why: str = "asked"
    running: bool = False
    ok: bool = True
    pairs: tuple[PairView, ...] = ()
    router: PairView | None = None
    left_out: int = 0
    note: str = ""
    said: Said | None = None

    @property
    def words(self) -> Said:
        """What is wrong, as data."""
        return self.said or plainly(self.note)


class AlertView(_Told):
    """Something that somebody should look at, for as long as it lasts."""

    id: str
    kind: str
    level: Literal["warning", "error"] = "error"
    group: str = ""
    instance: str = ""
    host: str = ""
    since: float = 0.0


class MemberMetrics(Value):
    """The figures of one instance over time: `at` are epoch seconds, `series` as long as `at`, null
    where a figure could not be made. `raw` are the newest values of every series."""

    instance: str
    role: str = ""
    host: str = ""
    problem: str = ""
    at: tuple[float, ...] = ()
    series: dict[str, tuple[float | None, ...]] = Field(default_factory=dict)
    raw: dict[str, float] = Field(default_factory=dict)


class GroupMetrics(Value):
    """The figures of all instances of one group."""

    group: str
    every_s: float
    members: tuple[MemberMetrics, ...] = ()
