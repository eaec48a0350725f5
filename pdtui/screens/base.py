"""What every screen of the console shares: its bars, its place, and how it follows the store."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Literal, cast, get_args

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input

from pdtui.commands import catalog
from pdtui.commands.model import Context, Scope
from pdtui.i18n import tr
from pdtui.present.cells import Line, Row, Span, Tone
from pdtui.present.numbers import count
from pdtui.present.status import glyphs
from pdtui.state.messages import StoreChanged
from pdtui.state.query import Sorting, ordered, select
from pdtui.widgets.bars import KeyBar, StatusBar, TitleBar
from pdtui.widgets.filter_bar import FilterBar
from pdtui.widgets.resource_table import ResourceTable

if TYPE_CHECKING:
    from pdtui.app import Console
    from pdtui.state.store import Kind

Area = Literal["groups", "hosts", "events", "modes", "instances", "caches", "settings"]
AREAS: tuple[Area, ...] = get_args(Area)
"""The areas in the order of their number keys."""
TICK_S = 5.0
"""Seconds between two looks at the clock, for ages."""


class ConsoleScreen(Screen[None]):
    """A full screen. Subclasses say what it is made of (`body`) and how it is filled (`fill`)."""

    area: Area
    scopes: ClassVar[tuple[Scope, ...]]
    kinds: ClassVar[tuple[Kind, ...]]
    prompt: ClassVar[str] = "/"
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self) -> None:
        super().__init__()
        self._seen = -1
        self._tick: Timer | None = None

    @property
    def console(self) -> Console:
        """The app, by its own type."""
        return cast("Console", self.app)

    # for subclasses

    def body(self) -> Iterable[Widget]:
        """The widgets between the title and the status line."""
        raise NotImplementedError

    def fill(self) -> None:
        """Draw what the store holds now."""
        raise NotImplementedError

    def path(self) -> list[str]:
        """Where in the area this is."""
        return []

    def context(self) -> Context:
        """What stands under the cursor."""
        return self.console.base_context()

    def back(self) -> None:
        """Escape: close the filter first, then this screen."""
        bar = self.query_one(FilterBar)
        if bar.has_class("-open"):
            bar.action_clear()
        elif len(self.console.screen_stack) > 1:
            self.console.pop_screen()

    async def relabel(self) -> None:
        """Make the widgets anew, in the language that is now in use."""
        if not self.is_mounted:
            return
        self.relabelled()
        await self.recompose()
        self._seen = -1
        self.home_widget().focus()
        self.sync(force=True)

    def relabelled(self) -> None:
        """Forget what was drawn in the language before."""

    def may_leave(self) -> bool:
        """Whether nothing is lost when this screen is closed; a screen that says no asks."""
        return True

    def home_widget(self) -> Widget:
        """The widget that has the keys."""
        return self.query_one(ResourceTable)

    # life

    def compose(self) -> ComposeResult:
        """Title, body, filter, status, keys."""
        yield TitleBar()
        yield from self.body()
        yield FilterBar(self.prompt)
        yield StatusBar()
        yield KeyBar()

    def on_mount(self) -> None:
        """Take the keys and draw."""
        self.home_widget().focus()
        self._tick = self.set_interval(TICK_S, self._on_tick)

    def on_screen_resume(self) -> None:
        """Catch up with what was missed while covered."""
        if self._tick:
            self._tick.resume()
        self.sync(force=True)

    def on_screen_suspend(self) -> None:
        """No clock while covered."""
        if self._tick:
            self._tick.pause()

    def on_resize(self) -> None:
        """Some screens share their height out anew."""
        if self._seen >= 0:
            self.sync(force=True)

    def _on_tick(self) -> None:
        self.sync(force=True)

    @on(StoreChanged)
    def _store_changed(self, event: StoreChanged) -> None:
        event.stop()
        self.sync()

    def sync(self, *, force: bool = False) -> None:
        """Draw again if something this screen shows has changed."""
        revision = self.console.store.revision(*self.kinds, "health", "connection")
        if force or revision != self._seen:
            self._seen = revision
            self.fill()
        self.bars()

    def bars(self) -> None:
        """The lines around the body."""
        names = [tr(f"area.{a}") for a in AREAS]
        self.query_one(TitleBar).place(names, AREAS.index(self.area), self.path())
        self.query_one(StatusBar).facts(self._facts())
        self.key_bar()

    def key_bar(self) -> None:
        """The keys as they stand for what is under the cursor."""
        bar, box = self.query_one(KeyBar), self.focused
        if isinstance(box, Input):
            what = "filter" if isinstance(box.parent, FilterBar) else "box"
            bar.tell([(key, tr(f"{what}.key.{key}")) for key in ("enter", "esc")])
            return
        shown = catalog.bar("app", *self.scopes, first=self.urgent(), without=self.unfit())
        ctx = self.console.context_of(self)
        bar.offer(shown, ctx, self.console.own_keys, self.titles())

    def on_descendant_focus(self) -> None:
        """A box that is written in takes other keys than what it lies on."""
        self.key_bar()

    def unfit(self) -> frozenset[str]:
        """Ids of commands that make no sense on what is shown now, and leave room for others."""
        return frozenset()

    def titles(self) -> dict[str, str]:
        """What keys do here, by command id, where the table's own word says too little."""
        return {}

    def urgent(self) -> list[str]:
        """Ids of the commands that what is shown now asks for; they come first in the key bar."""
        return []

    def say(self, text: str, tone: Tone = "dim") -> None:
        """A message in the status line."""
        self.query_one(StatusBar).say(text, tone)

    @on(KeyBar.Pressed)
    def _key_clicked(self, event: KeyBar.Pressed) -> None:
        event.stop()
        if event.command.owner == "widget":
            self.run_worker(
                self.home_widget().run_action(event.command.action), group="click", exclusive=True
            )
        else:
            self.console.action_command(event.command.id)

    def _waiting(self) -> Line:
        """What stands in place of everything until the backend has answered once."""
        if self.console.store.failed:
            return (Span(f"{glyphs().cross} {tr('status.failed')}", "bad"),)
        return (Span(tr("status.connecting"), "busy"),)

    def _facts(self) -> Line:
        store, marks = self.console.store, glyphs()
        health = store.health
        spans: list[Span] = []
        if not store.loaded:
            return self._waiting()
        if not store.connected:
            spans.append(Span(f"{marks.cross} {tr('status.disconnected')}", "bad"))
        else:
            kind = "embedded" if health and health.embedded else "daemon"
            spans.append(Span(f"{marks.full} ", "ok"))
            spans.append(Span(tr(f"status.{kind}"), "dim"))
        if self.console.read_only:
            spans.append(Span(f"  {tr('status.read_only')}", "warn"))
        counts = tr("comma").join(
            (
                count(len(store.groups), tr("group.one"), tr("group.many")),
                count(len(store.hosts), tr("host.one"), tr("host.many")),
            )
        )
        spans.append(Span(f"  {counts}", "dim"))
        standing = sum(len(g.alerts) for g in store.groups.values())
        if standing:
            said = count(standing, tr("alerts.one"), tr("alerts.many"))
            spans.append(Span(f"  {marks.warn} {said}", "bad"))
        return (*spans, *self.facts_here())

    def facts_here(self) -> Line:
        """What this screen has to say beside who answers."""
        return ()


