"""The one-line box that filters a table or searches a text; hidden until it is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input

from pdtui.present.cells import Span
from pdtui.widgets.paint import Lines


class FilterBar(Horizontal):
    """A prompt and a box. `Edited` follows every letter, `Done` enter, `Cleared` escape."""

    DEFAULT_CSS = """
    FilterBar { height: 1; display: none; padding: 0 1; }
    FilterBar.-open { display: block; }
    FilterBar > Lines { width: auto; min-width: 2; max-width: 12; margin-right: 1; }
    FilterBar > Input {
        width: 1fr; height: 1; border: none; padding: 0; background: $surface;
    }
    FilterBar > Input:focus { border: none; background-tint: transparent; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "clear", show=False)]

    @dataclass
    class Edited(Message):
        """The text changed."""

        text: str

    @dataclass
    class Done(Message):
        """The text stands; the keys go back to the view."""

        text: str

    class Cleared(Message):
        """The box was emptied and closed."""

    def __init__(self, prompt: str = "/") -> None:
        super().__init__()
        self._prompt = Lines([(Span(prompt, "accent"),)])
        self._input = Input(compact=True, select_on_focus=False)
        self._input.cursor_blink = False

    @property
    def value(self) -> str:
        """What is in the box."""
        return self._input.value

    def compose(self) -> ComposeResult:
        """The prompt and the box."""
        yield self._prompt
        yield self._input

    def open(self) -> None:
        """Show the box and take the keys."""
        self.add_class("-open")
        self._input.focus()

    def close(self) -> None:
        """Empty and hide the box, without a message."""
        self.remove_class("-open")
        with self._input.prevent(Input.Changed):
            self._input.value = ""

    def action_clear(self) -> None:
        """Empty and hide the box."""
        self.close()
        self.post_message(self.Cleared())

    @on(Input.Changed)
    def _edited(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Edited(event.value))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if not event.value:
            self.action_clear()
        else:
            self.post_message(self.Done(event.value))
