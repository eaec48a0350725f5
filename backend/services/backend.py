"""A running backend's parts, as the API sees them, and what it may be told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from backend.domain.decide import Timers
from backend.observe.canary import CanaryPace
from backend.observe.health import HealthPace
from backend.observe.hosts import Pace
from backend.observe.metrics import MetricsPace
from backend.paths import Paths
from backend.reconcile.reconciler import Reconciler
from backend.reconcile.world import Defaults, World
from backend.services.bus import Bus
from backend.services.caches import Caches
from backend.services.choices import Choices
from backend.services.groups import Groups
from backend.services.hosts import Hosts
from backend.services.pictures import Pictures
from backend.services.planning import Planning
from backend.services.rendering import Rendering
from backend.services.tokens import Tokens
from backend.services.watching import Watching
from backend.store.store import Store


@dataclass(frozen=True)
class Settings:
    """What a backend may be told. `embedded`: it lives for one console and ends with it;
    `alert_hook` is a command line that is called with each alert."""

    embedded: bool = False
    defaults: Defaults = field(default_factory=Defaults)
    timers: Timers = field(default_factory=Timers)
    pace: Pace = field(default_factory=Pace)
    health_pace: HealthPace = field(default_factory=HealthPace)
    metrics_pace: MetricsPace = field(default_factory=MetricsPace)
    canary_pace: CanaryPace = field(default_factory=CanaryPace)
    alert_hook: str = ""
    connect_timeout_s: float = 10.0


@dataclass
class Backend:
    """A running backend, as the API sees it. `stop` ends the process that it runs in."""

    paths: Paths
    settings: Settings
    store: Store
    world: World
    reconciler: Reconciler
    pictures: Pictures
    bus: Bus
    groups: Groups
    hosts: Hosts
    caches: Caches
    choices: Choices
    planning: Planning
    rendering: Rendering
    watching: Watching
    tokens: Tokens
    stop: Callable[[], None] | None = None

    def ailment(self) -> str:
        """What does not work now, as a sentence; empty when everything does."""
        return self.store.ailment
