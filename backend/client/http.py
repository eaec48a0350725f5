"""The client: httpx over the backend's Unix socket, and its event stream with resume."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
from pydantic import TypeAdapter

from backend.client.base import BackendClient
from backend.client.caches import CacheCalls
from backend.client.door import ANY, Door, headers_for, socket_door
from backend.client.hosts import HostCalls
from backend.client.insight import InsightCalls
from backend.client.plans import PlanCalls
from backend.client.tokens import TokenCalls
from backend.client.watching import WatchCalls
from backend.domain.documents import parse_deployment
from backend.domain.errors import KINDS, HostUnreachable, NotFound, PdError, Problem, TimedOut
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
    LogChunk,
    ModeView,
    ScaleResult,
    Snapshot,
    VersionView,
)

CALL_S = 60.0
STREAM_SILENCE_S = 30.0
"""The backend says it is alive every 10 s; silence for longer means the stream is dead."""
RETRY_S = (0.1, 0.2, 0.5, 1.0, 2.0)


class BackendGone(HostUnreachable):
    """No backend answers on the socket."""

    kind = "backend_gone"


class HttpClient(
    HostCalls, CacheCalls, InsightCalls, PlanCalls, TokenCalls, WatchCalls, BackendClient
):
    """Talks to the backend behind `door` (a path: that socket). `revive` is called when it stopped
    answering: it may start another (an embedded backend whose owner left)."""

    def __init__(
        self,
        door: Path | Door,
        *,
        revive: Callable[[], Awaitable[None]] | None = None,
        on_close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._door = socket_door(door) if isinstance(door, Path) else door
        self._revive, self._on_close = revive, on_close
        self.owned = False
        """Whether the backend is a process of our own, which ends when this client closes."""
        self._http = self._door.client(CALL_S)

    async def _call(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        params: dict[str, Any] | None = None,
        expect: str | None = None,
    ) -> Any:
        answer = await self._ask(method, path, json, params, headers_for(method, expect))
        return answer.json() if answer.content else None

    async def _pages(self, path: str) -> list[Any]:
        """Every item of a list, page after page."""
        found: list[Any] = []
        answer = await self._ask("GET", path, None, None, {})
        found += answer.json()
        while (more := answer.links.get("next")) is not None:
            answer = await self._ask("GET", self._door.inside(more["url"]), None, None, {})
            found += answer.json()
        return found

    async def _read_at(self, path: str) -> tuple[dict[str, Any], str]:
        """A document, and its entity tag."""
        answer = await self._ask("GET", path, None, None, {})
        return answer.json(), str(answer.headers["etag"])

    async def _etag(self, path: str) -> str:
        """The entity tag of what is there; empty when nothing is."""
        try:
            answer = await self._ask("GET", path, None, None, {})
            return str(answer.headers.get("etag", ""))
        except NotFound:
            return ""

    async def _ask(
        self,
        method: str,
        path: str,
        json: Any,
        params: dict[str, Any] | None,
        headers: dict[str, str],
    ) -> httpx.Response:
        """One request. A write whose connection broke is sent once more: its key lets it act once.

        Raises TimedOut, BackendGone, and the error that the answer carries.
        """
        try:
            try:
                answer = await self._http.request(
                    method, path, json=json, params=params, headers=headers
                )
            except (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError):
                if "Idempotency-Key" not in headers:
                    raise
                answer = await self._http.request(
                    method, path, json=json, params=params, headers=headers
                )
        except httpx.TimeoutException as error:
            raise TimedOut.of(
                "backend.timeout",
                f"the backend did not answer {method} {path} within {CALL_S:.0f} s.",
                remedy="Look at its log: backend.log in the state directory.",
            ) from error
        except httpx.HTTPError as error:
            raise BackendGone.of(
                "backend.gone",
                f"no backend answers on {self._door.name}: {error or type(error).__name__}.",
                values={"address": self._door.name},
                remedy=self._door.remedy,
            ) from error
        if answer.status_code >= 400:
            raise error_of(answer)
        return answer

    async def health(self) -> Health:
        """Who answers."""
        return Health.model_validate(await self._call("GET", "/health"))

    async def hand_over(self, version: str) -> None:
        """Ask the backend to go, so that one of `version` takes its place."""
        await self._call("POST", "/handover", json={"version": version})

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
        return (await self.deployment_at(name))[0]

    async def deployment_at(self, name: str) -> tuple[dict[str, Any], str]:
        """The saved document, and its entity tag: what a change of it is based on."""
        return await self._read_at(_of(name))

    async def apply(
        self, document: dict[str, Any], *, dry_run: bool = False, etag: str | None = None
    ) -> GroupView:
        """Save a document, or judge it. `etag` is what the document was made from, empty for a new
        one; without it, it replaces what is there at this moment. Raises Changed."""
        if not isinstance(document, dict):
            parse_deployment(document)  # says what it is instead
        metadata = document.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        path = _of(str(name or "unnamed"))
        if etag is None and not dry_run:
            etag = await self._etag(path)
        params = {"dry_run": dry_run}
        body = await self._call("PUT", path, json=document, params=params, expect=etag)
        return GroupView.model_validate(body)

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

    async def rollback(self, name: str, version: int, *, etag: str = ANY) -> GroupView:
        """Save an earlier document again."""
        order = {"version": version}
        body = await self._call("POST", f"{_of(name)}/rollback", json=order, expect=etag)
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
        body = await self._pages("/endpoints")
        return TypeAdapter(tuple[EndpointRow, ...]).validate_python(body)

    async def scrape_targets(self) -> list[dict[str, Any]]:
        """What monitoring is to scrape, as Prometheus' HTTP service discovery reads it."""
        body: list[dict[str, Any]] = await self._call("GET", "/prometheus/targets")
        return body

    async def scale(self, name: str, counts: dict[str, int], *, etag: str = ANY) -> ScaleResult:
        """Set wanted members by role."""
        order = {"counts": counts}
        body = await self._call("POST", f"{_of(name)}/scale", json=order, expect=etag)
        return ScaleResult.model_validate(body)

    async def restart(self, name: str, *, force: bool = False, etag: str = ANY) -> GroupView:
        """Stop the whole group and form it anew."""
        order = {"force": force}
        body = await self._call("POST", f"{_of(name)}/restart", json=order, expect=etag)
        return GroupView.model_validate(body)

    async def pause(
        self, name: str, paused: bool, *, force: bool = False, etag: str = ANY
    ) -> GroupView:
        """Switch the group off or on."""
        order = {"paused": paused, "force": force}
        body = await self._call("POST", f"{_of(name)}/pause", json=order, expect=etag)
        return GroupView.model_validate(body)

    async def delete(self, name: str, *, force: bool = False, etag: str = ANY) -> None:
        """Stop the group and forget the deployment."""
        await self._call("DELETE", _of(name), params={"force": force}, expect=etag)

    async def told(self, name: str, *, etag: str = ANY) -> GroupView:
        """Say that the operator has told a router of its members."""
        body = await self._call("POST", f"{_of(name)}/told", expect=etag)
        return GroupView.model_validate(body)

    async def delete_instance(
        self,
        name: str,
        instance: str,
        *,
        dry_run: bool = False,
        force: bool = False,
        etag: str = ANY,
    ) -> Deletion:
        """Take one instance out, and say what that means; `dry_run` only says it."""
        path = f"{_of(name)}/instances/{quote(instance, safe='')}"
        params = {"dry_run": dry_run, "force": force}
        body = await self._call("DELETE", path, params=params, expect=etag)
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
        body = await self._pages("/groups")
        return TypeAdapter(tuple[GroupView, ...]).validate_python(body)

    async def group(self, name: str) -> GroupView:
        """One group."""
        body = await self._call("GET", f"/groups/{quote(name, safe='')}")
        return GroupView.model_validate(body)

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
