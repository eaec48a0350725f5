"""Views of groups and hosts, and the publisher that sends the ones that changed."""

from __future__ import annotations

import asyncio
import logging

from backend.domain.decide import Picture
from backend.domain.errors import NotFound, PdError
from backend.domain.group import Group
from backend.domain.mode import Mode
from backend.domain.picture import group_view, member_view
from backend.domain.recipes import pinned, pinned_mode
from backend.domain.revision import changes
from backend.domain.rows import effective_policies, prefilled_rows
from backend.domain.views import (
    Change,
    GroupView,
    HostView,
    InstanceView,
    ModeView,
    RouterRow,
    Snapshot,
)
from backend.observe.hosts import host_view
from backend.reconcile.reconciler import Reconciler
from backend.services.bus import Bus
from backend.services.watching import Watching
from backend.store.store import Touched

log = logging.getLogger(__name__)

FLUSH_S = 0.04
"""Changes within this many seconds leave as one: a person sees no difference, a terminal does."""


class Pictures:
    """Makes views and publishes each when it differs from the one last sent."""

    def __init__(self, reconciler: Reconciler, bus: Bus, watching: Watching) -> None:
        self._reconciler, self.bus, self._watching = reconciler, bus, watching
        self._store = reconciler.world.store
        self._dirty_groups: set[str] = set()
        self._dirty_hosts: set[str] = set()
        self._sent: dict[str, GroupView | HostView] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._store.listeners.append(self._on_touched)

    def start(self) -> None:
        """Begin publishing."""
        self._task = asyncio.create_task(self._publish(), name="publisher")

    async def close(self) -> None:
        """Stop publishing and end all subscriptions."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self.bus.close()

    def group_changed(self, name: str) -> None:
        """A group may look different now."""
        self._dirty_groups.add(name)
        self._wake.set()

    def host_changed(self, name: str) -> None:
        """A host may look different now, and the groups on it."""
        self._dirty_hosts.add(name)
        self._dirty_groups |= {i.group for i in self._store.on_host(name)}
        self._wake.set()

    def group(self, name: str) -> GroupView:
        """The group as it is now. Raises NotFound."""
        picture = self._picture(name)
        formed = picture.group.formed
        lines: tuple[str, ...] = ()
        if formed is not None and picture.group.stale:
            lines = changes(
                formed.document,
                picture.group.document,
                pinned(picture.group),
                self._reconciler.world.catalogue(),
                (formed.services, self._store.caches),
            )
        view = group_view(picture, lines, self._policies(picture.group))
        return self._watching.dress(view)

    def _picture(self, name: str) -> Picture:
        loop = self._reconciler.loops.get(name)
        picture = loop.picture() if loop else None
        if picture is None:
            raise NotFound.among(
                "group.unknown", "deployment", name, self._store.groups, "pdtui get"
            )
        return picture

    def _policies(self, group: Group) -> str:
        try:
            mode = pinned_mode(group) or self._reconciler.world.catalogue().mode_of(
                group.document.spec
            )
            return effective_policies(mode, group.document.spec) if mode else ""
        except PdError:
            return ""

    def group_names(self) -> list[str]:
        """Names of all groups, sorted."""
        return sorted(self._reconciler.loops)

    def groups(self) -> tuple[GroupView, ...]:
        """All groups, by name."""
        return tuple(self.group(n) for n in self.group_names())

    def instances(
        self, *, group: str | None = None, host: str | None = None, role: str | None = None
    ) -> dict[str, InstanceView]:
        """Instances of all groups by id; of one group, on one host, of one role."""
        names = self.group_names() if group is None else [group]
        found: dict[str, InstanceView] = {}
        for name in names:
            picture = self._picture(name)
            members = (
                member_view(picture, i)
                for i in picture.instances
                if (host is None or i.host == host) and (role is None or i.role == role)
            )
            found |= {v.id: v for v in self._watching.instances(name, members)}
        return found

    def host(self, name: str) -> HostView:
        """The host as it is now. Raises NotFound."""
        host = self._store.hosts.get(name)
        if host is None:
            raise NotFound.among(
                "host.unknown", "host", name, self._store.hosts, "pdtui hosts list", field="host"
            )
        world = self._reconciler.world
        used = sum(len(i.ports) for i in self._store.on_host(name))
        port_range = host.service_port_range or world.defaults.port_range
        return host_view(host, world.hosts.sight(name), world.holders(name), used, port_range)

    def hosts(self) -> tuple[HostView, ...]:
        """All hosts, by name."""
        return tuple(self.host(n) for n in sorted(self._store.hosts))

    def modes(self) -> tuple[ModeView, ...]:
        """The catalogue's modes."""
        return tuple(mode_view(m) for m in self._reconciler.world.catalogue().modes.values())

    async def snapshot(self) -> Snapshot:
        """Everything there is, and the number to go on from."""
        seq = self.bus.seq
        events = await self._store.events(limit=200)
        return Snapshot(seq=seq, groups=self.groups(), hosts=self.hosts(), events=events)

    def _on_touched(self, touched: Touched) -> None:
        self._dirty_groups |= touched.groups
        self._dirty_hosts |= touched.hosts
        for group in touched.groups:
            self._dirty_hosts |= {i.host for i in self._store.of_group(group)}
            self._reconciler.hint(group)
        for event in touched.events:
            self.bus.publish("event", event.model_dump(mode="json"))
        self._wake.set()

    async def _publish(self) -> None:
        while True:
            await self._wake.wait()
            await asyncio.sleep(FLUSH_S)
            self._wake.clear()
            groups, self._dirty_groups = self._dirty_groups, set()
            hosts, self._dirty_hosts = self._dirty_hosts, set()
            try:
                for name in sorted(hosts):
                    self._send("host", name, name in self._store.hosts)
                for name in sorted(groups):
                    self._send("group", name, name in self._store.groups)
            except Exception:
                log.exception("a view could not be made")

    def _send(self, kind: str, name: str, there: bool) -> None:
        key = f"{kind}/{name}"
        if not there:
            if self._sent.pop(key, None) is not None:
                self.bus.publish(f"{kind}_gone", {"name": name})
            return
        if kind == "group" and name not in self._reconciler.loops:
            return
        view = self.group(name) if kind == "group" else self.host(name)
        # when a host was last seen is no news by itself
        news = view.model_copy(update={"seen": 0.0}) if isinstance(view, HostView) else view
        if self._sent.get(key) != news:
            self._sent[key] = news
            self.bus.publish(kind, view.model_dump(mode="json"))