class TableScreen(ConsoleScreen):
    """A screen whose body is one table that `/` filters, `O` sorts and space marks rows of."""

    markable: ClassVar[bool] = False
    sortable: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.query_text = ""
        self.sorting = Sorting()
        self.marked: set[str] = set()

    def rows(self) -> list[Row]:
        """Every row, unfiltered."""
        raise NotImplementedError

    def nothing(self) -> list[Line]:
        """What an empty table says."""
        raise NotImplementedError

    def table(self) -> ResourceTable:
        """The table."""
        return self.query_one(ResourceTable)

    def fill(self) -> None:
        """Rows, filtered."""
        table = self.table()
        every = self.rows()
        shown = select(every, table.columns, self.query_text)
        shown = ordered(shown, table.columns, self.sorting)
        self.marked &= {r.key for r in every}
        table.set_marked(self.marked)
        table.set_sorting(self.sorting)
        if self.query_text and not shown:
            table.set_empty([(Span(tr("filter.none", query=self.query_text), "dim"),)])
        else:
            table.set_empty(self.nothing() if self.console.store.loaded else [self._waiting()])
        table.set_rows(shown)

    def ask_filter(self) -> None:
        """Open the filter box."""
        self.query_one(FilterBar).open()

    async def relabel(self) -> None:
        """The cursor stays on its row."""
        key = self.table().cursor_key if self.is_mounted else None
        await super().relabel()
        if key:
            self.table().select(key)

    def sort_by(self, column: str) -> None:
        """Sort by a column; the same again turns the order round, an empty one ends it."""
        self.sorting = self.sorting.by(column)
        self.sync(force=True)
        self.table().action_first()

    def mark(self) -> None:
        """Mark the row under the cursor or take its mark away, and go on to the next."""
        table = self.table()
        key = table.cursor_key
        if key is not None and not table.on_heading:
            self.marked ^= {key}
        table.action_cursor_down()
        self.sync(force=True)

    def mark_all(self) -> None:
        """Mark every row that is shown, or none any more."""
        shown = {r.key for r in self.table().rows if not r.heading}
        self.marked = set() if shown <= self.marked else self.marked | shown
        self.sync(force=True)

    def back(self) -> None:
        """Marks, then a filter that stands, are cleared before the screen is left."""
        if self.marked:
            self.marked.clear()
            self.sync(force=True)
        elif self.query_text:
            self.query_one(FilterBar).action_clear()
        else:
            super().back()

    def facts_here(self) -> Line:
        """How many rows are marked, and how many of all are shown."""
        table = self.query(ResourceTable)
        spans: list[Span] = []
        if self.marked:
            spans.append(Span(f"  {tr('list.marked', count=len(self.marked))}", "accent"))
        if self.query_text and table:
            shown = sum(not r.heading for r in table.first().rows)
            spans.append(Span(f"  {tr('list.shown', count=shown)}", "accent"))
        return tuple(spans)

    @on(FilterBar.Edited)
    def _filter_edited(self, event: FilterBar.Edited) -> None:
        event.stop()
        self.query_text = event.text
        self.fill()

    @on(FilterBar.Done)
    def _filter_done(self, event: FilterBar.Done) -> None:
        event.stop()
        self.home_widget().focus()

    @on(FilterBar.Cleared)
    def _filter_cleared(self, event: FilterBar.Cleared) -> None:
        event.stop()
        self.query_text = ""
        self.fill()
        self.home_widget().focus()

    @on(ResourceTable.RowHighlighted)
    def _row_highlighted(self, event: ResourceTable.RowHighlighted) -> None:
        event.stop()
        self.key_bar()
