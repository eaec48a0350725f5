"""Cache services: what deployments may attach to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import BindingType
from textual.widget import Widget

from pdtui.commands import keymap
from pdtui.commands.model import Context
from pdtui.i18n import tr
from pdtui.present import caches
from pdtui.present.cells import Line, Row, Span
from pdtui.screens.base import Area, TableScreen
from pdtui.widgets.resource_table import ResourceTable

if TYPE_CHECKING:
    from backend.domain.views import CacheView


class CachesScreen(TableScreen):
    """The list of cache services, read when it is shown and whenever one of them changed."""

    area: Area = "caches"
    scopes = ("list", "caches")
    kinds = ("groups", "events")
    BINDINGS: ClassVar[list[BindingType]] = [*keymap.bindings("list", "caches")]

    def __init__(self) -> None:
        super().__init__()
        self.caches: tuple[CacheView, ...] = ()
        self.known = False
        self._asked: object = None

    def body(self) -> Iterable[Widget]:
        """One table."""
        yield ResourceTable(caches.columns(), widget_id="caches")

    def rows(self) -> list[Row]:
        """One row a service."""
        return caches.rows(self.caches)

    def nothing(self) -> list[Line]:
        """How to begin, once it is known that there is none."""
        if not self.known:
            return [(Span(tr("caches.unread"), "dim"),)]
        return [
            (Span(tr("caches.none"), "strong"),),
            (),
            (Span(tr("caches.none.means"), "dim"),),
            (Span(tr("caches.none.add"), "dim"),),
        ]

    def fill(self) -> None:
        """Ask again when a service was changed, or a deployment that may use one."""
        super().fill()
        store, session = self.console.store, self.console.session
        told = (e.seq for e in reversed(store.events) if e.kind.startswith(("cache_", "saved")))
        stamp = (next(told, 0), len(store.groups))
        if session and store.connected and stamp != self._asked:
            self._asked = stamp
            session.caches(self._take)

    def reread(self) -> None:
        """Ask at the next drawing, whatever is known."""
        self._asked = None
        self.sync(force=True)

    def _take(self, found: tuple[CacheView, ...]) -> None:
        self.caches, self.known = found, True
        if self.is_mounted:
            self.fill()
            self.key_bar()

    def context(self) -> Context:
        """The service under the cursor."""
        key = self.table().cursor_key
        found = next((c for c in self.caches if c.name == key), None)
        return self.console.base_context(cache=found)

    @on(ResourceTable.RowOpened)
    def _open(self, event: ResourceTable.RowOpened) -> None:
        event.stop()
        self.console.action_command("caches.describe")
