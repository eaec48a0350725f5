"""An inventory entry: written in a few boxes, saved as a whole, refused at its field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pdtui.i18n import tr
from pdtui.screens.dialogs.entry import EntryDialog
from pdtui.state import hostform

if TYPE_CHECKING:
    from backend.domain.errors import Problem
    from pdtui.screens.dialogs.entry import Save


class HostDialog(EntryDialog):
    """A new entry, or the one there is."""

    fields = hostform.FIELDS
    prefix = "hostform"

    def __init__(self, save: Save, entry: Mapping[str, Any] | None = None) -> None:
        self._entry = dict(entry or {})
        name = str(self._entry.get("name", ""))
        title = tr("hostform.edit", name=name) if entry else tr("hostform.add")
        super().__init__(title, save, hostform.texts(self._entry), known=bool(entry))

    def document(self, written: dict[str, str]) -> dict[str, Any]:
        """The inventory entry."""
        return hostform.document(written, self._entry)

    def field_of(self, problem: Problem) -> str:
        """Findings name `host.FIELD`."""
        return problem.path.removeprefix("host.").split(".")[0].split("[")[0]
