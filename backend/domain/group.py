"""What is stored of a group: the saved document, what it was formed from, and its instances."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from backend.domain.caches import CacheDocument
from backend.domain.deployment import Deployment
from backend.domain.instance import Band, LaunchSpec, ProcessStatus, State, http_url
from backend.domain.layout import Chosen
from backend.domain.value import Value


class PeerRecord(Value):
    """One member as a router was started with it; two snapshots differ when any field does."""

    instance: str
    generation: int
    role: str
    address: str
    port: int
    bands: tuple[Band, ...] = ()

    @property
    def url(self) -> str:
        """Base URL of the member."""
        return http_url(self.address, self.port)


class Instance(Value):
    """One instance as stored. `launch` is null for a router until its peers are known.

    `failures` counts starts in a row that ended before serving; `served` is the last generation
    whose health path answered us, 0 when none did; times are epoch seconds. `net_device` is the
    interface for KV traffic, where the mode needs one. `haunted` are hosts and ports of members
    that ended before this router was seen to have forgotten them: it may still send there, so that
    nobody else may have them.
    """

    id: str
    group: str
    role: str
    host: str
    revision: str
    generation: int = 1
    state: State = "pending"
    launch: LaunchSpec | None = None
    accelerators: tuple[int, ...] = ()
    accelerator_type: str = ""
    address: str = ""
    net_device: str = ""
    bands: tuple[Band, ...] = ()
    snapshot: tuple[PeerRecord, ...] | None = None
    haunted: tuple[tuple[str, int], ...] = ()
    process: ProcessStatus | None = None
    served: int = 0
    failures: int = 0
    next_start: float | None = None
    draining_since: float | None = None
    removing: bool = False
    since: float = 0.0
    note: str = ""

    @property
    def port(self) -> int:
        """The HTTP port."""
        for band in self.bands:  # asked for every row of a list: a generator costs four times this
            if band.name == "http":
                return band.base
        return 0

    @property
    def ports(self) -> tuple[int, ...]:
        """Every port it holds."""
        return tuple(p for b in self.bands for p in b.ports)

    @property
    def url(self) -> str:
        """Base URL of its HTTP server."""
        return http_url(self.address, self.port)

    @property
    def leaving(self) -> bool:
        """Whether it is on its way out: draining, stopping, or marked for removal."""
        return self.removing or self.state in ("draining", "stopping")

    def record(self) -> PeerRecord:
        """The instance as a router's peer."""
        return PeerRecord(
            instance=self.id,
            generation=self.generation,
            role=self.role,
            address=self.address,
            port=self.port,
            bands=tuple(b for b in self.bands if b.name != "http"),
        )


class Endpoint(Value):
    """A registered endpoint: where the group answers, and through which router start."""

    url: str
    router: str
    generation: int


class Formed(Value):
    """What the running group was formed from: its revision, document and pinned recipe.

    `recipe` is the resolved mode and engine recipes as data, so that an upgraded catalogue never
    changes how a running group's next member is launched; `services` are the cache services its
    members attach to, kept for the same reason.
    """

    revision: str
    document: Deployment
    recipe: dict[str, Any] = Field(default_factory=dict)
    services: dict[str, CacheDocument] = Field(default_factory=dict)


class Restart(Value):
    """A whole-group restart under way."""

    since: float
    force: bool = False
    step: Literal["stop router", "stop members", "start"] = "stop router"
    total: int = 0


class Group(Value):
    """The desired side of one deployment, as stored.

    `version` grows with each save. `applied` are the member counts in force: the document's, or,
    while the configuration is changed, the smaller of those in force and the document's.
    `unverified` are the saved document's doubts, each a sentence that says what would settle it.
    `connector` is the connector variant that was chosen for the model, in modes that have several.
    `router_home` keeps host and ports of the router, so that the endpoint stays where it is.
    """

    name: str
    version: int
    document: Deployment
    revision: str
    formed: Formed | None = None
    applied: dict[str, int] = Field(default_factory=dict)
    connector: Chosen | None = None
    restart: Restart | None = None
    deleting: bool = False
    endpoint: Endpoint | None = None
    router_home: tuple[str, tuple[Band, ...]] | None = None
    placement_note: str = ""
    unverified: tuple[str, ...] = ()
    since: float = 0.0

    @property
    def stale(self) -> bool:
        """Whether the running group is not what the document says (shown as Config changed)."""
        return self.formed is not None and self.formed.revision != self.revision
