"""What went wrong: the message, the values, the remedy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import Button

from pdtui.i18n import tr
from pdtui.present.cells import Line
from pdtui.screens.dialogs.base import Dialog, button
from pdtui.widgets.lines_view import LinesView


class ErrorDialog(Dialog[None]):
    """Shown until it is closed."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,n", "leave", show=False)]

    def __init__(self, title: str, lines: list[Line]) -> None:
        super().__init__(title, danger=True)
        self._lines = lines

    def content(self) -> Iterable[Widget]:
        """The findings and one button."""
        view = LinesView(self._lines)
        view.can_focus = len(self._lines) > 12
        yield view
        with Horizontal(id="buttons"):
            yield button(tr("dialog.close"), "close")

    def on_mount(self) -> None:
        """The button has the keys."""
        self.query_one("#close", Button).focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Close."""
        event.stop()
        self.dismiss(None)
