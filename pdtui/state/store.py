"""What the console knows of the backend: one immutable snapshot a kind, each with a revision."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from backend.domain.views import EventView, GroupView, Health, HostView, Snapshot

Kind = Literal["groups", "hosts", "events", "health", "connection"]
MOST_EVENTS = 1000


class Store:
    """Read by screens, written by the session alone. Mappings are replaced, never changed."""

    def __init__(self) -> None:
        self.groups: Mapping[str, GroupView] = MappingProxyType({})
        self.hosts: Mapping[str, HostView] = MappingProxyType({})
        self.events: tuple[EventView, ...] = ()
        self.health: Health | None = None
        self.connected = False
        self.loaded = False
        self.failed = False
        self.seq = 0
        self.revisions: dict[Kind, int] = dict.fromkeys(
            ("groups", "hosts", "events", "health", "connection"), 0
        )

    def revision(self, *kinds: Kind) -> int:
        """A number that grows whenever one of `kinds` changes."""
        return sum(self.revisions[k] for k in kinds)

    def load(self, snapshot: Snapshot) -> None:
        """Replace everything."""
        self.groups = MappingProxyType({g.name: g for g in snapshot.groups})
        self.hosts = MappingProxyType({h.name: h for h in snapshot.hosts})
        self.events = tuple(sorted(snapshot.events, key=lambda e: e.seq))[-MOST_EVENTS:]
        self.seq = snapshot.seq
        self.loaded = True
        self._touch("groups", "hosts", "events")

    def put_group(self, group: GroupView) -> None:
        """Add or replace a group."""
        if self.groups.get(group.name) != group:
            self.groups = MappingProxyType({**self.groups, group.name: group})
            self._touch("groups")

    def drop_group(self, name: str) -> None:
        """Forget a group; nothing happens when it is not known."""
        if name in self.groups:
            self.groups = MappingProxyType({k: v for k, v in self.groups.items() if k != name})
            self._touch("groups")

    def put_host(self, host: HostView) -> None:
        """Add or replace a host."""
        if self.hosts.get(host.name) != host:
            self.hosts = MappingProxyType({**self.hosts, host.name: host})
            self._touch("hosts")

    def drop_host(self, name: str) -> None:
        """Forget a host."""
        if name in self.hosts:
            self.hosts = MappingProxyType({k: v for k, v in self.hosts.items() if k != name})
            self._touch("hosts")

    def add_event(self, event: EventView) -> None:
        """Add a line of history; one already known is not added again."""
        if not self.events or event.seq > self.events[-1].seq:
            self.events = (*self.events, event)[-MOST_EVENTS:]
            self._touch("events")

    def set_health(self, health: Health) -> None:
        """Who answers."""
        self.health = health
        self._touch("health")

    def set_connected(self, connected: bool) -> None:
        """Whether the event stream is open."""
        if self.connected != connected:
            self.connected = connected
            self._touch("connection")

    def set_failed(self, failed: bool) -> None:
        """Whether the backend could not be opened, so that nothing more comes by itself."""
        self.failed = failed
        self._touch("connection")

    def _touch(self, *kinds: Kind) -> None:
        for kind in kinds:
            self.revisions[kind] += 1
