"""What the API shows: frozen pictures of groups, members, hosts and events, ready to be drawn."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from backend.domain.access import Role
from backend.domain.instance import Band, State
from backend.domain.telling import Said
from backend.domain.value import Value
from backend.domain.watch_views import AlertView, CanaryView, EffectView

GroupStatus = Literal["Stopped", "Pending", "Partially ready", "Running"]
Level = Literal["info", "warning", "error"]


class MemberView(Value):
    """One instance as shown: `role` is prefill, decode, router or replica; times are epoch seconds.

    `note` is why it is in its state (first line of a diagnosis, a back-off, a refused port);
    `net_device` is the interface its KV traffic goes over, where the mode needs one;
    `next_start` is when a waiting restart is due; `figures` are those of the last half minute, by
    the names of `backend.domain.figures`.
    """

    id: str
    role: str
    host: str
    state: State
    generation: int
    revision: str
    stale: bool = False
    accelerators: tuple[int, ...] = ()
    accelerator_type: str = ""
    address: str = ""
    net_device: str = ""
    port: int = 0
    bands: tuple[Band, ...] = ()
    pid: int = 0
    since: float = 0.0
    next_start: float | None = None
    failures: int = 0
    in_router: bool | None = None
    note: str = ""
    effect: EffectView | None = None
    figures: dict[str, float] = Field(default_factory=dict)


class InstanceView(MemberView):
    """One instance in the list of all, with the group it is of."""

    group: str


class RoleCount(Value):
    """Wanted, ready (not draining) and existing members of one role; `pending` is a stored count
    that waits for the restart."""

    wanted: int
    ready: int
    present: int
    pending: int | None = None


class Mark(Value):
    """Something shown beside the status, never instead of it. `text` is what `said` says in
    English, one sentence after another."""

    id: Literal[
        "config_changed", "unverified", "unreachable_host", "crash_loop", "placement",
        "registration", "membership", "restart_blocked", "ratio", "draining", "effect", "canary",
        "mode_gone",
    ]  # fmt: skip
    text: str
    level: Level = "warning"
    said: tuple[Said, ...] = ()


class EndpointView(Value):
    """The group's registered OpenAI base URL, and a request anyone can paste."""

    url: str
    model: str
    curl: str


class PhaseView(Value):
    """Where a whole-group restart stands: `done` of `total` in this step."""

    name: Literal["drain", "stop router", "stop members", "confirm gone", "start"]
    done: int = 0
    total: int = 0
    blocked_by: str = ""


class GroupView(Value):
    """One group as the list and the panel show it. `version` grows with every saved document."""

    name: str
    mode: str | None
    engine: str
    model: str
    labels: dict[str, str] = Field(default_factory=dict)
    version: int
    etag: str = ""
    revision: str
    status: GroupStatus
    ratio: str = ""
    currently: str = ""
    config_changed: bool = False
    changes: tuple[str, ...] = ()
    phase: PhaseView | None = None
    deleting: bool = False
    paused: bool = False
    membership: Literal["dynamic", "restart", "manual", "none"] = "none"
    roles: dict[str, RoleCount] = Field(default_factory=dict)
    members: tuple[MemberView, ...] = ()
    marks: tuple[Mark, ...] = ()
    endpoint: EndpointView | None = None
    policies: str = ""
    since: float = 0.0
    effect: EffectView | None = None
    canary: CanaryView | None = None
    alerts: tuple[AlertView, ...] = ()


class AcceleratorView(Value):
    """One accelerator and who holds it (an instance id, another owner's, or nobody)."""

    index: int
    type: str
    memory_mib: int = 0
    held_by: str = ""


class HostView(Value):
    """One host as shown. `state` is `unknown` until it was looked at once."""

    name: str
    etag: str = ""
    address: str
    port: int
    user: str = ""
    runtime: str
    state: Literal["unknown", "up", "unreachable", "key_unknown", "key_changed", "denied"]
    note: str = ""
    accelerators: tuple[AcceleratorView, ...] = ()
    port_range: tuple[int, int]
    ports_used: int = 0
    labels: dict[str, str] = Field(default_factory=dict)
    seen: float = 0.0


class SshAlias(Value):
    """A host that the ssh configuration names: `name` is what its inventory entry would be called,
    the rest is where the configuration leads. `entry` is the inventory's entry that already leads
    there; `note` says why the alias cannot be used."""

    alias: str
    name: str
    hostname: str = ""
    port: int = 22
    user: str = ""
    jump: str = ""
    identity_files: tuple[str, ...] = ()
    entry: str = ""
    note: str = ""


