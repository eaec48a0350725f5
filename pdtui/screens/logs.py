"""One instance's log: followed, searched, and that of its previous generations."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import BindingType
from textual.widget import Widget

from pdtui.commands import keymap
from pdtui.commands.model import Context
from pdtui.i18n import tr
from pdtui.i18n.catalog import word
from pdtui.present.cells import Line, Span
from pdtui.present.groups import ROLE_ORDER
from pdtui.present.status import glyphs, member_look
from pdtui.screens.base import Area, ConsoleScreen
from pdtui.widgets.filter_bar import FilterBar
from pdtui.widgets.log_pane import LogPane
from pdtui.widgets.paint import Lines

if TYPE_CHECKING:
    from backend.domain.views import LogChunk, MemberView

POLL_S = 0.5
"""Seconds between two reads while the end is followed and nothing came."""
RETRY_S = 3.0
"""Seconds after a read that failed."""


class LogScreen(ConsoleScreen):
    """The log of one member or router, with the group's others a key away."""

    area: Area = "groups"
    scopes = ("text", "log")
    kinds = ("groups",)
    BINDINGS: ClassVar[list[BindingType]] = [*keymap.bindings("log")]
    DEFAULT_CSS = """
    LogScreen #log-head { padding: 0 1; margin-bottom: 1; }
    """

    def __init__(self, group: str, instance: str, *, at_error: bool = False) -> None:
        """`at_error` goes to the earliest error once the log is there."""
        super().__init__()
        self._at_error = at_error
        self.group_name = group
        self.instance = instance
        self.generation: int | None = None
        """The generation asked for; None is the newest there is."""
        self._shown_generation = 0
        self._offset: int | None = None

    # for the base

    def body(self) -> Iterable[Widget]:
        """A line about the member, then its log."""
        yield Lines(widget_id="log-head")
        yield LogPane(widget_id="log")

    def path(self) -> list[str]:
        """Group, instance."""
        return [self.group_name, self.instance]

    def home_widget(self) -> Widget:
        """The log."""
        return self.query_one(LogPane)

    def context(self) -> Context:
        """Which log this is."""
        group = self.console.store.groups.get(self.group_name)
        return self.console.base_context(
            group=group,
            member=self.member(),
            log_instance=self.instance,
            log_generation=self._shown_generation,
            searching=bool(self.query_one(LogPane).sought),
        )

    def fill(self) -> None:
        """The head; the log itself is fed by its own worker."""
        self.query_one("#log-head", Lines).show([self._head()])

    def member(self) -> MemberView | None:
        """The instance as the store has it; None once it is gone."""
        group = self.console.store.groups.get(self.group_name)
        return next((m for m in group.members if m.id == self.instance), None) if group else None

    def _head(self) -> Line:
        member, pane = self.member(), self.query_one(LogPane)
        dot = Span(f"  {glyphs().dot}  ", "off")
        spans: list[Span] = []
        if member:
            spans += [Span(word("role", member.role), "accent"), Span(f" {member.host}  ", "dim")]
            spans += [member_look(member).span(), dot]
        else:
            spans += [Span(tr("log.instance_gone"), "off"), dot]
        if pane.sought:
            matches = pane.matches
            at = matches.index(pane.current_match) + 1 if pane.current_match in matches else 0
            found = tr("log.matches", query=pane.sought, at=at, count=len(matches))
            spans += [Span(found, "warn" if matches else "bad"), dot]
        newest = self.generation is None
        generation = tr("log.generation", n=self._shown_generation or "-")
        spans.append(Span(generation, "text" if newest else "warn"))
        if not newest:
            spans.append(Span(" " + tr("log.earlier"), "warn"))
        spans.append(dot)
        spans.append(
            Span(tr("log.following"), "ok") if pane.following else Span(tr("log.paused"), "dim")
        )
        if not pane.wrapping:
            spans += [dot, Span(tr("log.unwrapped"), "dim")]
        if pane.hidden:
            spans += [dot, Span(tr("log.probes", count=pane.hidden), "dim")]
        return tuple(spans)

    # life

    def on_screen_resume(self) -> None:
        """Read on."""
        super().on_screen_resume()
        self.read()

    def on_screen_suspend(self) -> None:
        """Read nothing while covered."""
        super().on_screen_suspend()
        self.workers.cancel_group(self, "log")

    def read(self) -> None:
        """Start reading from where it stands."""
        self.run_worker(self._read(), name="log", group="log", exclusive=True, exit_on_error=False)

    async def _read(self) -> None:
        from backend.domain.errors import NotFound, PdError

        session = self.console.session
        while session is not None:
            try:
                chunk = await session.read_log(
                    self.instance, generation=self._asked(), offset=self._offset
                )
            except NotFound as error:
                self.say(error.problem.message, "warn")
                return
            except PdError as error:
                self.say(error.problem.message, "warn")
                await asyncio.sleep(RETRY_S)
                continue
            if not self._take(chunk) and not await self._more():
                return

    def _asked(self) -> int | None:
        if self.generation is not None:
            return self.generation
        member = self.member()
        if member and self._shown_generation and member.generation > self._shown_generation:
            self._offset = None  # a new generation began: its log starts anew
            return None
        return self._shown_generation or None

    def _take(self, chunk: LogChunk) -> bool:
        """Show a piece; True when there may be more at once."""
        pane = self.query_one(LogPane)
        if self._offset is None:
            pane.clear()
            if chunk.truncated:
                pane.feed(f"{tr('log.truncated')}\n")
        first = self._offset is None or chunk.generation != self._shown_generation
        self._shown_generation, self._offset = chunk.generation, chunk.offset
        pane.feed(chunk.text)
        if first or pane.hidden:
            self.fill()
        if first:
            self.bars()
            if self._at_error:
                self._at_error = False
                pane.flush()
                self.call_after_refresh(self.first_error)
        return bool(chunk.text) and not first

    async def _more(self) -> bool:
        """Wait for more; False when none can come."""
        if self.generation is not None:
            self.query_one(LogPane).flush()
            return False
        await asyncio.sleep(POLL_S)
        return True

    # commands

    def toggle_follow(self) -> None:
        """Keep the end in view, or not."""
        pane = self.query_one(LogPane)
        pane.follow(not pane.following)
        self.fill()

    def toggle_wrap(self) -> None:
        """Break long lines, or not."""
        pane = self.query_one(LogPane)
        pane.wrap_lines(not pane.wrapping)
        self.fill()

    def toggle_probes(self) -> None:
        """Show the requests that are pdtui's own, or count them."""
        pane = self.query_one(LogPane)
        pane.show_probes(not pane.showing_probes)
        self.fill()

    def first_error(self) -> None:
        """To the earliest error."""
        if not self.query_one(LogPane).first_error():
            self.say(tr("log.no_error"), "dim")
        self.fill()

    def sources(self) -> list[tuple[str, int | None]]:
        """The instances, with the generation, whose logs a save writes."""
        return [(self.instance, self.generation or self._shown_generation or None)]

    def ask_filter(self) -> None:
        """Open the search box."""
        self.query_one(FilterBar).open()

    def step(self, direction: int) -> None:
        """To the next or the previous match."""
        if not self.query_one(LogPane).step(direction):
            self.say(tr("log.no_match", query=self.query_one(LogPane).sought), "warn")
        self.fill()

    def previous_generation(self) -> None:
        """One generation back."""
        self._switch(self.instance, max(1, self._shown_generation - 1))

    def newest_generation(self) -> None:
        """Back to the newest."""
        self._switch(self.instance, None)

    def names(self) -> list[str]:
        """The group's instances, by role."""
        group = self.console.store.groups.get(self.group_name)
        members = group.members if group else ()
        order = sorted(members, key=lambda m: (ROLE_ORDER.index(m.role), m.id))
        return [m.id for m in order]

    def other_member(self, direction: int) -> None:
        """The log of the group's next or previous instance."""
        names = self.names()
        if not names:
            return
        at = names.index(self.instance) if self.instance in names else 0
        self._switch(names[(at + direction) % len(names)], None)

    def text(self) -> str:
        """Every line held, for copying."""
        return "\n".join(self.query_one(LogPane).lines_held)

    def _switch(self, instance: str, generation: int | None) -> None:
        self.instance, self.generation = instance, generation
        self._offset, self._shown_generation = None, 0
        self.query_one(LogPane).clear()
        self.query_one(LogPane).follow(True)
        self.read()
        self.sync(force=True)

    def back(self) -> None:
        """A search that stands is cleared before the screen is left."""
        if self.query_one(LogPane).sought:
            self.query_one(FilterBar).action_clear()
        else:
            super().back()

    @on(FilterBar.Edited)
    def _search_edited(self, event: FilterBar.Edited) -> None:
        event.stop()
        self.query_one(LogPane).search(event.text)
        self.fill()

    @on(FilterBar.Done)
    def _search_done(self, event: FilterBar.Done) -> None:
        event.stop()
        self.query_one(FilterBar).remove_class("-open")
        self.home_widget().focus()
        self.key_bar()

    @on(FilterBar.Cleared)
    def _search_cleared(self, event: FilterBar.Cleared) -> None:
        event.stop()
        self.query_one(LogPane).search("")
        self.home_widget().focus()
        self.fill()
        self.key_bar()

    @on(LogPane.Moved)
    def _moved(self, event: LogPane.Moved) -> None:
        event.stop()
        self.fill()
