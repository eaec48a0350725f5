"""The deployment form: tabs of rows, written in place, judged as it is written, saved by plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from textual import on
from textual.binding import BindingType
from textual.geometry import Region
from textual.timer import Timer
from textual.widget import Widget

from backend.domain.secrets import masked
from pdtui.commands import keymap
from pdtui.commands.model import Context
from pdtui.i18n import tr
from pdtui.i18n.catalog import word
from pdtui.present import form as drawn
from pdtui.present.cells import Line, Row, Span
from pdtui.present.status import glyphs
from pdtui.screens.base import Area, TableScreen
from pdtui.screens.dialogs.choose import ChooseDialog
from pdtui.state import yamltext
from pdtui.state.document import get
from pdtui.state.findings import elsewhere, placed, tab_of
from pdtui.state.form import Field, Form, Item, Tab
from pdtui.widgets.cell_editor import CellEditor
from pdtui.widgets.lines_view import LinesView, wrap
from pdtui.widgets.paint import Lines
from pdtui.widgets.resource_table import ResourceTable
from pdtui.widgets.tabs import TabBar

if TYPE_CHECKING:
    from backend.domain.errors import PdError, Problem
    from pdtui.screens.form_keeper import Keeper

CHECK_S = 0.4
"""Seconds without a change after which the document is judged and the draft written."""
State = Literal["untouched", "checking", "checked", "unchecked"]


class FormScreen(TableScreen):
    """One deployment under edit."""

    area: Area = "groups"
    scopes = ("list", "form")
    kinds = ("groups", "hosts")
    sortable = False
    BINDINGS: ClassVar[list[BindingType]] = [*keymap.bindings("list", "form")]
    DEFAULT_CSS = """
    FormScreen { layers: base above; }
    FormScreen #about { padding: 0 1 0 2; height: 5; }
    FormScreen #yaml { padding: 0 1 0 2; display: none; }
    FormScreen.-yaml #yaml { display: block; }
    FormScreen.-yaml #fields, FormScreen.-yaml #about { display: none; }
    """

    def __init__(self, form: Form, keeper: Keeper, *, text: str = "") -> None:
        """`keeper` holds the draft; `text` is YAML of an earlier draft that could not be read."""
        super().__init__()
        self.form = form
        self.tab: Tab = "deployment"
        self.problems: list[Problem] = []
        self.state: State = "untouched"
        self.bad_text = text
        self.keeper = keeper
        self._items: dict[str, Item] = {}
        self._placed: dict[str, list[Problem]] = {}
        self._rest: list[Problem] = []
        self._cursors: dict[Tab, str] = {}
        self._serial = 0
        self._timer: Timer | None = None
        self._away = False

    # for the base

    def body(self) -> Iterable[Widget]:
        """Tabs, the fields or the text, what is said of the field."""
        yield TabBar(widget_id="tabs")
        yield ResourceTable(drawn.columns(), widget_id="fields")
        yield LinesView(widget_id="yaml")
        yield Lines(widget_id="about")
        yield CellEditor(widget_id="editor")

    def path(self) -> list[str]:
        """New, or the deployment's name."""
        known = get(self.form.original, "metadata.name") if self.form.original else None
        return [str(known), tr("form.edit")] if known else [tr("form.new")]

    def home_widget(self) -> Widget:
        """The fields, or the text."""
        return self.query_one("#yaml") if self.tab == "yaml" else self.table()

    def rows(self) -> list[Row]:
        """The rows of the tab."""
        items = self.form.items(self.tab)
        self._items = {i.key: i for i in items}
        self._placed = placed(items, self.problems)
        self._rest = elsewhere(self.tab, self._placed, self.problems)
        return [*drawn.rows(items, self._placed), *drawn.rest(self._rest)]

    def nothing(self) -> list[Line]:
        """Every tab has rows."""
        return []

    def item(self) -> Item | None:
        """The row under the cursor."""
        return self._items.get(self.table().cursor_key or "") if self.tab != "yaml" else None

    def _finding(self) -> Problem | None:
        """The finding under the cursor, where it stands at no field."""
        _, _, number = (self.table().cursor_key or "").partition("finding:")
        return self._rest[int(number)] if number and self.tab != "yaml" else None

    def context(self) -> Context:
        """The field under the cursor."""
        return self.console.base_context(item=self.item(), form=self.form)

    def fill(self) -> None:
        """Tabs, rows, and what is said of the one under the cursor."""
        if self.tab not in self.form.tabs:
            self.tab = "disaggregation"
        self.set_class(self.tab == "yaml", "-yaml")
        tabs = drawn.tabs(self.form, self.problems, self.tab)
        standing = drawn.verdict_line(self.problems, self.state)
        self.query_one(TabBar).offer([(str(t), shown) for t, shown in tabs], self.tab, standing)
        if self.tab == "yaml":
            self.query_one("#yaml", LinesView).show(self._text())
        else:
            super().fill()
        self._about()
        if self.state == "unchecked" and self.console.store.connected:
            self._wait()

    def _text(self) -> list[Line]:
        if self.bad_text:
            lines = self.bad_text.splitlines()
            return [(Span(tr("form.bad_text"), "bad"),), (), *((Span(t),) for t in lines)]
        text = yamltext.dump(masked(self.form.output()))
        return [(Span(t),) for t in text.splitlines()]

    def _about(self) -> None:
        about = self.query_one("#about", Lines)
        most = 4 if self.size.height < 30 else 8
        about.styles.height = most + 1
        width = max(20, self.size.width - 4)
        item = self.item()
        found = self._placed.get(item.key, []) if item else []
        lines = drawn.about(self.form, item, found, list(self.console.store.hosts.values()))
        if item is None and (one := self._finding()) is not None:
            lines = drawn.about_finding(one)
        wrapped = [w for one in lines for w in wrap(one, width)]
        rule: Line = (Span(glyphs().rule * (width + 1), "off"),)
        about.show([rule, *wrapped[:most]])

    # life

    def on_mount(self) -> None:
        """A form that begins with something is judged at once."""
        super().on_mount()
        if self.form.changed or self.form.original is not None:
            self._wait()

    async def on_unmount(self) -> None:
        """What was typed last is on disk, for whoever opens it next."""
        if not self._away and self.form.changed:
            await self.keeper.release(self.form, self.bad_text)

    def change(self, form: Form) -> None:
        """Take a changed form: draw it, then judge and keep it once the typing rests."""
        if form != self.form:
            self.form = form
            self._wait()
        self.fill()
        self.key_bar()

    def _wait(self) -> None:
        self._serial += 1
        self.state = "checking"
        if self._timer:
            self._timer.stop()
        self._timer = self.set_timer(CHECK_S, self._rested)

    def _rested(self) -> None:
        serial, document = self._serial, self.form.output()
        if self.form.changed or self.bad_text:
            self.keeper.keep(self.form, self.bad_text)
        session = self.console.session
        if session is None or not self.console.store.connected:
            self._judged(serial, None)
            return
        session.check(
            document,
            lambda found: self._judged(serial, found),
            lambda error: self._not_judged(serial, error),
        )

    def _judged(self, serial: int, found: Sequence[Problem] | None) -> None:
        if serial != self._serial or not self.is_mounted:
            return
        self.state = "unchecked" if found is None else "checked"
        if found is not None:
            self.problems = [*self._own(), *found]
        self.fill()

    def _not_judged(self, serial: int, error: PdError) -> bool:
        self._judged(serial, error.problems if error.status in (400, 422) else None)
        return True

    def _own(self) -> list[Problem]:
        from backend.domain.errors import Problem

        name = self.form.name
        if self.form.original is None and name in self.console.store.groups:
            text = tr("form.taken", name=name)
            return [Problem(rule="form.name_taken", path="metadata.name", message=text)]
        return []

    # moving

    def go(self, tab: Tab) -> None:
        """To another tab; its cursor stands where it was."""
        if tab == self.tab:
            return
        self.query_one(CellEditor).close()
        if self.tab != "yaml" and (key := self.table().cursor_key):
            self._cursors[self.tab] = key
        self.tab = tab
        self.fill()
        if tab != "yaml":
            self.table().action_first()
            if (first := self._cursors.get(tab)) and self.table().select(first):
                pass
            elif self.table().rows and self.table().rows[0].heading:
                self.table().action_cursor_down()
        self.home_widget().focus()
        self.key_bar()
        self._about()

    def turn(self, by: int) -> None:
        """To the next tab, round the end."""
        tabs = self.form.tabs
        self.go(tabs[(tabs.index(self.tab) + by) % len(tabs)])

    def show_problem(self, problem: Problem) -> None:
        """To the field of a finding."""
        self.go(tab_of(problem.path))
        if key := next((k for k, found in self._placed.items() if problem in found), None):
            self.table().select(key)
        self._about()

    # writing

    def write(self, item: Item) -> None:
        """Change what is under the cursor: choose a mode, pick a value, or write in place."""
        if item.part == "mode":
            mode = next((m for m in self.form.modes if m.name == item.name), None)
            if self.form.why_not(mode) and mode:
                wanted = " / ".join(mode.engines)
                text = tr("form.mode.other_engine", engines=wanted, engine=self.form.engine)
                self.say(text, "warn")
            else:
                self.change(self.form.choose_mode(item.name or None))
        elif item.locked or item.marker == "platform":
            self.say(tr("form.locked" if item.part == "entry" else "form.name_stays"), "warn")
        elif item.field.kind == "choice":
            self._choose(item)
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

    def _write_in_place(self, item: Item) -> None:
        self.table().select(item.key)

        def open_box() -> None:
            if (box := self._box(item)) is not None:
                self.query_one(CellEditor).open(item.key, item.text, box)

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
                self.change(self.form.with_document(found))
                return
            self.bad_text = text
            self.say(tr("form.unreadable", why=tr("form.no_mapping")), "bad")
        self._wait()
        self.go("yaml")
        self.fill()

    # leaving

    def may_leave(self) -> bool:
        """Whether nothing would be lost; asks otherwise."""
        if not self.form.changed:
            self.keeper.forget()
            return True
        from pdtui.screens.form_keeper import ask_to_leave

        ask_to_leave(self)
        return False

    def leave(self, *, keep: bool) -> None:
        """Close the form; its draft is for the next one, or gone."""
        if not keep:
            self._away = True
            self.keeper.forget()
        self.console.pop_screen()

    def back(self) -> None:
        """Escape closes the box, then the filter, then asks."""
        if self.query_text:
            super().back()
        elif self.may_leave():
            self.console.pop_screen()

    @on(CellEditor.Written)
    def _written(self, event: CellEditor.Written) -> None:
        event.stop()
        self.table().focus()
        item = self._items.get(event.key)
        if item is None:
            return
        if item.part != "add" or event.text.strip():
            self.change(self.form.edit(item, event.text))
            self.table().select(item.key)

    @on(CellEditor.Left)
    def _left(self, event: CellEditor.Left) -> None:
        event.stop()
        self.table().focus()

    @on(TabBar.Chosen)
    def _tab_chosen(self, event: TabBar.Chosen) -> None:
        event.stop()
        self.go(event.tab)  # type: ignore[arg-type]

    @on(ResourceTable.RowOpened)
    def _open(self, event: ResourceTable.RowOpened) -> None:
        event.stop()
        if item := self._items.get(event.key):
            self.write(item)

    @on(ResourceTable.RowHighlighted)
    def _row_highlighted_here(self, event: ResourceTable.RowHighlighted) -> None:
        self._about()

    def on_resize(self) -> None:
        """A box that is open follows its cell."""
        super().on_resize()
        if self.query_one(CellEditor).writing:
            self.call_after_refresh(self._follow_cell)

    def _follow_cell(self) -> None:
        editor = self.query_one(CellEditor)
        item = self._items.get(editor.key)
        if item is None or not editor.writing:
            return
        if (box := self._box(item)) is not None:
            editor.place(box)
