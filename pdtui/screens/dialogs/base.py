"""A box with a title, some lines and the answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Button

from pdtui.present.cells import Line, Span
from pdtui.present.status import ASCII, glyphs
from pdtui.widgets.paint import Lines

T = TypeVar("T")


class Dialog(ModalScreen[T]):
    """A modal box. Escape dismisses it without an answer."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", show=False)]

    def __init__(self, title: str, *, danger: bool = False) -> None:
        super().__init__()
        self._title_text = title
        self.set_class(danger, "-danger")
        self.set_class(glyphs() is ASCII, "-ascii")

    def content(self) -> Iterable[Widget]:
        """What stands below the title."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        """Title and content in a box."""
        with Vertical(id="box"):
            yield Lines([self.heading()], widget_id="title")
            yield from self.content()

    def heading(self) -> Line:
        """The title line."""
        return (Span(self._title_text, "bad" if self.has_class("-danger") else "strong"),)

    def action_leave(self) -> None:
        """No answer."""
        self.dismiss(None)


def button(text: str, answer: str) -> Button:
    """A one-line button with a literal label."""
    made = Button(Content(text), id=answer, compact=True)
    made.active_effect_duration = 0
    return made
