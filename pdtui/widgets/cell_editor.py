"""A box laid over one table cell, to write in where the value stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.message import Message
from textual.widgets import Input


class CellEditor(Input):
    """Enter posts `Written`, escape and losing the keys `Left`."""

    DEFAULT_CSS = """
    CellEditor, CellEditor:focus {
        layer: above; position: absolute; display: none; height: 1; border: none; padding: 0;
        background: $match; color: $match-text; background-tint: transparent;
    }
    CellEditor.-open { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", show=False)]

    @dataclass
    class Written(Message):
        """The text stands."""

        key: str
        text: str

    class Left(Message):
        """Nothing is to be changed."""

    def __init__(self, *, widget_id: str | None = None) -> None:
        super().__init__(id=widget_id, compact=True, select_on_focus=False)
        self.cursor_blink = False
        self.key = ""

    def open(self, key: str, text: str, region: Region) -> None:
        """Write at `region` (screen cells) on behalf of the row `key`."""
        self.key = key
        self.place(region)
        with self.prevent(Input.Changed):
            self.value = text
        self.cursor_position = len(text)
        self.add_class("-open")
        self.focus()

    def place(self, region: Region) -> None:
        """Follow the cell."""
        self.styles.offset = (region.x, region.y)
        self.styles.width = region.width

    @property
    def writing(self) -> bool:
        """Whether it is open."""
        return self.has_class("-open")

    def close(self) -> None:
        """Hide."""
        self.remove_class("-open")

    def action_leave(self) -> None:
        """Change nothing."""
        self.close()
        self.post_message(self.Left())

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.close()
        self.post_message(self.Written(self.key, event.value))