def reset(snapshot: Snapshot) -> Change:
    """The change that tells a subscriber to start over from here."""
    return Change(seq=snapshot.seq, kind="snapshot", body=snapshot.model_dump(mode="json"))


def mode_view(mode: Mode) -> ModeView:
    """A mode as pickers and forms show it."""
    return ModeView(
        name=mode.name,
        title=mode.title,
        summary=mode.summary,
        engines=mode.engines,
        vendor=mode.vendor,
        membership=mode.router.membership_update,
        origin=mode.origin,
        rows=router_rows(mode),
        unset=unset_rows(mode),
        notes=mode.notes,
    )


def router_rows(mode: Mode) -> tuple[RouterRow, ...]:
    """What the mode generates for its router, for a form."""
    return tuple(
        RouterRow(
            kind="env" if r.kind == "env" else "tunable" if r.kind == "tunable" else "connection",
            name=r.name,
            text=r.text,
            locked=r.locked,
            note=r.tunable.note if r.tunable else "",
            options=r.tunable.options if r.tunable else (),
        )
        for r in prefilled_rows(mode, "router")
    )


def unset_rows(mode: Mode) -> tuple[RouterRow, ...]:
    """The router's tunables that the mode leaves to the router."""
    return tuple(
        RouterRow(kind="tunable", name=t.flag, text=t.flag, note=t.note, options=t.options)
        for t in mode.router.tunables
        if t.default is None
    )
