"""An inventory entry: written in a few boxes, saved as a whole, refused at its field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widget import Widget
from textual.widgets import Input

from pdtui.i18n import tr
from pdtui.present.cells import Line, Span, padded
from pdtui.screens.dialogs.base import Dialog
from pdtui.state.hostform import FIELDS, document, texts
from pdtui.widgets.lines_view import wrap
from pdtui.widgets.paint import Lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from backend.domain.errors import PdError, Problem

    Save = Callable[[dict[str, Any], Callable[[PdError], bool]], None]

LABEL = 16


class HostDialog(Dialog[None]):
    """`save` is called with the entry; a refusal comes back, and the boxes stay as they are."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "app.focus_next", show=False),
        Binding("up", "app.focus_previous", show=False),
    ]
    DEFAULT_CSS = """
    HostDialog > #box { width: 78; }
    HostDialog #rows { height: auto; }
    HostDialog .row { height: 1; }
    HostDialog .row Lines { width: 18; }
    HostDialog .row Input { width: 1fr; }
    HostDialog #said { margin-top: 1; }
    """

    def __init__(self, save: Save, entry: Mapping[str, Any] | None = None) -> None:
        name = str(entry["name"]) if entry else ""
        super().__init__(tr("hostform.edit", name=name) if entry else tr("hostform.add"))
        self._save = save
        self._entry = dict(entry or {})
        self._texts = texts(self._entry)

    def content(self) -> Iterable[Widget]:
        """A box a field, then what is wrong, then the keys."""
        with Vertical(id="rows"):
            for name in FIELDS:
                with Horizontal(classes="row"):
                    label = padded(tr(f"hostform.{name}"), LABEL)
                    yield Lines([(Span(label, "dim"),)], widget_id=f"label-{name}")
                    yield Input(
                        self._texts[name],
                        tr(f"hostform.hint.{name}"),
                        id=f"box-{name}",
                        compact=True,
                        select_on_focus=False,
                        disabled=name == "name" and bool(self._entry),
                    )
        yield Lines(widget_id="said")
        yield Lines([(Span(tr("hostform.keys"), "dim"),)], widget_id="hint")

    def on_mount(self) -> None:
        """The first box that can be written has the keys."""
        for box in self.query(Input):
            box.cursor_blink = False
        self.query_one("#box-address" if self._entry else "#box-name", Input).focus()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        found = {name: self.query_one(f"#box-{name}", Input).value for name in FIELDS}
        self._save(document(found, self._entry), self._refused)

    def _refused(self, error: PdError) -> bool:
        """Show each finding at its field; True when they are about the entry."""
        if error.status not in (400, 409, 422) or not self.is_mounted:
            return False
        said: list[Line] = []
        width = max(20, self.query_one("#said").size.width)
        for name in FIELDS:
            mine = any(_field(p) == name for p in error.problems)
            label = padded(tr(f"hostform.{name}"), LABEL)
            shown = self.query_one(f"#label-{name}", Lines)
            shown.show([(Span(label, "bad" if mine else "dim"),)])
        for problem in error.problems:
            said += wrap((Span(problem.message, "bad"), Span(f" {problem.remedy}", "dim")), width)
        self.query_one("#said", Lines).show(said)
        first = next((n for p in error.problems if (n := _field(p)) in FIELDS), None)
        if first:
            self.query_one(f"#box-{first}", Input).focus()
        return True


def _field(problem: Problem) -> str:
    return problem.path.removeprefix("host.").split(".")[0].split("[")[0]
