"""The shape of the mode catalogue: what `modes/pd-modes.yaml` may say.

Every fact of an engine, a connector or a router is data of these models. They are plain values: a
group keeps the part it was started with (`Catalogue.pin`) as JSON and reads it back unchanged.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from pydantic import ConfigDict, Field, field_validator

from backend.domain.deployment import Spec
from backend.domain.errors import NotFound
from backend.domain.host import Vendor
from backend.domain.inherit import CUSTOM, roles_of
from backend.domain.metrics_recipe import CanaryRecipe, MetricsRecipe, SeriesRecipe
from backend.domain.pairing_recipe import PairingRecipe
from backend.domain.value import Value

Membership = Literal["dynamic", "restart", "manual", "none"]
MemberName = Literal["prefill", "decode"]
Channel = Literal["env", "args", "connector"]
Layout = Literal["standard", "hybrid"]
Scalar = str | int | float
Tokens = tuple[str, ...]


class _Data(Value):
    model_config = ConfigDict(extra="forbid", protected_namespaces=())


class VersionRange(_Data):
    """An advisory range of engine versions (`>=0.27.1`) and where it comes from."""

    range: str
    reason: str = ""

    @field_validator("range")
    @classmethod
    def _is_specifier(cls, text: str) -> str:
        try:
            SpecifierSet(text)
        except InvalidSpecifier as error:
            raise ValueError(f"{text!r} is no version range like >=0.27.1,<1") from error
        return text


class BandRecipe(_Data):
    """A contiguous run of ports one instance needs, and by what it reaches the program."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    width: (
        Annotated[int, Field(ge=1, le=1024)] | Literal["data_parallel_size", "accelerator_count"]
    ) = 1
    channel: Channel


