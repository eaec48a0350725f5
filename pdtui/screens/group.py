"""One group: status, endpoint, marks, its members by role, and what happened last."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual import on
from textual.binding import BindingType
from textual.widget import Widget

from pdtui.commands import keymap
from pdtui.commands.model import Context
from pdtui.i18n import tr
from pdtui.present import events, groups, members
from pdtui.present.cells import Line, Row, Span, plain
from pdtui.present.status import glyphs
from pdtui.screens.base import Area, TableScreen
from pdtui.widgets.paint import Lines
from pdtui.widgets.resource_table import ResourceTable

if TYPE_CHECKING:
    from backend.domain.views import GroupView

BARS = 3
"""Lines that title, status and keys take."""


class GroupScreen(TableScreen):
    """A group's panel."""

    area: Area = "groups"
    scopes = ("list", "group")
    kinds = ("groups", "events")
    BINDINGS: ClassVar[list[BindingType]] = [*keymap.bindings("list", "group")]
    DEFAULT_CSS = """
    GroupScreen #head { padding: 0 1 0 2; margin: 1 0; }
    GroupScreen #recent { padding: 0 1 0 2; height: 1fr; }
    GroupScreen.-short #head { margin: 0 0 1 0; }
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.group_name = name
        self._noted = False

    def body(self) -> Iterable[Widget]:
        """Head, members, recent events."""
        yield Lines(widget_id="head")
        yield ResourceTable(members.columns(), widget_id="members")
        yield Lines(widget_id="recent")

    def path(self) -> list[str]:
        """The group's name."""
        return [self.group_name]

    def view(self) -> GroupView | None:
        """The group as the store has it."""
        return self.console.store.groups.get(self.group_name)

    def rows(self) -> list[Row]:
        """A section a role."""
        view = self.view()
        return members.rows(view, self.console.now()) if view else []

    def nothing(self) -> list[Line]:
        """A group without roles cannot be; this is one that just went."""
        return [(Span(tr("group.gone", name=self.group_name), "dim"),)]

    def context(self) -> Context:
        """The group, and the member or role under the cursor."""
        view = self.view()
        key = self.table().cursor_key
        member = next((m for m in view.members if m.id == key), None) if view else None
        role = members.role_of(key, view) if view else None
        return self.console.base_context(group=view, member=member, role=role)

    def urgent(self) -> list[str]:
        """What explains a fault or ends a wait, while it lasts."""
        return [f"group.{name}" for name in groups.urgent(self.context().group)]

    def fill(self) -> None:
        """Share the height out between head, members and events, and draw them."""
        view = self.view()
        if view is None:
            self._leave()
            return
        height = max(8, self.size.height - BARS)
        self.set_class(height < 19, "-short")
        most = 4 if height < 19 else 6 if height < 30 else 14
        width = max(20, self.size.width - 3)
        head = groups.head(view, width, most)
        self.query_one("#head", Lines).show(head)
        super().fill()
        margins = 1 if height < 19 else 2
        left = height - len(head) - margins
        table = max(2, min(len(self.table().rows) + 1, left))
        self.table().styles.height = table
        self._recent(left - table - 2, width)

    def _recent(self, most: int, width: int) -> None:
        """What happened last; left out where there is no room for two lines of it."""
        recent = self.query_one("#recent", Lines)
        found = events.recent(self.console.store.events, self.group_name, most)
        recent.display = most >= 1
        if most < 1:
            recent.show([])
            return
        title = f"{tr('group.events')} "
        rule: Line = (
            Span(title, "dim"),
            Span(glyphs().rule * max(0, width - cell_len(title)), "off"),
        )
        if not found:
            found = [(Span(tr("events.none"), "dim"),)]
        recent.show([(), rule, *found])

    def _leave(self) -> None:
        """The group is gone: say so on the screen below."""
        if not self.console.store.loaded or not self.is_current:
            return
        name = self.group_name
        self.console.pop_screen()
        self.console.call_after_refresh(self.console.say, tr("group.gone", name=name), "dim")

    @on(ResourceTable.RowHighlighted)
    def _say_note(self, event: ResourceTable.RowHighlighted) -> None:
        """A note whose column does not fit is read out in the status line."""
        member = self.context().member
        hidden = "note" not in event.table.visible_columns
        worth = member is not None and (member.note or member.next_start is not None)
        text = (
            plain(members.note(member, self.console.now())) if member and hidden and worth else ""
        )
        if text or self._noted:
            self.say(text, "warn")
        self._noted = bool(text)

    @on(ResourceTable.RowOpened)
    def _open(self, event: ResourceTable.RowOpened) -> None:
        event.stop()
        if event.key.startswith(members.HEADING):
            self.console.action_command("group.scale")
        else:
            self.console.action_command("group.logs")