class EventView(Value):
    """One line of history: what happened to what, when, by whom (`system` or a user). `message` is
    what `said` says in English; lines of earlier versions have nothing but their message."""

    seq: int
    at: float
    kind: str
    level: Level = "info"
    group: str = ""
    instance: str = ""
    host: str = ""
    actor: str = "system"
    message: str
    said: Said | None = None


class RouterRow(Value):
    """One row that a mode would generate for its router, as `backend.domain.rows.Row` has it.

    `text` is a flag with its value, or the value of the variable `name`. `locked` rows are the
    platform's. `options` are the values a flag takes, where they are few.
    """

    kind: Literal["connection", "tunable", "env"]
    name: str
    text: str
    locked: bool = False
    note: str = ""
    options: tuple[str, ...] = ()


class ModeView(Value):
    """One mode of the catalogue, as pickers show it.

    `rows` are what it would generate for the router; `unset` the router's other tunables, which
    are passed only when somebody sets them.
    """

    name: str
    title: str
    summary: str
    engines: tuple[str, ...]
    vendor: str | None = None
    membership: str
    origin: str = "built in"
    rows: tuple[RouterRow, ...] = ()
    unset: tuple[RouterRow, ...] = ()
    notes: tuple[str, ...] = ()


class ModeChoice(Value):
    """One mode as a picker shows it: `why_not` is empty for an eligible one; `warnings` are what
    the deployment's versions are worth saying of in this mode."""

    mode: str
    title: str
    why_not: str = ""
    recommended: bool = False
    warnings: tuple[str, ...] = ()
    membership: str = ""


class CacheView(Value):
    """One cache service, and the deployments that attach to it."""

    name: str
    etag: str = ""
    provider: str
    endpoint: str = ""
    settings: dict[str, Any] = Field(default_factory=dict)
    used_by: tuple[str, ...] = ()


class CacheChoice(Value):
    """One cache service as a picker shows it; `why_not` is empty where it may be used."""

    name: str
    provider: str
    why_not: str = ""


class RenderedView(Value):
    """What one instance of a role would be started with, on an example of a place: `command` is
    one line for a POSIX shell. Values that look like secrets are hidden."""

    role: str
    host: str
    image: str = ""
    argv: tuple[str, ...]
    env: dict[str, str] = Field(default_factory=dict)
    command: str
    bands: tuple[Band, ...] = ()
    files: tuple[str, ...] = ()


class ScaleResult(Value):
    """What a scale request did: the stored counts, and whether they wait for a restart."""

    group: str
    wanted: dict[str, int]
    pending: bool = False
    message: str = ""


class Health(Value):
    """Who answers: `role` is what the asker may do; `degraded` tells in `note` what does not work
    now."""

    status: Literal["ok", "degraded"] = "ok"
    note: str = ""
    role: Role = "admin"
    version: str
    api: str
    pid: int
    state_dir: str
    embedded: bool
    read_only: bool = False
    hosts: int = 0
    groups: int = 0


class LogChunk(Value):
    """A piece of an instance's log: `offset` is the byte position after it, for the next call."""

    instance: str
    generation: int
    text: str
    offset: int
    truncated: bool = False


class Snapshot(Value):
    """Everything a console needs to start; `seq` is where the event stream goes on from."""

    seq: int
    groups: tuple[GroupView, ...] = ()
    hosts: tuple[HostView, ...] = ()
    events: tuple[EventView, ...] = ()


class VersionView(Value):
    """One saved document of a deployment: its version, when (epoch seconds) and by whom."""

    version: int
    at: float
    actor: str
    document: dict[str, Any]


class Deletion(Value):
    """What taking an instance out means for its group: sentences, the gravest first, in English
    and as they are told."""

    instance: str
    warnings: tuple[str, ...] = ()
    said: tuple[Said, ...] = ()


class AdoptableView(Value):
    """Instances of one owner and group that lie on hosts and are in no row of this store."""

    owner: str
    group: str = ""
    instances: tuple[str, ...] = ()
    living: int = 0
    hosts: tuple[str, ...] = ()


class AdoptionResult(Value):
    """What was taken over, and which instances have no place in a group and are ended."""

    groups: tuple[str, ...] = ()
    instances: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()


class Difference(Value):
    """What changed between two saved documents, a line each."""

    group: str
    older: int
    newer: int
    changes: tuple[str, ...] = ()


class EndpointRow(Value):
    """A group's OpenAI base URL and served model name; both empty while none is registered."""

    group: str
    url: str = ""
    model: str = ""
    status: GroupStatus


class Change(Value):
    """One message of the event stream: a replaced or removed object, or a history line.

    A `snapshot` replaces everything: the stream could not be resumed where it broke off.
    """

    seq: int
    kind: Literal["group", "group_gone", "host", "host_gone", "event", "snapshot"]
    body: dict[str, Any]
