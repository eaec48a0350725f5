"""The cache service document: `kind: CacheService`, and who may attach to one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError, field_validator

from backend.domain.bands import resolve
from backend.domain.cache import CacheService
from backend.domain.deployment import Deployment, HostSelector, Metadata
from backend.domain.documents import explain
from backend.domain.errors import Invalid
from backend.domain.inherit import roles_of
from backend.domain.mode import Mode
from backend.domain.value import Value

Provider = Literal["lmcache", "mooncake", "meshfusion"]
OWN = frozenset({"name", "host", "port"})
"""Placeholders that the endpoint and the name give, and no setting may."""

_ENDPOINT = re.compile(r"^(?P<host>\[[0-9A-Fa-f:]+\]|[A-Za-z0-9._-]*):(?P<port>\d{1,5})$")


class CacheSpec(Value):
    """What a cache service is and where it answers.

    `endpoint` is `HOST:PORT`; without a host it is every member's own host, for services that run
    beside the engines. `settings` are placeholders of the provider's recipe (`extra`, `args`,
    `config_path`). `hosts` are those whose members can reach it; null is all.
    """

    model_config = ConfigDict(extra="forbid")

    provider: Provider
    endpoint: str | None = None
    settings: dict[str, Any] = Field(default_factory=dict)
    hosts: HostSelector | None = None

    @field_validator("endpoint")
    @classmethod
    def _is_an_endpoint(cls, value: str | None) -> str | None:
        found = None if value is None else _ENDPOINT.match(value)
        if value is not None and (found is None or not 1 <= int(found["port"]) <= 65535):
            raise ValueError(f"{value!r} is no HOST:PORT, nor :PORT for each member's own host")
        return value

    @field_validator("settings")
    @classmethod
    def _leave_ours_alone(cls, value: dict[str, Any]) -> dict[str, Any]:
        if taken := sorted(OWN & set(value)):
            raise ValueError(f"{taken[0]!r} comes from the name and the endpoint")
        return value


class CacheDocument(Value):
    """The document a user saves."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    api_version: Annotated[Literal["pdtui/v1"], Field(alias="apiVersion")] = "pdtui/v1"
    kind: Literal["CacheService"] = "CacheService"
    metadata: Metadata
    spec: CacheSpec

    @property
    def name(self) -> str:
        """The service's name."""
        return self.metadata.name

    def service(self, own: str = "") -> CacheService:
        """The service as members attach to it; `own` is the member's address, for an endpoint that
        names no host."""
        found = _ENDPOINT.match(self.spec.endpoint or "")
        return CacheService(
            name=self.name,
            provider=self.spec.provider,
            host=(found["host"] or own) if found else "",
            port=int(found["port"]) if found else 0,
            settings=self.spec.settings,
        )

    def document(self) -> dict[str, Any]:
        """The document as plain data, defaults left out, as a file holds it."""
        body = self.model_dump(by_alias=True, exclude_defaults=True, mode="json")
        return {"apiVersion": self.api_version, "kind": self.kind, **body}


def parse_cache(data: object) -> CacheDocument:
    """The document in `data`. Raises Invalid with one Problem per field that is wrong."""
    if not isinstance(data, Mapping):
        raise Invalid.of(
            "structure.document",
            "a cache service is a mapping with apiVersion, kind, metadata and spec.",
            remedy="Write kind: CacheService, metadata.name, spec.provider and spec.endpoint.",
        )
    try:
        return CacheDocument.model_validate(data)
    except ValidationError as error:
        raise explain(error, CacheDocument) from None


def used_by(deployment: Deployment) -> frozenset[str]:
    """Names of the cache services that some role of a deployment attaches to."""
    wanted = (r.extended_kv_cache for r in roles_of(deployment.spec))
    return frozenset(c.service for c in wanted if c.kind == "service" and c.service)


def service_of(
    deployment: Deployment, role: str, caches: Mapping[str, CacheDocument]
) -> CacheDocument | None:
    """The one of `caches` that a role attaches to; None where it attaches to none of them."""
    wanted = resolve(deployment.spec, role).extended_kv_cache
    return caches.get(wanted.service or "") if wanted.kind == "service" else None


def attached(
    deployment: Deployment, caches: Mapping[str, CacheDocument]
) -> dict[str, CacheDocument]:
    """Those of `caches` that a deployment attaches to, by name."""
    return {name: caches[name] for name in sorted(used_by(deployment)) if name in caches}


def why_not(mode: Mode | None, role: str | None, service: CacheDocument) -> str:
    """Why a picker does not offer a service to a role (None: to the deployment); empty if it may.

    A service that only one role can use is offered to the deployment: the other sets none.
    """
    composition = mode.cache if mode else None
    if mode is None or composition is None:
        return f"{mode.name if mode else 'a deployment without a mode'} attaches no cache service"
    recipe = composition.service.get(service.spec.provider)
    if recipe is None:
        takes = ", ".join(composition.service) or "none"
        return f"{mode.name} cannot use {service.spec.provider}; it takes: {takes}"
    if role is not None and recipe.role(role) is None:
        only = ", ".join(recipe.roles)
        note = f" ({recipe.note})" if recipe.note else ""
        return f"only {only} can use {service.spec.provider} in {mode.name}{note}"
    return ""


def users(name: str, deployments: Iterable[Deployment]) -> list[str]:
    """Names of the deployments that attach to a service."""
    return sorted({d.name for d in deployments if name in used_by(d)})
