"""Every saved version of a deployment, and what each changed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import BindingType
from textual.widget import Widget

from pdtui.commands import keymap
from pdtui.i18n import tr
from pdtui.present import history
from pdtui.present.cells import Line, Row, Span
from pdtui.screens.base import Area, TableScreen
from pdtui.screens.text import TextScreen
from pdtui.widgets.resource_table import ResourceTable

if TYPE_CHECKING:
    from backend.domain.views import VersionView


class HistoryScreen(TableScreen):
    """The versions, newest first; enter shows one against the one before."""

    area: Area = "groups"
    scopes = ("list",)
    kinds = ("groups",)
    BINDINGS: ClassVar[list[BindingType]] = [*keymap.bindings("list")]

    def __init__(self, group: str, versions: tuple[VersionView, ...]) -> None:
        super().__init__()
        self.group_name = group
        self.versions = tuple(sorted(versions, key=lambda v: v.version, reverse=True))

    def body(self) -> Iterable[Widget]:
        """One table."""
        yield ResourceTable(history.columns(), widget_id="history")

    def path(self) -> list[str]:
        """The group's name."""
        return [self.group_name, tr("history.title")]

    def rows(self) -> list[Row]:
        """One row a version."""
        return history.rows(self.versions, self.console.now())

    def nothing(self) -> list[Line]:
        """Nothing stored."""
        return [(Span(tr("history.none"), "dim"),)]

    @on(ResourceTable.RowOpened)
    def _open(self, event: ResourceTable.RowOpened) -> None:
        event.stop()
        page = history.page(self.versions, int(event.key))
        path = [*self.path(), tr("history.version", version=event.key)]
        self.console.push_screen(TextScreen("groups", path, lambda: page))