class FileRecipe(_Data):
    """A file written into the instance directory; `{{files.NAME}}` is its path."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    content: str


class PortWindow(_Data):
    """Ports a transport takes by itself: from `first` on, so many for each accelerator."""

    first: Annotated[int, Field(ge=1, le=65535)]
    per_accelerator: Annotated[int, Field(ge=1, le=4096)]
    reason: str = ""


class HostFile(_Data):
    """A file of the host that the engine reads; mounted read-only where there is a container."""

    path: Annotated[str, Field(pattern=r"^/")]
    reason: str = ""


class Lease(_Data):
    """How long prefill keeps KV that nobody fetched, in seconds.

    `value_s` is what we set; null leaves the engine's own default alone.
    """

    knob: str
    channel: Literal["connector", "env"]
    engine_default_s: Annotated[int, Field(gt=0)]
    value_s: Annotated[int, Field(gt=0)] | None = None
    expired_metric: str | None = None


class Attachment(_Data):
    """What one role gets for an extended cache: a child connector, arguments, environment, files.

    A group of `optional_args` is left out while one of its placeholders has no value.
    """

    connector: dict[str, Any] | None = None
    args: Tokens = ()
    optional_args: tuple[Tokens, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    files: tuple[FileRecipe, ...] = ()


class CacheRecipe(_Data):
    """One way to extend the KV cache: the roles that may use it and what each gets."""

    versions: VersionRange | None = None
    roles: dict[MemberName, Attachment]
    excluded_types: Tokens = ()
    ignores: Tokens = ()
    note: str = ""

    def role(self, name: str) -> Attachment | None:
        """What the role of that name gets, or None where it may not use the cache."""
        return next((found for role, found in self.roles.items() if role == name), None)


class CacheComposition(_Data):
    """The mode's extended caches: in the engine's process, and by provider of a service."""

    in_process: CacheRecipe | None = None
    service: dict[str, CacheRecipe] = Field(default_factory=dict)


class RoleRecipe(_Data):
    """What the mode injects into one role's engine."""

    bands: tuple[BandRecipe, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    args: Tokens = ()
    connector: dict[str, Any] | None = None
    host_files: tuple[HostFile, ...] = ()


class Tunable(_Data):
    """A router flag people adjust. `default` is what we pass; null passes nothing.

    `least_members` are values that need so many members of `role`, else the router does not start.
    """

    flag: Annotated[str, Field(pattern=r"^--[a-z][a-z0-9-]*$")]
    default: Scalar | None = None
    options: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    role: MemberName | None = None
    least_members: dict[str, int] = Field(default_factory=dict)
    note: str = ""


class Call(_Data):
    """One HTTP call of a membership API. `gone` are statuses that mean it was already so."""

    method: Literal["GET", "POST", "PUT", "DELETE"]
    path: str
    body: dict[str, Any] | None = None
    body_by_role: dict[MemberName, dict[str, Any]] = Field(default_factory=dict)
    accepted: tuple[int, ...] = (200,)
    gone: tuple[int, ...] = ()


class WorkerFields(_Data):
    """Where a registry row keeps what we read; `roles` maps its words to ours."""

    id: str | None = None
    url: str = "url"
    role: str = "worker_type"
    healthy: str | None = None
    roles: dict[str, str] = Field(
        default_factory=lambda: {"prefill": "prefill", "decode": "decode"}
    )


class WorkerApi(_Data):
    """The dialect of a router's membership API.

    `key` is what a removal is addressed by. An asynchronous API answers before the change shows:
    the registry is read again for at most `settle_s` seconds.
    """

    add: Call
    remove: Call
    read: Call
    rows: str = "workers"
    fields: WorkerFields = WorkerFields()
    key: Literal["url", "id"] = "url"
    asynchronous: bool = False
    settle_s: Annotated[float, Field(gt=0)] = 6.0
    requires_args: Tokens = ()


class RouterRecipe(_Data):
    """How a mode's router is started, told of its peers, and watched.

    `peer_flags` and `owned_flags` are the platform's: a user's row that writes one is refused.
    """

    program: str
    command: Tokens
    args: Tokens = ()
    tunables: tuple[Tunable, ...] = ()
    peers: dict[MemberName, Tokens] = Field(default_factory=dict)
    bands: tuple[BandRecipe, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    membership_update: Literal["dynamic", "restart", "manual"]
    api: WorkerApi | None = None
    health_path: str | None = "/health"
    metrics_band: str | None = None
    metrics_path: str = "/metrics"
    peer_flags: Tokens = ()
    owned_flags: Tokens = ()
    default_policy: str = ""
    prefill_policy: str = ""
    decode_policy: str = ""
    policies: str = ""
    capabilities: Tokens = ()
    default_image: str | None = None
    stop_grace_s: Annotated[float, Field(gt=0)] = 30.0


class Mode(_Data):
    """One recipe: engine + KV connector + router."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]
    title: str
    summary: str = ""
    engines: tuple[str, ...] = ()
    vendor: Vendor | None = None
    transport: str | None = None
    versions: VersionRange | None = None
    preferred: bool = False
    network: Literal["data", "control", "none"] = "none"
    random_ports: PortWindow | None = None
    lease: Lease | None = None
    variants: dict[Layout, str] = Field(default_factory=dict)
    default_variant: Layout | None = None
    roles: dict[MemberName, RoleRecipe] = Field(default_factory=dict)
    cache: CacheComposition | None = None
    kv_load_failure_policy: bool = False
    pairing: PairingRecipe = PairingRecipe()
    metrics: MetricsRecipe | None = None
    canary: CanaryRecipe | None = None
    router: RouterRecipe
    notes: tuple[str, ...] = ()
    origin: str = "built in"

    def role(self, name: str) -> RoleRecipe | None:
        """The recipe of the role of that name, or None."""
        return next((found for role, found in self.roles.items() if role == name), None)

    @property
    def injects(self) -> bool:
        """Whether the mode adds anything of its own; `custom` does not."""
        return self.name != CUSTOM


class ConnectorFlag(_Data):
    """How an engine takes a KV connector: one JSON argument, several folded into `fold`."""

    flag: str
    extra_key: str
    connectors_key: str
    name_key: str
    role_key: str
    fold: dict[MemberName, dict[str, Any]]
    fold_name: str
    lifted: Tokens = ()


class EngineRecipe(_Data):
    """How one engine is launched, whatever the mode.

    `program` is its name in a host's `executables`; `flags` maps each factor that rules compare to
    the spellings the engine takes.
    """

    title: str
    program: str
    command: Tokens = ()
    platform_args: Tokens = ()
    auto_parallel: Tokens = ()
    flags: dict[str, Tokens] = Field(default_factory=dict)
    owned_flags: Tokens = ()
    connector: ConnectorFlag | None = None
    health_path: str | None = None
    health_timeout_s: Annotated[float, Field(gt=0)] = 2.0
    metrics_path: str | None = None
    default_image: str | None = None
    known_versions: Tokens = ()
    stop_grace_s: Annotated[float, Field(gt=0)] = 20.0
    disaggregates: bool = True


class VendorRecipe(_Data):
    """How a process is shown only its own accelerators. `by_uuid` are uuid prefixes that have no
    index of their own (a MIG slice)."""

    visible: str
    env: dict[str, str] = Field(default_factory=dict)
    by_uuid: Tokens = ()


class LayoutFacts(_Data):
    """What in a model's `config.json` tells how its KV cache is laid out (see `layout`)."""

    nested: Tokens = ()
    layer_fields: Tokens = ()
    attention_layers: Tokens = ()
    pattern_field: str = ""
    pattern_letter: str = ""
    recurrent_fields: Tokens = ()
    compressed_fields: Tokens = ()
    hybrid_model_types: Tokens = ()
    hybrid_architectures: Tokens = ()
    expert_fields: Tokens = ()


class Catalogue(_Data):
    """Everything the built-in file and the user's own say."""

    modes: dict[str, Mode]
    engines: dict[str, EngineRecipe]
    vendors: dict[Vendor, VendorRecipe] = Field(default_factory=dict)
    layouts: LayoutFacts = LayoutFacts()
    series: dict[str, SeriesRecipe] = Field(default_factory=dict)

    def mode(self, name: str) -> Mode:
        """The mode of that name. Raises NotFound naming those there are."""
        if name not in self.modes:
            raise NotFound.of(
                "mode.unknown",
                f"There is no mode {name!r}.",
                path="spec.disaggregation.mode",
                remedy="Choose one of: " + ", ".join(self.modes) + ".",
                values={"mode": name, "known": list(self.modes)},
            )
        return self.modes[name]

    def mode_of(self, spec: Spec) -> Mode | None:
        """The deployment's mode, or None without disaggregation. Raises NotFound."""
        return None if spec.disaggregation is None else self.mode(spec.disaggregation.mode)

    def engine(self, name: str) -> EngineRecipe:
        """The engine of that name. Raises NotFound naming those there are."""
        if name not in self.engines:
            raise NotFound.of(
                "structure.engine",
                f"There is no engine {name!r}.",
                path="spec.engine",
                remedy="Choose one of: " + ", ".join(self.engines) + ".",
                values={"engine": name, "known": list(self.engines)},
            )
        return self.engines[name]

    @property
    def host_files(self) -> tuple[str, ...]:
        """Every file of a host that some mode's engines read, for the look at a host."""
        roles = (r for m in self.modes.values() for r in m.roles.values())
        return tuple(sorted({f.path for r in roles for f in r.host_files}))

    def pin(self, spec: Spec) -> Catalogue:
        """Only what launching `spec` needs: what a group keeps for its whole life."""
        mode = self.mode_of(spec)
        used = {spec.engine, *(r.engine for r in roles_of(spec))}
        return Catalogue(
            modes={} if mode is None else {mode.name: mode},
            engines={name: self.engine(name) for name in sorted(used)},
            vendors=self.vendors,
            layouts=self.layouts,
        )


def membership(mode: Mode | None, spec: Spec) -> Membership:
    """How the group's router learns of changes; a router command of the user's own is `manual`."""
    if mode is None or spec.disaggregation is None:
        return "none"
    if spec.roles is not None and spec.roles.router.run_command is not None:
        return "manual"
    return mode.router.membership_update
