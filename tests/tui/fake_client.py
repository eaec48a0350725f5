"""A BackendClient in memory: a scripted snapshot, changes pushed by the test, calls recorded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from pydantic import BaseModel

from backend.client.base import BackendClient
from backend.domain.advice.model import Advice
from backend.domain.diagnosis.model import Diagnosis, GroupDiagnosis
from backend.domain.diagnosis.pair import first_causes
from backend.domain.diagnosis.scan import diagnose
from backend.domain.doctor import Finding
from backend.domain.errors import NotFound, PdError, Problem
from backend.domain.portmap import PortMap
from backend.domain.views import (
    CacheChoice,
    CacheView,
    Change,
    Deletion,
    EventView,
    GroupView,
    Health,
    HostView,
    LogChunk,
    ModeChoice,
    ModeView,
    RenderedView,
    ScaleResult,
    Snapshot,
    SshAlias,
    VersionView,
)
from backend.domain.watch_views import CanaryView, GroupMetrics


class FakeClient(BackendClient):
    """Answers from what it was given; `calls` lists every changing call in order.

    `errors` maps a method's name to an error it raises once. `on_call` may play a story.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        *,
        embedded: bool = False,
        read_only: bool = False,
        documents: dict[str, dict[str, Any]] | None = None,
        logs: dict[tuple[str, int], str] | None = None,
    ) -> None:
        self.connected = True
        self.calls: list[tuple[Any, ...]] = []
        self.errors: dict[str, PdError | Exception] = {}
        self.on_call: Callable[[tuple[Any, ...]], None] | None = None
        self.logs = dict(logs or {})
        self.closed = False
        self.known_modes: tuple[ModeView, ...] = ()
        self.known_caches: dict[str, CacheView] = {}
        self.renderer: Callable[[dict[str, Any]], tuple[RenderedView, ...]] | None = None
        self.rendered: list[dict[str, Any]] = []
        self.fitting: tuple[ModeChoice, ...] = ()
        self.choices: tuple[CacheChoice, ...] = ()
        self.advice: Advice | None = None
        self.versions: tuple[VersionView, ...] = ()
        self.findings: tuple[Finding, ...] = ()
        self.figures: dict[str, GroupMetrics] = {}
        self.tried = CanaryView(at=0.0)
        self.ports: dict[str, PortMap] = {}
        self.judge: Callable[[dict[str, Any]], Sequence[Problem]] | None = None
        self.checked: list[dict[str, Any]] = []
        self._groups = {g.name: g for g in snapshot.groups}
        self._hosts = {h.name: h for h in snapshot.hosts}
        self._events = list(snapshot.events)
        self._documents = documents or {}
        self._seq = snapshot.seq
        self._queue: asyncio.Queue[Change] = asyncio.Queue()
        self._health = Health(
            version="0.1.0",
            api="1",
            pid=4242,
            state_dir="/home/op/.local/state/pdtui",
            embedded=embedded,
            read_only=read_only,
            hosts=len(self._hosts),
            groups=len(self._groups),
        )

    # what a test does

    def put(self, view: GroupView | HostView | EventView) -> None:
        """Change or add an object and tell the console."""
        match view:
            case GroupView():
                self._groups[view.name] = view
                self._push("group", view)
            case HostView():
                self._hosts[view.name] = view
                self._push("host", view)
            case EventView():
                self._events.append(view)
                self._push("event", view)

    def drop_group(self, name: str) -> None:
        """A group is gone."""
        self._groups.pop(name, None)
        self._seq += 1
        self._queue.put_nowait(Change(seq=self._seq, kind="group_gone", body={"name": name}))

    def connection(self, up: bool) -> None:
        """The event stream breaks or comes back."""
        self.connected = up
        if self.on_connection:
            self.on_connection(up)

    def group(self, name: str) -> GroupView:
        """A group as it stands."""
        return self._groups[name]

    @property
    def idle(self) -> bool:
        """Whether every change was taken."""
        return self._queue.empty()

    def _push(self, kind: Any, view: BaseModel) -> None:
        self._seq += 1
        change = Change(seq=self._seq, kind=kind, body=view.model_dump(mode="json"))
        self._queue.put_nowait(change)

    def _did(self, *call: Any) -> None:
        self.calls.append(call)
        if error := self.errors.pop(call[0], None):
            raise error
        if self.on_call:
            self.on_call(call)

    # BackendClient

    async def health(self) -> Health:
        if error := self.errors.pop("health", None):
            raise error
        return self._health

    async def snapshot(self) -> Snapshot:
        return Snapshot(
            seq=self._seq,
            groups=tuple(self._groups.values()),
            hosts=tuple(self._hosts.values()),
            events=tuple(self._events),
        )

    async def changes(self, since: int) -> AsyncIterator[Change]:
        while True:
            yield await self._queue.get()

    async def deployment(self, name: str) -> dict[str, Any]:
        if name not in self._documents:
            raise NotFound.of("deployment.unknown", f"There is no deployment {name}.")
        return self._documents[name]

    async def deployment_at(self, name: str) -> tuple[dict[str, Any], str]:
        return await self.deployment(name), self._groups[name].etag

    async def apply(
        self, document: dict[str, Any], *, dry_run: bool = False, etag: str | None = None
    ) -> GroupView:
        self._did("apply", document, dry_run)
        name = document["metadata"]["name"]
        if name not in self._groups:
            from tests.tui.factories import running

            self._groups[name] = running(name, version=1)
        return self._groups[name]

    async def check(self, document: dict[str, Any], *, every: bool = False) -> dict[str, Any]:
        if error := self.errors.pop("check", None):
            raise error
        self.checked.append(document)
        found = self.judge(document) if self.judge else []
        return {"verdicts": [p.model_dump(mode="json") for p in found], "skipped": []}

    async def render(self, document: dict[str, Any]) -> tuple[RenderedView, ...]:
        if error := self.errors.pop("render", None):
            raise error
        self.rendered.append(document)
        return self.renderer(document) if self.renderer else ()

    async def history(self, name: str) -> tuple[VersionView, ...]:
        return self.versions

    async def scale(self, name: str, counts: dict[str, int], *, etag: str = "*") -> ScaleResult:
        self._did("scale", name, counts)
        return ScaleResult(group=name, wanted=counts)

    async def restart(self, name: str, *, force: bool = False, etag: str = "*") -> GroupView:
        self._did("restart", name, force)
        return self._groups[name]

    async def delete(self, name: str, *, force: bool = False, etag: str = "*") -> None:
        self._did("delete", name, *([force] if force else []))

    async def delete_instance(
        self,
        name: str,
        instance: str,
        *,
        dry_run: bool = False,
        force: bool = False,
        etag: str = "*",
    ) -> Deletion:
        self._did("delete_instance", name, instance, *([force] if force else []))
        return Deletion(instance=instance)

    async def told(self, name: str, *, etag: str = "*") -> GroupView:
        self._did("told", name)
        return self._groups[name]

    async def fence_host(self, name: str, *, etag: str = "*") -> HostView:
        self._did("fence_host", name)
        return self._hosts[name]

    async def pause(
        self, name: str, paused: bool, *, force: bool = False, etag: str = "*"
    ) -> GroupView:
        self._did("pause", name, paused)
        return self._groups[name]

    async def log(
        self,
        instance: str,
        *,
        generation: int | None = None,
        offset: int | None = None,
        tail_bytes: int = 65536,
    ) -> LogChunk:
        newest = max((g for i, g in self.logs if i == instance), default=0)
        wanted = generation or newest
        if (instance, wanted) not in self.logs:
            raise NotFound.of("log.none", f"{instance} has no log of generation {wanted}.")
        text = self.logs[instance, wanted]
        start = offset if offset is not None else max(0, len(text) - tail_bytes)
        return LogChunk(
            instance=instance,
            generation=wanted,
            text=text[start:],
            offset=len(text),
            truncated=offset is None and start > 0,
        )

    async def advise(self, **asked: Any) -> Advice:
        self.calls.append(("advise", asked))
        assert self.advice is not None
        return self.advice

    async def diagnose_group(self, name: str) -> GroupDiagnosis:
        members = tuple([await self.diagnose_instance(m.id) for m in self._groups[name].members])
        causes = tuple(instance for instance, _ in first_causes(members))
        return GroupDiagnosis(group=name, causes=causes, members=members)

    async def diagnose_instance(self, instance: str, generation: int | None = None) -> Diagnosis:
        there = [g for i, g in self.logs if i == instance]
        if not there:
            return Diagnosis(name=instance, unread=f"{instance} has no log.")
        number = generation or max(there)
        return diagnose(self.logs[instance, number], name=instance, generation=number, ended=True)

    async def events(self, group: str | None = None, limit: int = 200) -> tuple[EventView, ...]:
        found = [e for e in self._events if group in (None, e.group)]
        return tuple(found[-limit:])

    async def modes(self) -> tuple[ModeView, ...]:
        return self.known_modes

    async def hosts(self) -> tuple[HostView, ...]:
        return tuple(self._hosts.values())

    async def accept_host_key(self, name: str, fingerprint: str) -> HostView:
        self._did("accept_host_key", name, fingerprint)
        self.put(self._hosts[name].model_copy(update={"state": "up", "note": ""}))
        return self._hosts[name]

    async def add_host(self, document: dict[str, Any], *, etag: str | None = None) -> HostView:
        self._did("add_host", document)
        return self._hosts[document["name"]]

    async def host_entry_at(self, name: str) -> tuple[dict[str, Any], str]:
        return await self.host_entry(name), self._hosts[name].etag

    async def host_entry(self, name: str) -> dict[str, Any]:
        host = self._hosts[name]
        return {"name": name, "address": host.address, "port": host.port}

    async def ssh_aliases(self, patterns: Sequence[str] = ()) -> tuple[SshAlias, ...]:
        return ()

    async def doctor(
        self, hosts: Sequence[str] = (), deployment: str | None = None
    ) -> tuple[Finding, ...]:
        self._did("doctor", *hosts, *([deployment] if deployment else []))
        return tuple(f for f in self.findings if not hosts or f.host in hosts)

    async def host_ports(self, name: str) -> PortMap:
        self._did("ports", name)
        return self.ports[name]

    async def unlock(self, identity: str, passphrase: str) -> str:
        self._did("unlock", identity)
        return "SHA256:unlocked"

    async def metrics(self, group: str, *, window: float = 900, points: int = 120) -> GroupMetrics:
        return self.figures.get(group, GroupMetrics(group=group, every_s=5))

    async def canary(self, group: str) -> CanaryView:
        self._did("canary", group)
        return self.tried

    async def caches(self) -> tuple[CacheView, ...]:
        return tuple(self.known_caches.values())

    async def cache_document(self, name: str) -> dict[str, Any]:
        cache = self.known_caches[name]
        return {
            "apiVersion": "pdtui/v1",
            "kind": "CacheService",
            "metadata": {"name": name},
            "spec": {
                "provider": cache.provider,
                "endpoint": cache.endpoint,
                "settings": cache.settings,
            },
        }

    async def cache_choices(
        self, mode: str | None = None, role: str | None = None
    ) -> tuple[CacheChoice, ...]:
        return self.choices

    async def apply_cache(self, document: dict[str, Any], *, etag: str | None = None) -> CacheView:
        self._did("apply_cache", document)
        name, spec = document["metadata"]["name"], document["spec"]
        old = self.known_caches.get(name)
        made = CacheView(
            name=name,
            provider=spec["provider"],
            endpoint=spec.get("endpoint", ""),
            settings=spec.get("settings", {}),
            used_by=old.used_by if old else (),
        )
        self.known_caches[name] = made
        return made

    async def delete_cache(self, name: str, *, etag: str = "*") -> None:
        self._did("delete_cache", name)
        self.known_caches.pop(name, None)

    async def mode_choices(
        self, document: dict[str, Any] | None = None, **about: str
    ) -> tuple[ModeChoice, ...]:
        return self.fitting

    async def delete_host(self, name: str, *, etag: str = "*") -> None:
        self._did("delete_host", name)

    async def test_host(self, name: str) -> HostView:
        self._did("test_host", name)
        return self._hosts[name]

    async def aclose(self) -> None:
        self.closed = True
