"""What happened, newest first: of everything, or of one group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import BindingType
from textual.widget import Widget

from pdtui.commands import keymap
from pdtui.commands.model import Context
from pdtui.i18n import tr
from pdtui.present import events
from pdtui.present.cells import Line, Row, Span
from pdtui.screens.base import Area, TableScreen
from pdtui.widgets.resource_table import ResourceTable

if TYPE_CHECKING:
    from backend.domain.views import Level

LEVELS: tuple[Level, ...] = ("info", "warning", "error")


class EventsScreen(TableScreen):
    """The history; the cursor stays at the newest line until it is moved."""

    area: Area = "events"
    scopes = ("list", "events")
    kinds = ("events",)
    BINDINGS: ClassVar[list[BindingType]] = [*keymap.bindings("list", "events")]

    def __init__(self, group: str | None = None) -> None:
        super().__init__()
        self.group_name = group
        self.least: Level = "info"

    def body(self) -> Iterable[Widget]:
        """One table."""
        yield ResourceTable(events.columns(), widget_id="events")

    def path(self) -> list[str]:
        """The group, when it is one group's history."""
        level = [] if self.least == "info" else [tr(f"events.level.{self.least}")]
        return ([self.group_name] if self.group_name else []) + level

    def rows(self) -> list[Row]:
        """One row an event."""
        wanted = self.group_name
        shown = LEVELS[LEVELS.index(self.least) :]
        found = self.console.store.events
        return events.rows(
            e for e in found if (wanted is None or e.group == wanted) and e.level in shown
        )

    def nothing(self) -> list[Line]:
        """Nothing yet."""
        return [(Span(tr("events.none"), "dim"),)]

    def context(self) -> Context:
        """The event under the cursor."""
        key = self.table().cursor_key
        found = next((e for e in self.console.store.events if str(e.seq) == key), None)
        return self.console.base_context(event=found)

    def next_level(self) -> None:
        """All, warnings and errors, errors only, and all again."""
        self.least = LEVELS[(LEVELS.index(self.least) + 1) % len(LEVELS)]
        self.sync(force=True)

    def only(self, group: str) -> None:
        """One group's events, or everybody's again."""
        self.group_name = None if self.group_name == group else group
        self.sync(force=True)

    def fill(self) -> None:
        """New lines come in above; a cursor on the newest goes with them."""
        table = self.table()
        newest = bool(table.rows) and table.cursor_key == table.rows[0].key
        super().fill()
        if newest:
            table.action_first()

    @on(ResourceTable.RowOpened)
    def _open(self, event: ResourceTable.RowOpened) -> None:
        event.stop()
        self.console.action_command("events.describe")
