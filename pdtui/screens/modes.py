"""The catalogue of modes: what each is for, and what it gives its router."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import BindingType
from textual.widget import Widget

from pdtui.commands import keymap
from pdtui.commands.model import Context
from pdtui.i18n import tr
from pdtui.present import modes
from pdtui.present.cells import Line, Row, Span
from pdtui.screens.base import Area, TableScreen
from pdtui.screens.text import TextScreen
from pdtui.widgets.resource_table import ResourceTable

if TYPE_CHECKING:
    from backend.domain.views import ModeView


class ModesScreen(TableScreen):
    """The list of modes, read when it is first shown."""

    area: Area = "modes"
    scopes = ("list", "modes")
    kinds = ()
    BINDINGS: ClassVar[list[BindingType]] = [*keymap.bindings("list", "modes")]

    def __init__(self) -> None:
        super().__init__()
        self.modes: tuple[ModeView, ...] = ()
        self._asked = False

    def body(self) -> Iterable[Widget]:
        """One table."""
        yield ResourceTable(modes.columns(), widget_id="modes")

    def rows(self) -> list[Row]:
        """One row a mode."""
        return modes.rows(self.modes)

    def nothing(self) -> list[Line]:
        """Not read yet."""
        return [(Span(tr("modes.none"), "dim"),)]

    def fill(self) -> None:
        """Ask once, as soon as somebody can answer."""
        super().fill()
        session = self.console.session
        if not self._asked and session and self.console.store.connected:
            self._asked = True
            session.modes(self._take)

    def _take(self, found: tuple[ModeView, ...]) -> None:
        self.modes = found
        if self.is_mounted:
            self.fill()
            self.key_bar()

    def context(self) -> Context:
        """The mode under the cursor."""
        key = self.table().cursor_key
        return self.console.base_context(mode=next((m for m in self.modes if m.name == key), None))

    @on(ResourceTable.RowOpened)
    def _open(self, event: ResourceTable.RowOpened) -> None:
        event.stop()
        mode = self.context().mode
        if mode is not None:
            self.console.push_screen(TextScreen("modes", [mode.name], lambda: modes.page(mode)))
