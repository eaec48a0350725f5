"""One of a few values, chosen from a list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.widget import Widget

from pdtui.present.cells import Cell, Column, Row
from pdtui.screens.dialogs.base import Dialog
from pdtui.widgets.resource_table import ResourceTable


class ChooseDialog(Dialog[str]):
    """Answers with the chosen key; escape answers nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q", "leave", show=False)]
    DEFAULT_CSS = """
    ChooseDialog > #box { width: 60; }
    ChooseDialog ResourceTable { background: $surface; }
    """

    def __init__(
        self,
        title: str,
        options: Sequence[tuple[str, str]],
        current: str = "",
        *,
        bare: bool = False,
    ) -> None:
        """`options` are keys with what each means; `bare` shows the meanings alone."""
        super().__init__(title)
        self._bare = bare
        self._options = list(options)
        self._current = current

    def content(self) -> Iterable[Widget]:
        """One table."""
        key = Column("key", "", least=8, most=30)
        means = Column("means", "", 0 if self._bare else 1, 8, 80, grow=True)
        yield ResourceTable((means,) if self._bare else (key, means), widget_id="options")

    def on_mount(self) -> None:
        """The present value is under the cursor."""
        table = self.query_one(ResourceTable)
        table.styles.height = min(16, len(self._options) + 1)
        table.set_rows(
            [
                Row(k, (Cell.of(means),) if self._bare else (Cell.of(k), Cell.of(means, "dim")))
                for k, means in self._options
            ]
        )
        table.select(self._current)
        table.focus()

    @on(ResourceTable.RowOpened)
    def _chosen(self, event: ResourceTable.RowOpened) -> None:
        event.stop()
        self.dismiss(event.key)
