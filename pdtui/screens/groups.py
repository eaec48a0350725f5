"""Home: every group with its status."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual import on
from textual.binding import BindingType
from textual.widget import Widget

from pdtui.commands import keymap
from pdtui.commands.model import Context
from pdtui.i18n import tr
from pdtui.present import groups
from pdtui.present.cells import Line, Row, Span
from pdtui.screens.base import Area, TableScreen
from pdtui.widgets.resource_table import ResourceTable


class GroupsScreen(TableScreen):
    """The list of groups."""

    area: Area = "groups"
    scopes = ("list", "groups")
    kinds = ("groups", "hosts")
    BINDINGS: ClassVar[list[BindingType]] = [*keymap.bindings("list", "groups")]

    def body(self) -> Iterable[Widget]:
        """One table."""
        yield ResourceTable(groups.columns(), widget_id="groups")

    def rows(self) -> list[Row]:
        """One row a group."""
        return groups.rows(self.console.store.groups.values(), self.console.now())

    def nothing(self) -> list[Line]:
        """How to begin."""
        return [
            (Span(tr("groups.none"), "strong"),),
            (),
            (Span(tr("groups.none.apply"), "dim"),),
            (Span(tr("groups.none.demo"), "dim"),),
        ]

    def context(self) -> Context:
        """The group under the cursor."""
        key = self.table().cursor_key
        return self.console.base_context(group=self.console.store.groups.get(key or ""))

    @on(ResourceTable.RowOpened)
    def _open(self, event: ResourceTable.RowOpened) -> None:
        event.stop()
        self.console.open_group(event.key)
