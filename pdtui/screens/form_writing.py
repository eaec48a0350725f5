"""Writing on the form: in place, from a list of values, or as text in the user's editor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from textual.geometry import Region

from pdtui.i18n import tr
from pdtui.i18n.catalog import word
from pdtui.present import form as drawn
from pdtui.screens.base import TableScreen
from pdtui.screens.dialogs.choose import ChooseDialog
from pdtui.state import yamltext
from pdtui.state.commented import updated
from pdtui.state.form import ROLE_TABS, Field, Form, Item, Tab
from pdtui.widgets.cell_editor import CellEditor

if TYPE_CHECKING:
    from backend.domain.views import CacheChoice


class Writing(TableScreen):
    """What the form's screen does with what a person writes."""

    form: Form
    tab: Tab
    bad_text: str
    source: str
    _items: dict[str, Item]

    def change(self, form: Form) -> None:
        """Take a changed form."""
        raise NotImplementedError

    def go(self, tab: Tab) -> None:
        """To another tab."""
        raise NotImplementedError

    def _wait(self) -> None:
        raise NotImplementedError

    def written(self, document: Mapping[str, Any]) -> str:
        """A document as YAML, with the comments it was written with."""
        return updated(self.source, document)

    def write(self, item: Item) -> None:
        """Change what is under the cursor: choose a mode, pick a value, or write in place."""
        if item.part == "mode":
            mode = next((m for m in self.form.modes if m.name == item.name), None)
            if why_not := self.form.why_not(mode):
                self.say(drawn.why_not(self.form, mode, why_not), "warn")
            else:
                self.change(self.form.choose_mode(item.name or None))
        elif item.locked or item.marker == "platform":
            self.say(tr("form.locked" if item.part == "entry" else "form.name_stays"), "warn")
        elif item.field.kind == "choice":
            self._choose(item)
        elif item.field.kind == "cache":
            self._choose_cache(item)
        elif item.part == "field" and item.field.kind in ("list", "env"):
            self.add_to(item.field)
        else:
            self._write_in_place(item)

    def add_to(self, one: Field) -> None:
        """Write a new row of a list."""
        if (place := self._items.get(f"{one.path}+")) is not None:
            self._write_in_place(place)

    def _choose(self, item: Item) -> None:
        options = [(o, word(item.field.name, o)) for o in item.options]
        options = [(key, "" if key == means else means) for key, means in options]
        title = word("field", item.field.name)

        def answered(chosen: str | None) -> None:
            if chosen:
                self.change(self.form.edit(item, chosen))

        self.console.push_screen(ChooseDialog(title, options, item.text), answered)

    def _choose_cache(self, item: Item) -> None:
        """None, in the engine's own process, or one of the services; each that may not be used
        says why."""

        def shown(found: tuple[CacheChoice, ...]) -> None:
            options = [(k, word("extended_kv_cache", k)) for k in ("none", "in_process")]
            options += [(f"service {c.name}", c.provider) for c in found]
            barred = {f"service {c.name}": c.why_not for c in found if c.why_not}
            title = word("field", item.field.name)
            self.console.push_screen(
                ChooseDialog(title, options, item.text, barred=barred), answered
            )

        def answered(chosen: str | None) -> None:
            if chosen:
                self.change(self.form.edit(item, chosen))

        role = self.tab if self.tab in ROLE_TABS else ""
        if session := self.console.session:
            session.cache_choices(self.form.mode_name or "", role, shown)

    def _write_in_place(self, item: Item) -> None:
        self.table().select(item.key)

        def open_box() -> None:
            if (box := self._box(item)) is not None:
                self.query_one(CellEditor).open(item.key, item.text, box)
            # the focus is given by the app, a message later
            self.console.call_later(self.console.release_keys)

        self.console.hold_keys()
        self.call_after_refresh(open_box)

    def _box(self, item: Item) -> Region | None:
        """Where an item's value stands on the screen."""
        region = self.table().cell_region(item.key, "value")
        inset = 2 if item.part in ("entry", "add") else 0
        return region.shrink((0, 0, 0, inset)) if region else None

    def act(self, item: Item, what: Literal["override", "inherit", "remove"]) -> None:
        """One key on a field or an entry."""
        field = item.field
        form = self.form.inherit(field) if what == "inherit" else self.form.override(field)
        self.change(self.form.remove(item) if what == "remove" else form)
        self.table().select(item.key) or self.table().select(item.field.path)

    def take_text(self, text: str) -> None:
        """The document as the editor left it; text that cannot be read is kept and shown."""
        self.bad_text = ""
        try:
            found: Any = yamltext.load(text)
        except ValueError as error:
            self.bad_text = text
            self.say(tr("form.unreadable", why=error), "bad")
        else:
            if isinstance(found, dict):
                self.source = text
                self.change(self.form.with_document(found))
                self._wait()
                return
            self.bad_text = text
            self.say(tr("form.unreadable", why=tr("form.no_mapping")), "bad")
        self._wait()
        self.go("yaml")
        self.fill()
