"""A cache service: written in a few boxes, saved as a whole, refused at its field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pdtui.i18n import tr
from pdtui.screens.dialogs.entry import EntryDialog
from pdtui.state import cacheform

if TYPE_CHECKING:
    from backend.domain.errors import Problem
    from pdtui.screens.dialogs.entry import Save


class CacheDialog(EntryDialog):
    """A new service, or the one there is."""

    fields = cacheform.FIELDS
    prefix = "cacheform"

    def __init__(self, save: Save, document: Mapping[str, Any] | None = None) -> None:
        self._document = dict(document or {})
        texts = cacheform.texts(self._document)
        name = texts["name"]
        title = tr("cacheform.edit", name=name) if document else tr("cacheform.add")
        super().__init__(title, save, texts, known=bool(document))

    def document(self, written: dict[str, str]) -> dict[str, Any]:
        """The whole document."""
        return cacheform.document(written, self._document)

    def field_of(self, problem: Problem) -> str:
        """Findings name `metadata.name` and `spec.FIELD`."""
        path = problem.path.removeprefix("metadata.").removeprefix("spec.")
        return path.split(".")[0].split("[")[0]
