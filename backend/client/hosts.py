"""The client's questions on hosts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from pydantic import TypeAdapter

from backend.client.calls import Calls
from backend.client.door import ANY
from backend.domain.doctor import Finding
from backend.domain.portmap import PortMap
from backend.domain.views import HostView, SshAlias


class HostCalls(Calls):
    """What `HttpClient` asks of the routes on hosts."""

    async def hosts(self) -> tuple[HostView, ...]:
        """The inventory as last seen."""
        body = await self._pages("/hosts")
        return TypeAdapter(tuple[HostView, ...]).validate_python(body)

    async def add_host(self, document: dict[str, Any], *, etag: str | None = None) -> HostView:
        """Add or replace an inventory entry. `etag` as with `apply`."""
        path = f"/hosts/{quote(str(document.get('name', '')), safe='')}"
        expect = await self._etag(path) if etag is None else etag
        return HostView.model_validate(await self._call("PUT", path, json=document, expect=expect))

    async def host_entry(self, name: str) -> dict[str, Any]:
        """An inventory entry as it was written."""
        return (await self.host_entry_at(name))[0]

    async def host_entry_at(self, name: str) -> tuple[dict[str, Any], str]:
        """An inventory entry as it was written, and its entity tag."""
        return await self._read_at(f"/hosts/{quote(name, safe='')}")

    async def ssh_aliases(self, patterns: Sequence[str] = ()) -> tuple[SshAlias, ...]:
        """Hosts that the backend's user's ssh configuration names."""
        body = await self._call("GET", "/ssh-aliases", params={"pattern": list(patterns)})
        return TypeAdapter(tuple[SshAlias, ...]).validate_python(body)

    async def doctor(
        self, hosts: Sequence[str] = (), deployment: str | None = None
    ) -> tuple[Finding, ...]:
        """Examine hosts (all when none is named), with what a deployment needs of them."""
        params = {"host": list(hosts)} | ({"deployment": deployment} if deployment else {})
        body = await self._call("GET", "/doctor", params=params)
        return TypeAdapter(tuple[Finding, ...]).validate_python(body)

    async def unlock(self, identity: str, passphrase: str) -> str:
        """Unlock an identity file for the backend's life; its fingerprint."""
        order = {"identity": identity, "passphrase": passphrase}
        return str((await self._call("POST", "/identities/unlock", json=order))["fingerprint"])

    async def delete_host(self, name: str, *, force: bool = False, etag: str = ANY) -> None:
        """Remove an inventory entry."""
        path = f"/hosts/{quote(name, safe='')}"
        await self._call("DELETE", path, params={"force": force}, expect=etag)

    async def fence_host(self, name: str, *, etag: str = ANY) -> HostView:
        """Give up all that is on a host that does not answer."""
        path = f"/hosts/{quote(name, safe='')}/fence"
        return HostView.model_validate(await self._call("POST", path, expect=etag))

    async def test_host(self, name: str) -> HostView:
        """Look at a host now."""
        path = f"/hosts/{quote(name, safe='')}/test"
        return HostView.model_validate(await self._call("POST", path))

    async def accept_host_key(self, name: str, fingerprint: str) -> HostView:
        """Trust the shown key of a host from now on."""
        path = f"/hosts/{quote(name, safe='')}/accept-key"
        body = await self._call("POST", path, json={"fingerprint": fingerprint}, expect=ANY)
        return HostView.model_validate(body)

    async def host_ports(self, name: str) -> PortMap:
        """A host's ports, looked at now. Raises what the host met."""
        body = await self._call("GET", f"/hosts/{quote(name, safe='')}/ports")
        return PortMap.model_validate(body)
