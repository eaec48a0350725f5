"""The deployment document: the same in files, API and store."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, field_validator

from backend.domain.references import ENV_NAME, EnvText
from backend.domain.value import Value

NAME = re.compile(r"^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$")

Engine = Literal["vllm", "sglang", "vllm-ascend", "custom"]
Replicas = Annotated[int, Field(ge=1, le=512)]
Argv = list[str]


class _Strict(Value):
    model_config = ConfigDict(extra="forbid", protected_namespaces=())


class HostSelector(_Strict):
    """Which hosts may be used: all whose labels match, or those named. Both: both must hold."""

    names: list[str] | None = None
    labels: dict[str, str] | None = None


class Pin(_Strict):
    """One replica's fixed place."""

    host: str
    accelerators: list[Annotated[int, Field(ge=0)]] | None = None


class KvCache(_Strict):
    """Extended KV cache of a role: none, in the engine's process, or a named cache service."""

    kind: Literal["none", "in_process", "service"] = "none"
    service: str | None = None
    ram_size_gib: Annotated[float, Field(gt=0)] | None = None
    ram_ratio: Annotated[float, Field(gt=0)] | None = None
    chunk_size: Annotated[int, Field(gt=0)] | None = None


class Schedule(_Strict):
    """One scheduled replica count of a plain deployment (cron expression -> replicas)."""

    cron: str
    replicas: Annotated[int, Field(ge=0)]


class Overridable(_Strict):
    """What a role may set for itself: null inherits, anything else replaces whole."""

    engine: Engine | None = None
    engine_version: str | None = None
    image: str | None = None
    executable: str | None = None
    run_command: Argv | None = None
    parameters: Argv | None = None
    env: dict[str, EnvText] | None = None
    accelerators: Annotated[int, Field(ge=0, le=1024)] | None = None
    hosts: HostSelector | None = None
    placement: list[Pin] | None = None
    extended_kv_cache: KvCache | None = None

    @field_validator("env")
    @classmethod
    def _env_names(cls, value: dict[str, str] | None) -> dict[str, str] | None:
        for name in value or {}:
            if not ENV_NAME.match(name):
                raise ValueError(f"{name!r} is no environment variable name")
        return value


class MemberRole(Overridable):
    """The prefill or decode role."""

    replicas: Replicas = 1


class RouterRole(_Strict):
    """The router: exactly one replica, so there is no count to set."""

    image: str | None = None
    executable: str | None = None
    run_command: Argv | None = None
    parameters: Argv | None = None
    env: dict[str, EnvText] | None = None
    hosts: HostSelector | None = None
    placement: list[Pin] | None = None
    port: Annotated[int, Field(ge=1, le=65535)] | None = None


class Roles(_Strict):
    """The roles of a disaggregated deployment; nothing but these three."""

    prefill: MemberRole = Field(default_factory=MemberRole)
    decode: MemberRole = Field(default_factory=MemberRole)
    router: RouterRole = Field(default_factory=RouterRole)


class ConnectorExtra(_Strict):
    """Keys merged into the rendered KV connector's extra config, per role."""

    prefill: dict[str, Any] = Field(default_factory=dict)
    decode: dict[str, Any] = Field(default_factory=dict)


class Disaggregation(_Strict):
    """The PD recipe and its settings; `allow` names overridable rules let through on purpose.

    `canary` false: the group is tried only when somebody asks for it.
    """

    mode: str
    kv_load_failure_policy: Literal["fail", "recompute"] = "fail"
    connector_extra: ConnectorExtra = Field(default_factory=ConnectorExtra)
    allow: list[str] = Field(default_factory=list)
    canary: bool = True


class Spec(_Strict):
    """What is to run. Everything but `model` and `engine` has a default."""

    model: Annotated[str, Field(min_length=1)]
    served_model_name: str | None = None
    engine: Engine
    engine_version: str | None = None
    image: str | None = None
    executable: str | None = None
    run_command: Argv | None = None
    parameters: Argv = Field(default_factory=list)
    env: dict[str, EnvText] = Field(default_factory=dict)
    accelerators: Annotated[int, Field(ge=0, le=1024)] = 1
    hosts: HostSelector | None = None
    placement: list[Pin] | None = None
    extended_kv_cache: KvCache = Field(default_factory=KvCache)
    disaggregation: Disaggregation | None = None
    roles: Roles | None = None
    replicas: Replicas | None = None
    scaling_schedule: list[Schedule] | None = None
    paused: bool = False

    @field_validator("env")
    @classmethod
    def _env_names(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            if not ENV_NAME.match(name):
                raise ValueError(f"{name!r} is no environment variable name")
        return value

    def environments(self) -> list[dict[str, str]]:
        """Every environment that is set somewhere in it."""
        roles = self.roles or Roles()
        found = (self.env, roles.prefill.env, roles.decode.env, roles.router.env)
        return [e for e in found if e]


class Metadata(_Strict):
    """Name and labels of a document."""

    name: str
    labels: dict[str, str] = Field(default_factory=dict)

    @field_validator("name")
    @classmethod
    def _name_is_plain(cls, value: str) -> str:
        if not NAME.match(value):
            raise ValueError(
                f"{value!r} must be 1 to 40 lower-case letters, digits and dashes, "
                "starting and ending with a letter or digit"
            )
        return value


class Deployment(Value):
    """The document a user saves."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    api_version: Annotated[Literal["pdtui/v1"], Field(alias="apiVersion")] = "pdtui/v1"
    kind: Literal["Deployment"] = "Deployment"
    metadata: Metadata
    spec: Spec

    @property
    def name(self) -> str:
        """The document's name."""
        return self.metadata.name

    def document(self) -> dict[str, Any]:
        """The document as plain data, defaults left out, as a file holds it."""
        body = self.model_dump(by_alias=True, exclude_defaults=True, mode="json")
        return {"apiVersion": self.api_version, "kind": self.kind, **body}
