"""Every host of the inventory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual import on
from textual.binding import BindingType
from textual.widget import Widget

from pdtui.commands import keymap
from pdtui.commands.model import Context
from pdtui.i18n import tr
from pdtui.present import hosts
from pdtui.present.cells import Line, Row, Span
from pdtui.screens.base import Area, TableScreen
from pdtui.widgets.resource_table import ResourceTable


class HostsScreen(TableScreen):
    """The list of hosts."""

    area: Area = "hosts"
    scopes = ("list", "hosts")
    kinds = ("hosts", "groups")
    BINDINGS: ClassVar[list[BindingType]] = [*keymap.bindings("list", "hosts")]

    def body(self) -> Iterable[Widget]:
        """One table."""
        yield ResourceTable(hosts.columns(), widget_id="hosts")

    def rows(self) -> list[Row]:
        """One row a host."""
        return hosts.rows(self.console.store.hosts.values(), self.console.now())

    def nothing(self) -> list[Line]:
        """How to begin."""
        return [(Span(tr("hosts.none"), "strong"),), (), (Span(tr("hosts.none.add"), "dim"),)]

    def context(self) -> Context:
        """The host under the cursor."""
        key = self.table().cursor_key
        return self.console.base_context(host=self.console.store.hosts.get(key or ""))

    @on(ResourceTable.RowOpened)
    def _open(self, event: ResourceTable.RowOpened) -> None:
        event.stop()
        self.console.action_command("hosts.describe")
