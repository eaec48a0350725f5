"""What the console reads of the backend beside the stream of changes: a question, an answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from backend.client.base import BackendClient
    from backend.domain.errors import PdError
    from backend.domain.views import (
        CacheChoice,
        CacheView,
        ModeChoice,
        ModeView,
        RenderedView,
        VersionView,
    )

T = TypeVar("T")


class Asking:
    """Questions; each answer goes to `done`."""

    def call(
        self,
        name: str,
        ask: Callable[[BackendClient], Awaitable[T]],
        done: Callable[[T], None] | None = None,
        *,
        failed: Callable[[PdError], bool] | None = None,
        opens: bool = False,
    ) -> None:
        """Ask the backend in a worker of its own group."""
        raise NotImplementedError

    def document(self, name: str, done: Callable[[dict[str, Any]], None]) -> None:
        """The stored document of a deployment."""
        self.call(f"document.{name}", lambda c: c.deployment(name), done, opens=True)

    def modes(self, done: Callable[[tuple[ModeView, ...]], None], *, opens: bool = False) -> None:
        """The catalogue's modes."""
        self.call("modes", lambda c: c.modes(), done, opens=opens)

    def mode_choices(self, engine: str, done: Callable[[tuple[ModeChoice, ...]], None]) -> None:
        """Which modes an engine may take on the hosts there are; an unknown engine takes none."""
        self.call("choices", lambda c: c.mode_choices(engine=engine), done, failed=lambda _: True)

    def cache_choices(
        self, mode: str, role: str, done: Callable[[tuple[CacheChoice, ...]], None]
    ) -> None:
        """Every cache service, and why a role in a mode may not use it."""
        self.call(
            "cache_choices", lambda c: c.cache_choices(mode or None, role or None), done, opens=True
        )

    def render(
        self,
        document: dict[str, Any],
        done: Callable[[tuple[RenderedView, ...]], None],
        failed: Callable[[PdError], bool] | None = None,
    ) -> None:
        """What one instance of each role would be started with."""
        self.call("render", lambda c: c.render(document), done, failed=failed, opens=True)

    def history(self, name: str, done: Callable[[tuple[VersionView, ...]], None]) -> None:
        """Every saved document of a deployment, newest first."""
        self.call(f"history.{name}", lambda c: c.history(name), done, opens=True)

    def caches(self, done: Callable[[tuple[CacheView, ...]], None]) -> None:
        """All cache services."""
        self.call("caches", lambda c: c.caches(), done)

    def cache_document(self, name: str, done: Callable[[dict[str, Any]], None]) -> None:
        """The saved document of a cache service."""
        self.call(f"cache.{name}", lambda c: c.cache_document(name), done, opens=True)

    def host_entry(self, name: str, done: Callable[[tuple[dict[str, Any], str]], None]) -> None:
        """An inventory entry as it was written, and its entity tag."""
        self.call(f"entry.{name}", lambda c: c.host_entry_at(name), done, opens=True)
