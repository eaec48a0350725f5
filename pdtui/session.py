"""The only speaker to the backend: opens it, feeds the store, runs calls as named workers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from backend.client.base import BackendClient
from backend.client.door import ANY
from backend.domain.errors import NotFound, PdError, Problem, TimedOut
from backend.domain.views import (
    CacheView,
    Change,
    EventView,
    GroupView,
    HostView,
    LogChunk,
    Snapshot,
)
from pdtui.asking import Asking
from pdtui.i18n import tr
from pdtui.present.numbers import NONE

if TYPE_CHECKING:
    from backend.domain.doctor import Finding
    from backend.domain.portmap import PortMap
    from pdtui.app import Console

T = TypeVar("T")
OpenClient = Callable[[], Awaitable[BackendClient]]
CALL_S = 60.0
"""Seconds an ordinary call may take; a restart is only asked for, never waited out."""
OPEN_S = 60.0
CLOSE_S = 20.0


class Session(Asking):
    """One connection to one backend, for as long as the console is open."""

    def __init__(self, console: Console, open_client: OpenClient) -> None:
        self._console = console
        self._open_client = open_client
        self._client: BackendClient | None = None
        self._busy = 0

    @property
    def busy(self) -> bool:
        """Whether a call is under way."""
        return self._busy > 0

    # life

    def start(self) -> None:
        """Open the client, load everything, then follow the changes."""
        self._console.run_worker(
            self._live(), name="session", group="session", exclusive=True, exit_on_error=False
        )

    async def close(self) -> None:
        """Close the client; called after the last worker has ended."""
        client, self._client = self._client, None
        if client is not None:
            async with asyncio.timeout(CLOSE_S):
                await client.aclose()

    def refresh(self) -> None:
        """Read everything anew; opens the client again when that had failed."""
        store = self._console.store
        if store.failed:
            store.set_failed(False)
            self.start()
            self._console.store_changed()
        elif store.loaded:
            self.call("refresh", lambda c: c.snapshot(), self._console.store.load)

    async def _live(self) -> None:
        try:
            client = await self._connect()
        except PdError as error:
            self._console.store.set_failed(True)
            self._console.store_changed()
            self._console.report(error)
            return
        store = self._console.store
        async for change in client.changes(store.seq):
            self._take(change)

    async def _connect(self) -> BackendClient:
        try:
            async with asyncio.timeout(OPEN_S):
                if self._client is None:
                    self._client = await self._open_client()
                client = self._client
                health = await client.health()
                snapshot = await client.snapshot()
        except TimeoutError as error:
            raise TimedOut.of(
                "client.open",
                tr("error.open_timeout", seconds=int(OPEN_S)),
                remedy=tr("error.open_timeout.remedy"),
            ) from error
        store = self._console.store
        store.set_health(health)
        store.load(snapshot)
        client.on_connection = self._on_connection
        store.set_connected(True)
        self._console.store_changed()
        return client

    def _on_connection(self, connected: bool) -> None:
        if connected == self._console.store.connected:
            return
        self._console.store.set_connected(connected)
        if not connected:
            self._console.say(tr("status.lost"), "warn")
        else:
            self._console.say(tr("status.back"), "ok")
            self.refresh()
        self._console.store_changed()

    def _take(self, change: Change) -> None:
        store = self._console.store
        match change.kind:
            case "group":
                store.put_group(GroupView.model_validate(change.body))
            case "group_gone":
                store.drop_group(str(change.body["name"]))
            case "host":
                store.put_host(HostView.model_validate(change.body))
            case "host_gone":
                store.drop_host(str(change.body["name"]))
            case "event":
                store.add_event(EventView.model_validate(change.body))
            case "snapshot":  # the stream could not be resumed where it broke off
                store.load(Snapshot.model_validate(change.body))
        store.seq = max(store.seq, change.seq)
        self._console.store_changed()

    # calls

    def call(
        self,
        name: str,
        ask: Callable[[BackendClient], Awaitable[T]],
        done: Callable[[T], None] | None = None,
        *,
        failed: Callable[[PdError], bool] | None = None,
        opens: bool = False,
    ) -> None:
        """Ask the backend in a worker of its own group.

        `done` gets the answer. A failure goes to `failed` first, and to the error dialog unless
        that returned True. `opens` says that `done` opens a screen: what is typed meanwhile is
        for that one.
        """
        if opens:
            self._console.hold_keys()
        self._console.run_worker(
            self._called(ask, done, failed, opens),
            name=name,
            group=f"call.{name}",
            exit_on_error=False,
        )

    async def _called(
        self,
        ask: Callable[[BackendClient], Awaitable[T]],
        done: Callable[[T], None] | None,
        failed: Callable[[PdError], bool] | None,
        opens: bool,
    ) -> None:
        self._spin(1)
        try:
            answer = await self._ask(ask)
        except PdError as error:
            self._console.drop_keys()
            if not (failed and failed(error)):
                self._console.report(error)
        else:
            if done:
                done(answer)
            self._console.store_changed()
        finally:
            self._spin(-1)
            if opens:
                self._console.release_keys()

    async def _ask(self, ask: Callable[[BackendClient], Awaitable[T]]) -> T:
        if self._client is None:
            raise TimedOut.of("client.closed", tr("why.disconnected"))
        try:
            async with asyncio.timeout(CALL_S):
                return await ask(self._client)
        except TimeoutError as error:
            raise TimedOut.of(
                "client.timeout",
                tr("error.call_timeout", seconds=int(CALL_S)),
                remedy=tr("error.call_timeout.remedy"),
            ) from error

    def _spin(self, by: int) -> None:
        self._busy += by
        self._console.busy_changed(self.busy)

    # verbs

    def scale(self, name: str, counts: dict[str, int], etag: str = "") -> None:
        """Set counts; a count that waits for a restart is said to. `etag` is what was seen."""

        def failed(error: PdError) -> bool:
            stale = error.problem.rule == "life.stale"
            if stale:
                self._console.say(error.problem.message, "warn")
            return stale

        self.call(
            f"scale.{name}",
            lambda c: c.scale(name, counts, etag=etag or ANY),
            lambda r: self._console.say(
                r.message or tr("done.pending" if r.pending else "done.scale", name=name),
                "warn" if r.pending else "ok",
            ),
            failed=failed,
        )

    def restart(self, name: str, *, force: bool = False, etag: str = "") -> None:
        """Restart the whole group."""
        self._change(
            f"restart.{name}",
            lambda c: c.restart(name, force=force, etag=etag or ANY),
            tr("done.restart", name=name),
        )

    def pause(self, name: str, paused: bool, etag: str = "") -> None:
        """Stop every member, or start them again."""
        text = tr("done.stop" if paused else "done.start", name=name)
        self._change(f"pause.{name}", lambda c: c.pause(name, paused, etag=etag or ANY), text)

    def delete(self, name: str, etag: str = "") -> None:
        """Delete a deployment with its group."""
        self._change(
            f"delete.{name}",
            lambda c: c.delete(name, etag=etag or ANY),
            tr("done.delete", name=name),
        )

    def delete_instance(self, name: str, instance: str, etag: str = "") -> None:
        """Delete one member."""
        self._change(
            f"delete.{instance}",
            lambda c: c.delete_instance(name, instance, etag=etag or ANY),
            tr("done.delete_member", name=instance),
        )

    def check(
        self,
        document: dict[str, Any],
        done: Callable[[list[Problem]], None],
        failed: Callable[[PdError], bool],
    ) -> None:
        """Every finding about a document; nothing is stored."""

        async def ask(client: BackendClient) -> list[Problem]:
            found = await client.check(document)
            return [Problem.model_validate(v) for v in found["verdicts"]]

        self.call("check", ask, done, failed=failed)

    def apply(
        self,
        document: dict[str, Any],
        done: Callable[[GroupView], None],
        failed: Callable[[PdError], bool],
        *,
        etag: str,
    ) -> None:
        """Save a document made from what `etag` tells; empty for a new one."""
        self.call("apply", lambda c: c.apply(document, etag=etag), done, failed=failed)

    def test_host(self, name: str, done: Callable[[HostView], None]) -> None:
        """Look at a host now; an unknown key is offered for acceptance."""
        self.call(f"test.{name}", lambda c: c.test_host(name), done, failed=self._offer_key)

    def host_ports(self, name: str, done: Callable[[PortMap], None]) -> None:
        """A host's ports, looked at now."""
        self.call(f"ports.{name}", lambda c: c.host_ports(name), done)

    def doctor(
        self,
        hosts: Sequence[str],
        deployment: str | None,
        done: Callable[[tuple[Finding, ...]], None],
        failed: Callable[[PdError], bool],
    ) -> None:
        """Examine hosts (all when none is named), with what a deployment needs of them."""
        self.call("doctor", lambda c: c.doctor(hosts, deployment), done, failed=failed)

    def put_host(
        self,
        entry: dict[str, Any],
        done: Callable[[HostView], None],
        failed: Callable[[PdError], bool],
        *,
        etag: str,
    ) -> None:
        """Add or replace an inventory entry; `etag` is what was read, empty for a new one."""
        self.call("put_host", lambda c: c.add_host(entry, etag=etag), done, failed=failed)

    def accept_host_key(self, name: str, fingerprint: str) -> None:
        """Trust a host's key."""
        self._change(
            f"accept.{name}",
            lambda c: c.accept_host_key(name, fingerprint),
            tr("done.accept", name=name),
        )

    def delete_host(self, name: str, etag: str = "") -> None:
        """Remove a host from the inventory."""
        self._change(
            f"host.{name}",
            lambda c: c.delete_host(name, etag=etag or ANY),
            tr("done.delete_host", name=name),
        )

    def put_cache(
        self,
        document: dict[str, Any],
        done: Callable[[CacheView], None],
        failed: Callable[[PdError], bool],
        *,
        etag: str,
    ) -> None:
        """Save a cache service made from what `etag` tells; empty for a new one."""
        self.call("put_cache", lambda c: c.apply_cache(document, etag=etag), done, failed=failed)

    def delete_cache(self, name: str, done: Callable[[], None], etag: str = "") -> None:
        """Forget a cache service."""
        self.call(
            f"cache.{name}", lambda c: c.delete_cache(name, etag=etag or ANY), lambda _: done()
        )

    async def read_log(
        self, instance: str, *, generation: int | None = None, offset: int | None = None
    ) -> LogChunk:
        """A piece of a log. Raises PdError."""
        return await self._ask(lambda c: c.log(instance, generation=generation, offset=offset))

    def _change(
        self, name: str, ask: Callable[[BackendClient], Awaitable[object]], text: str
    ) -> None:
        self.call(name, ask, lambda _: self._console.say(text, "ok"))

    def _offer_key(self, error: PdError) -> bool:
        if error.kind != "host_key_unknown":
            return False
        values = error.problem.values
        fingerprint = str(values.get("fingerprint", ""))
        if not fingerprint:
            return False
        self._console.offer_key(str(values.get("host", NONE)), fingerprint, error)
        return True


def is_gone(error: PdError) -> bool:
    """Whether what was asked for is not there any more."""
    return isinstance(error, NotFound)
