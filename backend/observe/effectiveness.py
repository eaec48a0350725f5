"""The figures and the PD effectiveness of every group, made anew after each metrics page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from backend.domain import effect
from backend.domain.effect import Side
from backend.domain.figures import figures
from backend.domain.group import Instance
from backend.domain.instance import MEMBER_ROLES
from backend.domain.mode import Catalogue
from backend.domain.recipes import shown_mode
from backend.domain.watch_views import EffectView, GroupMetrics, MemberMetrics
from backend.observe.metrics import MetricsWatch
from backend.observe.ring import Ring
from backend.store.clock import steady
from backend.store.store import Store

FIGURES_STEPS = 6
"""Scrape intervals that the figures of a view are made over."""
MOST_POINTS = 720


@dataclass(frozen=True)
class Known:
    """What is known of one group's traffic: by instance, and as a whole."""

    effects: dict[str, EffectView] = field(default_factory=dict)
    figures: dict[str, dict[str, float]] = field(default_factory=dict)
    group: EffectView | None = None


class Effectiveness:
    """Looks at a group's kept pages; `on_change(group)` when what is known of it changed."""

    def __init__(
        self,
        store: Store,
        metrics: MetricsWatch,
        catalogue: Callable[[], Catalogue],
        on_change: Callable[[str], None],
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._store, self._metrics, self._catalogue = store, metrics, catalogue
        self._on_change, self._clock = on_change, clock or steady()
        self._known: dict[str, Known] = {}
        self._stamps: dict[str, tuple[object, ...]] = {}

    def known(self, group: str) -> Known:
        """What is known of a group."""
        return self._known.get(group, Known())

    def look(self, name: str) -> None:
        """Judge a group anew: the members of which a page came since, and all when the router's
        came."""
        group = self._store.groups.get(name)
        if group is None:
            self._known.pop(name, None)
            return
        instances = self._store.of_group(name)
        sides = {i.id: self._side(i) for i in instances}
        router = next((sides[i.id] for i in instances if i.role == "router"), None)
        members = [s for s in sides.values() if s.role in MEMBER_ROLES]
        now, every = self._clock(), self._metrics.every_s
        known, stamps = self.known(name), {i.id: self._stamp(i) for i in instances}
        through = stamps.get(router.id) if router is not None else None
        fresh = {k: (group.revision, v, through) for k, v in stamps.items()}
        due = [
            m for m in members if m.id not in known.effects or self._stamps.get(m.id) != fresh[m.id]
        ]
        mode = shown_mode(group, self._catalogue())
        judged = effect.effects(mode.metrics if mode else None, due, router, now, every)
        found = {m.id: judged.get(m.id) or known.effects[m.id] for m in members}
        shown = {
            i.id: known.figures[i.id]
            if self._stamps.get(i.id, (0, 0))[1] == stamps[i.id] and i.id in known.figures
            else self._figures(i)
            for i in instances
        }
        self._stamps |= fresh
        for gone in self._stamps.keys() - self._store.instances.keys():
            del self._stamps[gone]
        roles = {s.id: s.role for s in members}
        after = self._known[name] = Known(found, shown, effect.of_group(found, roles))
        if after != known:
            self._on_change(name)

    def _stamp(self, i: Instance) -> tuple[int, str]:
        """Another one after each page and each failure to read one."""
        scraped = self._metrics.scraped(i.id)
        return (scraped.ring.added, scraped.problem) if scraped is not None else (0, "")

    def _side(self, i: Instance) -> Side:
        scraped = self._metrics.scraped(i.id)
        ring = scraped.ring if scraped is not None and len(scraped.ring) else None
        problem = scraped.problem if scraped is not None else ""
        return Side(i.id, i.role, i.url, ring, problem)

    def _figures(self, i: Instance) -> dict[str, float]:
        scraped = self._metrics.scraped(i.id)
        if scraped is None or scraped.problem or len(scraped.ring) < 2:
            return {}
        span = FIGURES_STEPS * self._metrics.every_s
        return figures(scraped.ring.since(self._clock() - span))

    # For the API

    def history(self, group: str, window_s: float, points: int) -> GroupMetrics:
        """The figures of a group's instances in the last `window_s` seconds."""
        members = tuple(self.member(i, window_s, points) for i in self._store.of_group(group))
        return GroupMetrics(group=group, every_s=self._metrics.every_s, members=members)

    def member(
        self, i: Instance, window_s: float, points: int, *, raw: bool = False
    ) -> MemberMetrics:
        """The figures of one instance, at most `points` of each."""
        scraped = self._metrics.scraped(i.id)
        if scraped is None:
            return MemberMetrics(
                instance=i.id, role=i.role, host=i.host, problem="it has no metrics page"
            )
        at, series = _curves(scraped.ring, self._clock() - window_s, min(points, MOST_POINTS))
        return MemberMetrics(
            instance=i.id,
            role=i.role,
            host=i.host,
            problem=scraped.problem,
            at=tuple(at),
            series={k: tuple(v) for k, v in series.items()},
            raw=_newest(scraped.ring) if raw else {},
        )


def _curves(
    ring: Ring, since: float, points: int
) -> tuple[list[float], dict[str, list[float | None]]]:
    at: list[float] = []
    made: list[dict[str, float]] = []
    for part in ring.since(since).parts(points):
        at.append(round(part.times[-1], 3))
        made.append(figures(part))
    names = {name: None for figure in made for name in figure}
    return at, {name: [figure.get(name) for figure in made] for name in names}


def _newest(ring: Ring) -> dict[str, float]:
    newest = ring.whole()
    out = {}
    for key in newest.names():
        column = newest.column(key)
        if column and column[-1] == column[-1]:  # not NaN
            out[key] = column[-1]
    return dict(sorted(out.items()))
