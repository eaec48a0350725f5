"""An entry written in a few boxes, saved as a whole, refused at its field."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widget import Widget
from textual.widgets import Input

from pdtui.i18n import tr
from pdtui.present.cells import Line, Span, padded
from pdtui.present.problems import said
from pdtui.screens.dialogs.base import Dialog
from pdtui.widgets.lines_view import wrap
from pdtui.widgets.paint import Lines

if TYPE_CHECKING:
    from backend.domain.errors import PdError, Problem

    Save = Callable[[dict[str, Any], Callable[[PdError], bool]], None]

LABEL = 16


class EntryDialog(Dialog[None]):
    """`save` is called with what the boxes tell; a refusal comes back, and the boxes stay.

    Subclasses name their `fields` and the `prefix` of their texts (`PREFIX.FIELD` is a label,
    `PREFIX.hint.FIELD` what an empty box says), and turn texts into a document.
    """

    fields: ClassVar[Sequence[str]]
    prefix: ClassVar[str]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "app.focus_next", show=False),
        Binding("up", "app.focus_previous", show=False),
    ]
    DEFAULT_CSS = """
    EntryDialog #rows { height: auto; }
    EntryDialog .row { height: 1; }
    EntryDialog .row Lines { width: 18; }
    EntryDialog .row Input { width: 1fr; }
    EntryDialog #said { margin-top: 1; }
    """

    def __init__(self, title: str, save: Save, texts: dict[str, str], *, known: bool) -> None:
        """`known` is whether the entry is there already: its name stays then."""
        super().__init__(title)
        self._save = save
        self._texts = texts
        self._known = known

    def document(self, written: dict[str, str]) -> dict[str, Any]:
        """What the boxes tell."""
        raise NotImplementedError

    def field_of(self, problem: Problem) -> str:
        """The field a finding is about; anything else when it is about none."""
        raise NotImplementedError

    def content(self) -> Iterable[Widget]:
        """A box a field, then what is wrong, then the keys."""
        with Vertical(id="rows"):
            for name in self.fields:
                with Horizontal(classes="row"):
                    label = padded(tr(f"{self.prefix}.{name}"), LABEL)
                    yield Lines([(Span(label, "dim"),)], widget_id=f"label-{name}")
                    yield Input(
                        self._texts[name],
                        tr(f"{self.prefix}.hint.{name}"),
                        id=f"box-{name}",
                        compact=True,
                        select_on_focus=False,
                        disabled=name == "name" and self._known,
                    )
        yield Lines(widget_id="said")
        yield Lines([(Span(tr("hostform.keys"), "dim"),)], widget_id="hint")

    def on_mount(self) -> None:
        """The first box that can be written has the keys."""
        for box in self.query(Input):
            box.cursor_blink = False
        first = self.fields[1 if self._known else 0]
        self.query_one(f"#box-{first}", Input).focus()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        written = {name: self.query_one(f"#box-{name}", Input).value for name in self.fields}
        self._save(self.document(written), self._refused)

    def _refused(self, error: PdError) -> bool:
        """Show each finding at its field; True when they are about the entry."""
        if error.status not in (400, 409, 422) or not self.is_mounted:
            return False
        shown: list[Line] = []
        width = max(20, self.query_one("#said").size.width)
        for name in self.fields:
            mine = any(self.field_of(p) == name for p in error.problems)
            label = padded(tr(f"{self.prefix}.{name}"), LABEL)
            view = self.query_one(f"#label-{name}", Lines)
            view.show([(Span(label, "bad" if mine else "dim"),)])
        for problem in error.problems:
            message, remedy = said(problem)
            shown += wrap((Span(message, "bad"), Span(f" {remedy}", "dim")), width)
        self.query_one("#said", Lines).show(shown)
        first = next((n for p in error.problems if (n := self.field_of(p)) in self.fields), None)
        if first:
            self.query_one(f"#box-{first}", Input).focus()
        return True
