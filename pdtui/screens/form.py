"""The deployment form: tabs of rows, written in place, judged as it is written, saved by plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

from textual import on
from textual.binding import BindingType
from textual.timer import Timer
from textual.widget import Widget

from backend.domain.secrets import masked
from pdtui.commands import keymap
from pdtui.commands.model import Context
from pdtui.i18n import tr
from pdtui.present import form as drawn
from pdtui.present.cells import Line, Row, Span
from pdtui.present.status import glyphs
from pdtui.screens.base import Area, TableScreen
from pdtui.screens.form_writing import Writing
from pdtui.state.document import get
from pdtui.state.findings import elsewhere, placed, tab_of
from pdtui.state.form import ROLE_TABS, Form, Item, Tab
from pdtui.widgets.cell_editor import CellEditor
from pdtui.widgets.lines_view import LinesView, wrap
from pdtui.widgets.paint import Lines
from pdtui.widgets.resource_table import ResourceTable
from pdtui.widgets.tabs import TabBar

if TYPE_CHECKING:
    from backend.domain.errors import PdError, Problem
    from backend.domain.views import ModeChoice
    from pdtui.screens.form_keeper import Keeper

CHECK_S = 0.4
"""Seconds without a change after which the document is judged and the draft written."""
State = Literal["untouched", "checking", "checked", "unchecked"]


class FormScreen(Writing, TableScreen):
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

    def __init__(self, form: Form, keeper: Keeper, *, text: str = "", source: str = "") -> None:
        """`keeper` holds the draft; `text` is YAML of an earlier draft that could not be read,
        `source` the document as a person wrote it, whose comments are kept."""
        super().__init__()
        self.form = form
        self.tab: Tab = "deployment"
        self.problems: list[Problem] = []
        self.state: State = "untouched"
        self.bad_text = text
        self.source = source
        self._chosen_for = ""
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

    def unfit(self) -> frozenset[str]:
        """Where nothing is inherited, or nothing stands in rows, the keys for that are no help."""
        away = {"form.override", "form.inherit"} if self.tab not in ROLE_TABS else set()
        return frozenset(away | ({"form.add", "form.remove"} if self.tab == "yaml" else set()))

    def titles(self) -> dict[str, str]:
        """What enter does to the field under the cursor."""
        return {"list.open": tr(f"form.enter.{drawn.entering(self.item())}")}

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
        if self.console.store.connected:
            self._ask_choices()
            if self.state == "unchecked":
                self._wait()

    def _ask_choices(self) -> None:
        """Which modes this engine may take on the hosts there are; asked once an engine."""
        session, engine = self.console.session, self.form.engine
        if session is None or engine == self._chosen_for:
            return
        self._chosen_for = engine

        def take(found: tuple[ModeChoice, ...]) -> None:
            if self.is_mounted and self.form.engine == engine:
                self.form = replace(self.form, choices=found)
                self.fill()

        session.mode_choices(engine, take)

    def _text(self) -> list[Line]:
        if self.bad_text:
            lines = self.bad_text.splitlines()
            return [(Span(tr("form.bad_text"), "bad"),), (), *((Span(t),) for t in lines)]
        text = self.written(masked(self.form.output()))
        return [
            (Span(t, "dim" if t.lstrip().startswith("#") else "text"),) for t in text.splitlines()
        ]

    def _about(self) -> None:
        about = self.query_one("#about", Lines)
        most = 4 if self.size.height < 30 else 8
        about.styles.height = most + 1
        width = max(20, self.size.width - 4)
        item = self.item()
        found = self._placed.get(item.key, []) if item else []
        cell = self.table().cell_region(item.key, "value") if item else None
        hosts = list(self.console.store.hosts.values())
        lines = drawn.about(self.form, item, found, hosts, room=cell.width if cell else 0)
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
            await self.keeper.release(self.form, self.bad_text, self.source)

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
            self.keeper.keep(self.form, self.bad_text, self.source)
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
