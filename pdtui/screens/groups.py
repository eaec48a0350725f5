"""Home: every group with its status."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import BindingType
from textual.widget import Widget

from pdtui.commands import keymap
from pdtui.commands.model import Context
from pdtui.i18n import tr
from pdtui.present import groups
from pdtui.present.cells import Line, Row, Span
from pdtui.present.numbers import since
from pdtui.screens.base import Area, TableScreen
from pdtui.widgets.resource_table import ResourceTable

if TYPE_CHECKING:
    from backend.domain.views import GroupView


class GroupsScreen(TableScreen):
    """The list of groups."""

    area: Area = "groups"
    scopes = ("list", "groups")
    kinds = ("groups", "hosts")
    markable = True
    BINDINGS: ClassVar[list[BindingType]] = [*keymap.bindings("list", "groups")]

    def __init__(self) -> None:
        super().__init__()
        self._made: dict[str, tuple[GroupView, str, Row]] = {}

    def body(self) -> Iterable[Widget]:
        """One table."""
        yield ResourceTable(groups.columns(), widget_id="groups")

    def rows(self) -> list[Row]:
        """One row a group; made anew only where the group or its shown age differs."""
        now, made = self.console.now(), self._made
        self._made = {}
        for view in sorted(self.console.store.groups.values(), key=lambda g: g.name):
            age = since(now, view.since)
            old = made.get(view.name)
            same = old is not None and old[0] is view and old[1] == age
            self._made[view.name] = old if old and same else (view, age, groups.row(view, age))
        return [row for _, _, row in self._made.values()]

    def relabelled(self) -> None:
        """Rows in another language are other rows."""
        self._made = {}

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

    def urgent(self) -> list[str]:
        """What explains a fault or ends a wait, while it lasts."""
        return [f"groups.{name}" for name in groups.urgent(self.context().group)]

    @on(ResourceTable.RowOpened)
    def _open(self, event: ResourceTable.RowOpened) -> None:
        event.stop()
        self.console.open_group(event.key)
