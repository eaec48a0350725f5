"""A page of lines about one thing: described, or what was changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from textual.binding import BindingType
from textual.widget import Widget

from pdtui.commands import keymap
from pdtui.commands.model import Scope
from pdtui.present.cells import Line
from pdtui.screens.base import Area, ConsoleScreen
from pdtui.widgets.lines_view import LinesView


class TextScreen(ConsoleScreen):
    """A page that is made anew from the store whenever that changes."""

    area: Area = "groups"
    scopes: ClassVar[tuple[Scope, ...]] = ("text", "describe")
    kinds = ("groups", "hosts")
    BINDINGS: ClassVar[list[BindingType]] = [*keymap.bindings("describe")]
    DEFAULT_CSS = """
    TextScreen LinesView { padding: 1 2; }
    """

    def __init__(self, area: Area, path: list[str], make: Callable[[], list[Line] | None]) -> None:
        """`make` gives the page, or None to leave it as it is (what it showed is gone)."""
        super().__init__()
        self.area = area
        self._path = path
        self._make = make

    def body(self) -> Iterable[Widget]:
        """One page."""
        yield LinesView(widget_id="page")

    def path(self) -> list[str]:
        """What it is about."""
        return self._path

    def home_widget(self) -> Widget:
        """The page."""
        return self.query_one(LinesView)

    def fill(self) -> None:
        """The page, from the store."""
        page = self._make()
        if page is not None:
            self.query_one(LinesView).show(page)

    @property
    def text(self) -> str:
        """The page as text, for copying."""
        return self.query_one(LinesView).text
