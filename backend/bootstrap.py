"""Everything wired in one place; the daemon, the embedded backend and the tests all use it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from backend.adapters.container import ContainerRuntime
from backend.adapters.http import HostHttp
from backend.adapters.models import ModelReader
from backend.adapters.recipes import builtin_path, load_catalogue
from backend.adapters.ssh.pool import SshPool
from backend.domain.mode import Catalogue
from backend.observe.canary import Canaries
from backend.observe.doctor import Doctor
from backend.observe.effectiveness import Effectiveness
from backend.observe.health import HealthWatch
from backend.observe.hosts import HostWatch
from backend.observe.metrics import MetricsWatch
from backend.observe.registry import RegistryWatch
from backend.paths import Paths
from backend.reconcile.reconciler import Reconciler
from backend.reconcile.world import World
from backend.services.alarm import Alarm
from backend.services.backend import Backend, Settings
from backend.services.bus import Bus
from backend.services.caches import Caches
from backend.services.checking import Checking
from backend.services.choices import Choices
from backend.services.groups import Groups
from backend.services.hosts import Hosts
from backend.services.pictures import Pictures
from backend.services.planning import Planning
from backend.services.rendering import Rendering
from backend.services.tokens import Tokens
from backend.services.watching import Watching
from backend.store.store import Store

log = logging.getLogger(__name__)


@asynccontextmanager
async def build(paths: Paths, settings: Settings | None = None) -> AsyncIterator[Backend]:
    """A backend that watches and reconciles until the block ends; the groups run on after it.

    Raises Invalid for a malformed catalogue, Refused for a store it cannot trust.
    """
    settings = settings or Settings()
    paths.make()
    catalogue: Catalogue = load_catalogue([builtin_path(), paths.catalogue])
    async with AsyncExitStack() as stack:
        store = Store(paths.store)
        await store.open()
        stack.push_async_callback(store.close)
        pool = SshPool(
            paths.known_hosts,
            inventory=store.hosts.get,
            connect_timeout=settings.connect_timeout_s,
        )
        stack.push_async_callback(pool.close)
        http = HostHttp(pool)
        stack.push_async_callback(http.close)
        backend = _wire(paths, settings, store, pool, http, lambda: catalogue)
        world = backend.world
        for watch in (world.hosts, world.health, world.registry, world.metrics):
            stack.push_async_callback(watch.close)
        stack.push_async_callback(backend.reconciler.close)
        stack.push_async_callback(backend.pictures.close)
        stack.push_async_callback(backend.watching.close)
        await backend.groups.refresh_revisions()
        await backend.reconciler.start()
        backend.pictures.start()
        backend.watching.start()
        log.info("backend %s watches %d groups on %d hosts", store.id, len(store.groups),
                 len(store.hosts))  # fmt: skip
        yield backend


class _Hooks:
    """What the watches call when something changed; nothing before the backend is whole."""

    def __init__(self) -> None:
        self.backend: Backend | None = None

    def host_changed(self, name: str) -> None:
        """A host, or a process on it."""
        if self.backend is not None:
            self.backend.reconciler.hint_host(name)
            self.backend.pictures.host_changed(name)

    def group_changed(self, name: str) -> None:
        """A group's health or registry: its loop looks too."""
        if self.backend is not None:
            self.backend.reconciler.hint(name)
            self.backend.pictures.group_changed(name)

    def page_read(self, name: str) -> None:
        """A metrics page of one of a group's instances."""
        if self.backend is not None:
            self.backend.watching.effectiveness.look(name)

    def seen(self, name: str) -> None:
        """What watching found of a group: only its view changes."""
        if self.backend is not None:
            self.backend.pictures.group_changed(name)


def _wire(paths, settings, store, pool, http, catalogue) -> Backend:  # type: ignore[no-untyped-def]
    hooks = _Hooks()
    world = _world(settings, store, pool, http, catalogue, hooks)
    reconciler = Reconciler(world)
    bus = Bus()
    watching = Watching(
        Effectiveness(store, world.metrics, catalogue, hooks.seen),
        Canaries(
            store, http, world.metrics, world.runtime, catalogue, hooks.seen, settings.canary_pace
        ),
        Alarm(store, hooks.seen, settings.alert_hook),
    )
    pictures = Pictures(reconciler, bus, watching)
    groups = Groups(reconciler, pictures, Checking(world, world.models))
    hooks.backend = Backend(
        paths=paths,
        settings=settings,
        store=store,
        world=world,
        reconciler=reconciler,
        pictures=pictures,
        bus=bus,
        groups=groups,
        hosts=Hosts(reconciler, pictures, pool),
        caches=Caches(reconciler, groups),
        choices=Choices(world),
        planning=Planning(world, groups),
        rendering=Rendering(world),
        watching=watching,
        tokens=Tokens(store),
    )
    return hooks.backend


def _world(settings, store, pool, http, catalogue, hooks: _Hooks) -> World:  # type: ignore[no-untyped-def]
    runtime = ContainerRuntime(pool, owner=store.id)
    defaults = settings.defaults
    hosts = HostWatch(
        store, pool, runtime, hooks.host_changed, settings.pace, lambda: catalogue().host_files
    )
    return World(
        store=store,
        runtime=runtime,
        http=http,
        hosts=hosts,
        doctor=Doctor(
            store,
            hosts,
            pool,
            port_range=defaults.port_range,
            ifname=defaults.kv_transfer_ifname,
        ),
        models=ModelReader(pool),
        health=HealthWatch(store, http, pool, hooks.group_changed, settings.health_pace),
        registry=RegistryWatch(store, http, hooks.group_changed),
        metrics=MetricsWatch(
            store, http, lambda: catalogue().series, hooks.page_read, settings.metrics_pace
        ),
        catalogue=catalogue,
        defaults=defaults,
        timers=settings.timers,
    )
