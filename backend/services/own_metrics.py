"""The backend's own metrics, in Prometheus' text format: what runs, what is watched, what it costs.

Everything is made from what is known when it is asked for: nothing is counted beside the work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from backend.domain.views import GroupView
from backend.services.backend import Backend

STATUSES = ("Stopped", "Pending", "Partially ready", "Running")
MEMBER = ("group", "member", "role")


class _Collector:
    """Families made anew for each page."""

    def __init__(self, make: Callable[[], Iterator[Metric]]) -> None:
        self._make = make

    def collect(self) -> Iterator[Metric]:
        """As prometheus_client asks for them."""
        return self._make()


def page(backend: Backend, version: str) -> bytes:
    """The page as it is now."""
    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    registry.register(_Collector(partial(_all, backend, version)))
    return generate_latest(registry)


def _all(backend: Backend, version: str) -> Iterator[Metric]:
    groups = backend.pictures.groups()
    yield _gauge("pdtui_build_info", "The backend that answers.", ("version",), {(version,): 1.0})
    yield from _site(backend, groups)
    yield from _groups(groups)
    yield from _traffic(groups)
    yield from _canaries(groups)
    yield from _cost(backend)


def _gauge(
    name: str, text: str, labels: tuple[str, ...], values: dict[tuple[str, ...], float]
) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for key, value in values.items():
        family.add_metric(key, value)
    return family


def _site(backend: Backend, groups: tuple[GroupView, ...]) -> Iterator[Metric]:
    statuses: Counter[str] = Counter(g.status for g in groups)
    yield _gauge(
        "pdtui_groups", "Groups by status.", ("status",),
        {(s,): float(statuses[s]) for s in STATUSES},
    )  # fmt: skip
    states = Counter(h.state for h in backend.pictures.hosts())
    yield _gauge(
        "pdtui_hosts", "Hosts by state.", ("state",), {(s,): float(n) for s, n in states.items()}
    )
    kinds = Counter((a.kind, a.group) for a in backend.watching.alerts())
    yield _gauge(
        "pdtui_alerts", "Alerts that stand.", ("kind", "group"),
        {k: float(n) for k, n in kinds.items()},
    )  # fmt: skip


def _groups(groups: tuple[GroupView, ...]) -> Iterator[Metric]:
    roles = [(g.name, r, c) for g in groups for r, c in g.roles.items()]
    yield _gauge(
        "pdtui_instances_desired", "Instances a role is to have.", ("group", "role"),
        {(g, r): float(c.wanted) for g, r, c in roles},
    )  # fmt: skip
    yield _gauge(
        "pdtui_instances_ready", "Instances of a role that serve.", ("group", "role"),
        {(g, r): float(c.ready) for g, r, c in roles},
    )  # fmt: skip
    yield _gauge(
        "pdtui_mode_info", "The recipe of a group.", ("group", "mode", "model"),
        {(g.name, g.mode or "none", g.model): 1.0 for g in groups},
    )  # fmt: skip
    yield _gauge(
        "pdtui_member_up", "Whether a member or router serves.", (*MEMBER, "host"),
        {(g.name, m.id, m.role, m.host): float(m.state == "ready")
         for g in groups for m in g.members},
    )  # fmt: skip
    yield _gauge(
        "pdtui_member_generation", "How often it has been started.", MEMBER,
        {(g.name, m.id, m.role): float(m.generation) for g in groups for m in g.members},
    )  # fmt: skip


def _traffic(groups: tuple[GroupView, ...]) -> Iterator[Metric]:
    yield _gauge(
        "pdtui_pd_verdict", "PD effectiveness of a member: 1 for the verdict that stands.",
        (*MEMBER, "verdict"),
        {(g.name, m.id, m.role, m.effect.verdict): 1.0
         for g in groups for m in g.members if m.effect},
    )  # fmt: skip
    yield _gauge(
        "pdtui_pd_token_share", "Part of a group's prompt tokens that came from prefill.",
        ("group",),
        {(g.name,): g.effect.numbers["share"]
         for g in groups if g.effect and "share" in g.effect.numbers},
    )  # fmt: skip
    yield _gauge(
        "pdtui_member_figure", "Figures of the last half minute, by the names of pdtui metrics.",
        (*MEMBER, "figure"),
        {(g.name, m.id, m.role, name): value
         for g in groups for m in g.members for name, value in m.figures.items()},
    )  # fmt: skip


def _canaries(groups: tuple[GroupView, ...]) -> Iterator[Metric]:
    runs = {g.name: g.canary for g in groups if g.canary is not None}
    yield _gauge(
        "pdtui_canary_ok", "Whether the last canary was well.", ("group",),
        {(n,): float(r.ok) for n, r in runs.items()},
    )  # fmt: skip
    yield _gauge(
        "pdtui_canary_timestamp_seconds", "When the last canary began.", ("group",),
        {(n,): r.at for n, r in runs.items()},
    )  # fmt: skip
    yield _gauge(
        "pdtui_canary_pair_seconds", "How long a pair took to answer.",
        ("group", "prefill", "decode", "verdict"),
        {(n, p.prefill, p.decode, p.verdict): p.seconds for n, r in runs.items() for p in r.pairs},
    )  # fmt: skip


def _cost(backend: Backend) -> Iterator[Metric]:
    world = backend.world
    scraped = world.metrics.all()
    pages = CounterMetricFamily("pdtui_scrapes", "Metrics pages asked for.", labels=("result",))
    pages.add_metric(("ok",), float(sum(s.pages for s in scraped.values())))
    pages.add_metric(("failed",), float(sum(s.failures for s in scraped.values())))
    yield pages
    yield _gauge(
        "pdtui_scrape_seconds", "How long the last page of an instance took.", ("member",),
        {(key,): s.took_s for key, s in scraped.items()},
    )  # fmt: skip
    probes = {key: world.health.probes(key).latency_s for key in backend.store.instances}
    yield _gauge(
        "pdtui_probe_seconds", "How long the last health answer of an instance took.", ("member",),
        {(key,): took for key, took in probes.items() if took},
    )  # fmt: skip
    kept = float(sum(s.ring.size for s in scraped.values()))
    yield _gauge("pdtui_kept_bytes", "Memory of the kept pages.", (), {(): kept})
