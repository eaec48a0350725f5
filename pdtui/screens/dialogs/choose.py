"""One of a few values, chosen from a list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.widget import Widget

from pdtui.i18n import tr
from pdtui.present.cells import Cell, Column, Row, Span
from pdtui.screens.dialogs.base import Dialog
from pdtui.widgets.lines_view import wrap
from pdtui.widgets.paint import Lines
from pdtui.widgets.resource_table import ResourceTable


class ChooseDialog(Dialog[str]):
    """Answers with the chosen key; escape answers nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q", "leave", show=False)]
    DEFAULT_CSS = """
    ChooseDialog ResourceTable { background: $surface; }
    """

    def __init__(
        self,
        title: str,
        options: Sequence[tuple[str, str]],
        current: str = "",
        *,
        bare: bool = False,
        barred: Mapping[str, str] | None = None,
    ) -> None:
        """`options` are keys with what each means; `bare` shows the meanings alone. `barred` are
        those that cannot be chosen, with why."""
        super().__init__(title)
        self._barred = dict(barred or {})
        self._bare = bare
        self._options = list(options)
        self._current = current

    def content(self) -> Iterable[Widget]:
        """One table."""
        key = Column("key", "", least=8, most=30)
        means = Column("means", "", 0 if self._bare else 1, 8, 80, grow=True)
        yield ResourceTable((means,) if self._bare else (key, means), widget_id="options")
        yield Lines(widget_id="why")

    def on_mount(self) -> None:
        """The present value is under the cursor."""
        table = self.query_one(ResourceTable)
        table.styles.height = min(16, len(self._options) + 1)
        table.set_rows([self._row(k, means) for k, means in self._options])
        table.select(self._current)
        table.focus()

    def _row(self, key: str, means: str) -> Row:
        if why_not := self._barred.get(key):
            return Row(key, (Cell.of(key, "off"), Cell.of(f"{means}{tr('colon')}{why_not}", "off")))
        if self._bare:
            return Row(key, (Cell.of(means),))
        return Row(key, (Cell.of(key), Cell.of(means, "dim")))

    @on(ResourceTable.RowHighlighted)
    def _say_why_not(self, event: ResourceTable.RowHighlighted) -> None:
        event.stop()
        why_not = self._barred.get(event.key or "")
        width = max(20, self.query_one("#why").size.width)
        lines = wrap((Span(why_not, "warn"),), width) if why_not else []
        self.query_one("#why", Lines).show(lines)

    @on(ResourceTable.RowOpened)
    def _chosen(self, event: ResourceTable.RowOpened) -> None:
        event.stop()
        if event.key not in self._barred:
            self.dismiss(event.key)
