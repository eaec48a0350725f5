"""What else one asks about hosts: the ssh configuration, an entry as written, locked keys."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, SecretStr

from backend.api.deps import ROLE, Actor, Expected, TheBackend
from backend.domain.doctor import Finding
from backend.domain.host import Host
from backend.domain.portmap import PortMap
from backend.domain.precondition import etag
from backend.domain.views import HostView, SshAlias

router = APIRouter(tags=["hosts"])


class UnlockBody(BaseModel):
    """An identity file of the backend's user, and its passphrase, which is not kept."""

    model_config = ConfigDict(extra="forbid")

    identity: str
    passphrase: SecretStr


class Unlocked(BaseModel):
    """The key that the backend may use now."""

    identity: str
    fingerprint: str


@router.get("/ssh-aliases")
async def ssh_aliases(
    backend: TheBackend, pattern: Annotated[list[str] | None, Query()] = None
) -> list[SshAlias]:
    """Hosts named by the ssh configuration, those of the patterns (`gpu-*`) or all."""
    return await backend.hosts.aliases(pattern or ())


@router.post("/identities/unlock", openapi_extra={ROLE: "admin"})
async def unlock(body: UnlockBody, backend: TheBackend) -> Unlocked:
    """Decrypt an identity file for as long as this backend lives."""
    fingerprint = await backend.hosts.unlock(body.identity, body.passphrase.get_secret_value())
    return Unlocked(identity=body.identity, fingerprint=fingerprint)


@router.get("/doctor")
async def doctor(
    backend: TheBackend,
    host: Annotated[list[str] | None, Query()] = None,
    deployment: str | None = None,
) -> list[Finding]:
    """Examine hosts (all of them, or those named), with what a deployment needs of them."""
    return list(await backend.hosts.doctor(host or (), deployment))


@router.post("/hosts/{name}/fence")
async def fence_host(name: str, backend: TheBackend, actor: Actor, expect: Expected) -> HostView:
    """Give up all that is on a host that does not answer: it is placed elsewhere, and killed there
    the moment the host is back."""
    return await backend.hosts.fence(name, actor, expect)


@router.get("/hosts/{name}")
async def host_entry(name: str, backend: TheBackend, response: Response) -> Host:
    """A host's entry as it was written."""
    entry = backend.hosts.entry(name)
    response.headers["ETag"] = etag(entry)
    return entry


@router.get("/hosts/{name}/ports")
async def host_ports(name: str, backend: TheBackend) -> PortMap:
    """A host's ports, looked at now: its service port range, and what cannot be managed."""
    return await backend.hosts.ports(name)
