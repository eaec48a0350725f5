"""Yes or no: in a box that says what will happen, in one line, or by typing a name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Button, Input

from pdtui.i18n import tr
from pdtui.present.cells import Line, Span
from pdtui.screens.dialogs.base import Dialog, button
from pdtui.widgets.lines_view import LinesView, wrap
from pdtui.widgets.paint import Lines


class Confirm(Dialog[bool]):
    """A question with what the answer does. With `name`, yes needs that name typed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", show=False),
        Binding("n", "answer(False)", show=False),
        Binding("left,up,h", "app.focus_previous", show=False),
        Binding("right,down", "app.focus_next", show=False),
    ]

    def __init__(
        self,
        title: str,
        lines: Sequence[Line],
        yes: str,
        *,
        no: str = "",
        danger: bool = False,
        name: str = "",
    ) -> None:
        super().__init__(title, danger=danger)
        self._lines = list(lines)
        self._yes, self._no = yes, no or tr("dialog.cancel")
        self._typed_name = name

    def content(self) -> Iterable[Widget]:
        """Lines, the box for the name, the answers."""
        view = LinesView(self._lines)
        view.can_focus = len(self._lines) > 12
        yield view
        if self._typed_name:
            ask = tr("dialog.type_name", name=self._typed_name)
            yield Lines([(Span(ask, "dim"),)], widget_id="hint")
            yield Input(id="name", compact=True)
        with Horizontal(id="buttons"):
            yield button(self._yes, "yes")
            yield button(self._no, "no")

    def on_mount(self) -> None:
        """The harmless answer has the keys; a name has to be typed first."""
        if self._typed_name:
            self.query_one("#yes", Button).disabled = True
            box = self.query_one("#name", Input)
            box.cursor_blink = False
            box.focus()
        else:
            self.query_one("#no" if self.has_class("-danger") else "#yes", Button).focus()

    def action_answer(self, yes: bool) -> None:
        """y or n; y alone never destroys."""
        if yes and self._typed_name:
            return
        self.dismiss(yes)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self.query_one("#yes", Button).disabled = event.value != self._typed_name

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if event.value == self._typed_name:
            self.dismiss(True)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        self.dismiss(event.button.id == "yes")


class LineQuestion(ModalScreen[bool]):
    """A question of one line at the bottom, the screen still readable above it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,enter", "answer(True)", show=False),
        Binding("n,escape,q", "answer(False)", show=False),
    ]

    def __init__(self, lines: Sequence[Line]) -> None:
        super().__init__()
        self._lines = list(lines)

    def compose(self) -> ComposeResult:
        """What happens, and the two keys."""
        yield Lines(widget_id="question")

    def on_resize(self) -> None:
        """The sentences wrap at the terminal's width."""
        keys = (
            Span("y", "accent"),
            Span(f" {tr('dialog.yes')}   ", "dim"),
            Span("n", "accent"),
            Span(f" {tr('dialog.no')}", "dim"),
        )
        room = self.size.width - 2
        said = [piece for line in self._lines for piece in wrap(line, room)]
        self.query_one("#question", Lines).show([*said, keys])

    def action_answer(self, yes: bool) -> None:
        """The answer."""
        self.dismiss(yes)
