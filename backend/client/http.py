"""The client: httpx over the backend's Unix socket, and its event stream with resume."""

from __future__ import annotations

import asyncio
import getpass
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
from pydantic import TypeAdapter

from backend.client.base import BackendClient
from backend.client.caches import CacheCalls
from backend.client.watching import WatchCalls
from backend.domain.doctor import Finding
from backend.domain.documents import parse_deployment
from backend.domain.errors import KINDS, HostUnreachable, PdError, Problem, TimedOut
from backend.domain.views import (
    AdoptableView,
    AdoptionResult,
    Change,
    Deletion,
    Difference,
    EndpointRow,
    EventView,
    GroupView,
    Health,
    HostView,
    LogChunk,
    ModeView,
    ScaleResult,
    Snapshot,
    SshAlias,
    VersionView,
)

CALL_S = 60.0
STREAM_SILENCE_S = 30.0
"""The backend says it is alive every 10 s; silence for longer means the stream is dead."""
RETRY_S = (0.1, 0.2, 0.5, 1.0, 2.0)


class BackendGone(HostUnreachable):
    """No backend answers on the socket."""

    kind = "backend_gone"


class HttpClient(CacheCalls, WatchCalls, BackendClient):
    """Talks to the backend on `socket`. `revive` is called when it stopped answering: it may start
    another (an embedded backend whose owner left)."""

    def __init__(
        self,
        socket: Path,
        *,
        revive: Callable[[], Awaitable[None]] | None = None,
        on_close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._socket, self._revive, self._on_close = socket, revive, on_close
        self.owned = False
        """Whether the backend is a process of our own, which ends when this client closes."""
        self._http = httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(uds=str(socket)),
            base_url="http://pdtui/v1",
            timeout=httpx.Timeout(CALL_S, connect=5.0),
            headers={"x-pdtui-actor": quote(_user())},
            trust_env=False,
        )

    async def _call(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        params: dict[str, Any] | None = None,
    ) -> Any:
        try:
            answer = await self._http.request(method, path, json=json, params=params)
        except httpx.TimeoutException as error:
            raise TimedOut.of(
                "backend.timeout",
                f"the backend did not answer {method} {path} within {CALL_S:.0f} s.",
                remedy="Look at its log: backend.log in the state directory.",
            ) from error
        except httpx.HTTPError as error:
            raise BackendGone.of(
                "backend.gone",
                f"no backend answers on {self._socket}: {error or type(error).__name__}.",
                values={"socket": str(self._socket)},
                remedy="Start `pdtui`, or `pdtui daemon` to have one without a screen.",
            ) from error
        if answer.status_code >= 400:
            raise error_of(answer)
        return answer.json() if answer.content else None

    async def health(self) -> Health:
        """Who answers."""
        return Health.model_validate(await self._call("GET", "/health"))

    async def snapshot(self) -> Snapshot:
        """Everything there is now."""
        return Snapshot.model_validate(await self._call("GET", "/snapshot"))

    async def changes(self, since: int) -> AsyncGenerator[Change, None]:
        """Every change after `since`, for ever; reconnects and resumes by itself."""
        failures = 0
        while True:
            try:
                async with aclosing(self._stream(since)) as stream:
                    async for change in stream:
                        since, failures = change.seq, 0
                        yield change
            except httpx.HTTPError:
                failures += 1
            self._connection(False)
            await asyncio.sleep(RETRY_S[min(failures, len(RETRY_S) - 1)])
            if self._revive is not None and failures > 1:
                await self._try_to_revive()

    async def _try_to_revive(self) -> None:
        try:
            if self._revive is not None:
                await self._revive()
        except PdError:
            return  # shown as not connected; tried again at the next turn

    async def _stream(self, since: int) -> AsyncGenerator[Change, None]:
        timeout = httpx.Timeout(STREAM_SILENCE_S, connect=5.0)
        async with self._http.stream(
            "GET", "/changes", params={"since": since}, timeout=timeout
        ) as answer:
            answer.raise_for_status()
            self._connection(True)
            async for line in answer.aiter_lines():
                if line.startswith("data: "):
                    yield Change.model_validate_json(line[6:])

    def _connection(self, up: bool) -> None:
        if self.connected != up:
            self.connected = up
            if self.on_connection is not None:
                self.on_connection(up)

    async def deployment(self, name: str) -> dict[str, Any]:
        """The saved document."""
        body: dict[str, Any] = await self._call("GET", f"/deployments/{quote(name, safe='')}")
        return body

    async def apply(self, document: dict[str, Any], *, dry_run: bool = False) -> GroupView:
        """Save a document, or judge it."""
        if not isinstance(document, dict):
            parse_deployment(document)  # says what it is instead
        metadata = document.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        path = f"/deployments/{quote(str(name or 'unnamed'), safe='')}"
        params = {"dry_run": dry_run}
        return GroupView.model_validate(await self._call("PUT", path, json=document, params=params))

    async def check(self, document: dict[str, Any], *, every: bool = False) -> dict[str, Any]:
        """Every finding about a document: `{"verdicts": [...], "skipped": [...]}`; with `every`
        also the rules that are fine."""
        params = {"every": every}
        body: dict[str, Any] = await self._call("POST", "/check", json=document, params=params)
        return body

    async def history(self, name: str) -> tuple[VersionView, ...]:
        """Every saved document, newest first."""
        body = await self._call("GET", f"{_of(name)}/history")
        return TypeAdapter(tuple[VersionView, ...]).validate_python(body)

    async def difference(self, name: str, older: int, newer: int | None = None) -> Difference:
        """What changed between two saved documents; without `newer`, up to the present one."""
        params = {"older": older} | ({} if newer is None else {"newer": newer})
        return Difference.model_validate(
            await self._call("GET", f"{_of(name)}/diff", params=params)
        )

    async def rollback(self, name: str, version: int) -> GroupView:
        """Save an earlier document again."""
        body = await self._call("POST", f"{_of(name)}/rollback", json={"version": version})
        return GroupView.model_validate(body)

    async def adoptable(self) -> tuple[tuple[AdoptableView, ...], dict[str, str]]:
        """What could be adopted, and hosts that could not be asked, with why."""
        body = await self._call("GET", "/adoptable")
        found = TypeAdapter(tuple[AdoptableView, ...]).validate_python(body["found"])
        return found, body["unasked"]

    async def adopt(self, owner: str) -> AdoptionResult:
        """Take over everything of one owner."""
        return AdoptionResult.model_validate(
            await self._call("POST", "/adopt", json={"owner": owner})
        )

    async def endpoints(self) -> tuple[EndpointRow, ...]:
        """Every group's endpoint."""
        body = await self._call("GET", "/endpoints")
        return TypeAdapter(tuple[EndpointRow, ...]).validate_python(body)

    async def scrape_targets(self) -> list[dict[str, Any]]:
        """What monitoring is to scrape, as Prometheus' HTTP service discovery reads it."""
        body: list[dict[str, Any]] = await self._call("GET", "/prometheus/targets")
        return body

    async def scale(self, name: str, counts: dict[str, int]) -> ScaleResult:
        """Set wanted members by role."""
        body = await self._call("POST", f"{_of(name)}/scale", json={"counts": counts})
        return ScaleResult.model_validate(body)

    async def restart(self, name: str, *, force: bool = False) -> GroupView:
        """Stop the whole group and form it anew."""
        body = await self._call("POST", f"{_of(name)}/restart", json={"force": force})
        return GroupView.model_validate(body)

    async def pause(self, name: str, paused: bool) -> GroupView:
        """Switch the group off or on."""
        body = await self._call("POST", f"{_of(name)}/pause", json={"paused": paused})
        return GroupView.model_validate(body)

    async def delete(self, name: str) -> None:
        """Stop the group and forget the deployment."""
        await self._call("DELETE", _of(name))

    async def delete_instance(self, name: str, instance: str, *, dry_run: bool = False) -> Deletion:
        """Take one instance out, and say what that means; `dry_run` only says it."""
        path = f"{_of(name)}/instances/{quote(instance, safe='')}"
        body = await self._call("DELETE", path, params={"dry_run": dry_run})
        return Deletion.model_validate(body)

    async def log(
        self,
        instance: str,
        *,
        generation: int | None = None,
        offset: int | None = None,
        tail_bytes: int = 65536,
    ) -> LogChunk:
        """A piece of an instance's log."""
        wanted = {"generation": generation, "offset": offset, "tail_bytes": tail_bytes}
        params = {k: v for k, v in wanted.items() if v is not None}
        path = f"/instances/{quote(instance, safe='')}/log"
        return LogChunk.model_validate(await self._call("GET", path, params=params))

    async def events(self, group: str | None = None, limit: int = 200) -> tuple[EventView, ...]:
        """The newest history lines, oldest first."""
        params: dict[str, Any] = {"limit": limit} | ({"group": group} if group else {})
        body = await self._call("GET", "/events", params=params)
        return TypeAdapter(tuple[EventView, ...]).validate_python(body)

    async def modes(self) -> tuple[ModeView, ...]:
        """The catalogue's modes."""
        body = await self._call("GET", "/modes")
        return TypeAdapter(tuple[ModeView, ...]).validate_python(body)

    async def groups(self) -> tuple[GroupView, ...]:
        """All groups."""
        body = await self._call("GET", "/groups")
        return TypeAdapter(tuple[GroupView, ...]).validate_python(body)

    async def group(self, name: str) -> GroupView:
        """One group."""
        body = await self._call("GET", f"/groups/{quote(name, safe='')}")
        return GroupView.model_validate(body)

    async def hosts(self) -> tuple[HostView, ...]:
        """The inventory as last seen."""
        body = await self._call("GET", "/hosts")
        return TypeAdapter(tuple[HostView, ...]).validate_python(body)

    async def add_host(self, document: dict[str, Any]) -> HostView:
        """Add or replace an inventory entry."""
        name = quote(str(document.get("name", "")), safe="")
        return HostView.model_validate(await self._call("PUT", f"/hosts/{name}", json=document))

    async def host_entry(self, name: str) -> dict[str, Any]:
        """An inventory entry as it was written."""
        body: dict[str, Any] = await self._call("GET", f"/hosts/{quote(name, safe='')}")
        return body

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

    async def delete_host(self, name: str) -> None:
        """Remove an inventory entry."""
        await self._call("DELETE", f"/hosts/{quote(name, safe='')}")

    async def test_host(self, name: str) -> HostView:
        """Look at a host now."""
        path = f"/hosts/{quote(name, safe='')}/test"
        return HostView.model_validate(await self._call("POST", path))

    async def accept_host_key(self, name: str, fingerprint: str) -> HostView:
        """Trust the shown key of a host from now on."""
        path = f"/hosts/{quote(name, safe='')}/accept-key"
        body = await self._call("POST", path, json={"fingerprint": fingerprint})
        return HostView.model_validate(body)

    async def aclose(self) -> None:
        """Close the connection, and end the backend if it is our own."""
        await self._http.aclose()
        if self._on_close is not None:
            await self._on_close()


def error_of(answer: httpx.Response) -> PdError:
    """The error that an answer of 400 or more carries."""
    try:
        body = answer.json()
        problems = [Problem.model_validate(p) for p in body["problems"]]
        return KINDS.get(body["kind"], PdError)(*problems)
    except (ValueError, KeyError, TypeError):
        return PdError.of(
            "backend.answer", f"the backend answered {answer.status_code}: {answer.text[:200]}"
        )


def _of(name: str) -> str:
    return f"/deployments/{quote(name, safe='')}"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
