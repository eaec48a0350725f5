"""What a console may ask of a backend: one class, answered over HTTP or by a script.

Every call raises a leaf of `backend.domain.errors.PdError` when it fails, and nothing else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from backend.client.door import ANY
from backend.domain.advice.model import Advice
from backend.domain.diagnosis.model import Diagnosis, GroupDiagnosis
from backend.domain.doctor import Finding
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


class BackendClient(ABC):
    """The console's only door to a backend.

    `connected` is true while the event stream is open; `on_connection` is called with its new
    value on every change.
    """

    connected: bool = False
    on_connection: Callable[[bool], None] | None = None

    @abstractmethod
    async def health(self) -> Health:
        """Who answers, and whether it lives in this process (`embedded`)."""

    @abstractmethod
    async def snapshot(self) -> Snapshot:
        """Everything there is now, and the event number to go on from."""

    @abstractmethod
    def changes(self, since: int) -> AsyncIterator[Change]:
        """Every change after event `since`, for ever.

        Reconnects and resumes by itself; a broken connection shows in `connected` only.
        """

    @abstractmethod
    async def deployment(self, name: str) -> dict[str, Any]:
        """The stored document of a deployment."""

    @abstractmethod
    async def deployment_at(self, name: str) -> tuple[dict[str, Any], str]:
        """The stored document, and its entity tag: what a change of it is based on."""

    @abstractmethod
    async def apply(
        self, document: dict[str, Any], *, dry_run: bool = False, etag: str | None = None
    ) -> GroupView:
        """Save a document; `dry_run` judges it and stores nothing. `etag` is what it was made from,
        empty for a new one, None to replace what is there now. Raises Changed."""

    @abstractmethod
    async def check(self, document: dict[str, Any], *, every: bool = False) -> dict[str, Any]:
        """Every finding about a document: `{"verdicts": [...], "skipped": [...]}`; nothing is
        stored. Raises Invalid for what is no document."""

    @abstractmethod
    async def render(self, document: dict[str, Any]) -> tuple[RenderedView, ...]:
        """What one instance of each role would be started with; nothing is placed or stored."""

    @abstractmethod
    async def history(self, name: str) -> tuple[VersionView, ...]:
        """Every saved document of a deployment, newest first."""

    @abstractmethod
    async def scale(self, name: str, counts: dict[str, int], *, etag: str = ANY) -> ScaleResult:
        """Set the wanted members of roles; `etag` is what was seen, `*` for whatever is there.

        Raises Conflict `life.stale` when stored as pending, Changed."""

    @abstractmethod
    async def restart(self, name: str, *, force: bool = False, etag: str = ANY) -> GroupView:
        """Stop the whole group and form it anew; `force` fences hosts that do not answer."""

    @abstractmethod
    async def delete(self, name: str, *, force: bool = False, etag: str = ANY) -> None:
        """Stop the group and forget the deployment; `force` passes hosts that do not answer."""

    @abstractmethod
    async def delete_instance(
        self,
        name: str,
        instance: str,
        *,
        dry_run: bool = False,
        force: bool = False,
        etag: str = ANY,
    ) -> Deletion:
        """Remove one member; the group makes a new one in its place. Says what that means."""

    @abstractmethod
    async def told(self, name: str, *, etag: str = ANY) -> GroupView:
        """The operator has told a router that is kept up by hand of its members.

        Raises Conflict `life.not_manual` for a group that keeps its router up itself."""

    @abstractmethod
    async def pause(
        self, name: str, paused: bool, *, force: bool = False, etag: str = ANY
    ) -> GroupView:
        """Stop every member and keep the document, or start them again."""

    @abstractmethod
    async def log(
        self,
        instance: str,
        *,
        generation: int | None = None,
        offset: int | None = None,
        tail_bytes: int = 65536,
    ) -> LogChunk:
        """A piece of an instance's log: from byte `offset`, or the last `tail_bytes`."""

    @abstractmethod
    async def advise(self, **asked: Any) -> Advice:
        """Advice on a deployment by `name`, or on a `document`; with what is known better."""

    @abstractmethod
    async def diagnose_group(self, name: str) -> GroupDiagnosis:
        """All logs of a group, read together."""

    @abstractmethod
    async def diagnose_instance(self, instance: str, generation: int | None = None) -> Diagnosis:
        """One instance's log in the light of its peers', or that of an earlier attempt."""

    @abstractmethod
    async def events(self, group: str | None = None, limit: int = 200) -> tuple[EventView, ...]:
        """The newest `limit` events, oldest first; of one group, or of all."""

    @abstractmethod
    async def modes(self) -> tuple[ModeView, ...]:
        """The catalogue's modes."""

    @abstractmethod
    async def hosts(self) -> tuple[HostView, ...]:
        """The inventory as last seen."""

    @abstractmethod
    async def accept_host_key(self, name: str, fingerprint: str) -> HostView:
        """Trust the shown key of a host from now on."""

    @abstractmethod
    async def add_host(self, document: dict[str, Any], *, etag: str | None = None) -> HostView:
        """Add or replace an inventory entry; `etag` as with `apply`."""

    @abstractmethod
    async def host_entry_at(self, name: str) -> tuple[dict[str, Any], str]:
        """An inventory entry as it was written, and its entity tag."""

    @abstractmethod
    async def ssh_aliases(self, patterns: Sequence[str] = ()) -> tuple[SshAlias, ...]:
        """Hosts that the backend's user's ssh configuration names."""

    @abstractmethod
    async def doctor(
        self, hosts: Sequence[str] = (), deployment: str | None = None
    ) -> tuple[Finding, ...]:
        """Examine hosts (all when none is named), with what a deployment needs of them."""

    @abstractmethod
    async def host_ports(self, name: str) -> PortMap:
        """A host's ports, looked at now. Raises what the host met."""

    @abstractmethod
    async def unlock(self, identity: str, passphrase: str) -> str:
        """Unlock an identity file for the backend's life; its fingerprint."""

    @abstractmethod
    async def delete_host(self, name: str, *, force: bool = False, etag: str = ANY) -> None:
        """Remove an inventory entry that no instance uses; with `force` one that does not answer,
        giving up what is on it."""

    @abstractmethod
    async def fence_host(self, name: str, *, etag: str = ANY) -> HostView:
        """Give up all that is on a host that does not answer; it is placed elsewhere.

        Raises Conflict `host.answers` while it does."""

    @abstractmethod
    async def test_host(self, name: str) -> HostView:
        """Connect and look now. Raises HostKeyUnknown with the fingerprint, and its siblings."""

    @abstractmethod
    async def metrics(self, group: str, *, window: float = 900, points: int = 120) -> GroupMetrics:
        """The figures of a group's instances over the last `window` seconds."""

    @abstractmethod
    async def canary(self, group: str) -> CanaryView:
        """Try every pair of a group now, and wait for all of them."""

    @abstractmethod
    async def caches(self) -> tuple[CacheView, ...]:
        """All cache services."""

    @abstractmethod
    async def cache_document(self, name: str) -> dict[str, Any]:
        """The saved document of a cache service."""

    @abstractmethod
    async def cache_choices(
        self, mode: str | None = None, role: str | None = None
    ) -> tuple[CacheChoice, ...]:
        """Every cache service, and why a role in a mode may not use it."""

    @abstractmethod
    async def apply_cache(self, document: dict[str, Any], *, etag: str | None = None) -> CacheView:
        """Save a cache service; `etag` as with `apply`."""

    @abstractmethod
    async def delete_cache(self, name: str, *, etag: str = ANY) -> None:
        """Forget a cache service that no deployment uses."""

    @abstractmethod
    async def mode_choices(
        self, document: dict[str, Any] | None = None, **about: str
    ) -> tuple[ModeChoice, ...]:
        """Which modes a deployment may take: of a document, or of `engine=` and `vendor=`."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close the connection; an embedded backend is stopped with it, the groups go on."""
