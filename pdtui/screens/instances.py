"""Every instance of every group: members and routers, in one table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import BindingType
from textual.widget import Widget

from pdtui.commands import keymap
from pdtui.commands.model import Context
from pdtui.i18n import tr
from pdtui.present import groups, instances
from pdtui.present.cells import Line, Row, Span
from pdtui.present.numbers import since
from pdtui.screens.base import Area, TableScreen
from pdtui.widgets.resource_table import ResourceTable

if TYPE_CHECKING:
    from backend.domain.views import MemberView

WELL = frozenset({"ready"})


class InstancesScreen(TableScreen):
    """The list of instances; `!` leaves those that are well out."""

    area: Area = "instances"
    scopes = ("list", "instances")
    kinds = ("groups",)
    BINDINGS: ClassVar[list[BindingType]] = [*keymap.bindings("list", "instances")]

    def __init__(self) -> None:
        super().__init__()
        self.faults_only = False
        self._made: dict[str, tuple[MemberView, str, Row]] = {}
        self._of: dict[str, str] = {}

    def body(self) -> Iterable[Widget]:
        """One table."""
        yield ResourceTable(instances.columns(), widget_id="instances")

    def path(self) -> list[str]:
        """What is left out."""
        return [tr("instances.faults")] if self.faults_only else []

    def rows(self) -> list[Row]:
        """One row an instance; made anew only where it or its shown age differs."""
        now, made = self.console.now(), self._made
        self._made, self._of = {}, {}
        out: list[Row] = []
        for group in sorted(self.console.store.groups.values(), key=lambda g: g.name):
            for member in group.members:
                self._of[member.id] = group.name
                if self.faults_only and member.state in WELL:
                    continue
                age = since(now, member.since)
                old = made.get(member.id)
                same = old is not None and old[1] == age and not member.next_start
                if old and same and (old[0] is member or old[0] == member):
                    kept = old
                else:
                    kept = (member, age, instances.row(group.name, member, age, now))
                self._made[member.id] = kept
                out.append(kept[2])
        return out

    def nothing(self) -> list[Line]:
        """Nothing runs, or nothing is wrong."""
        key = "instances.no_faults" if self.faults_only else "instances.none"
        return [(Span(tr(key), "dim"),)]

    def context(self) -> Context:
        """The instance under the cursor, and its group."""
        key = self.table().cursor_key or ""
        group = self.console.store.groups.get(self._of.get(key, ""))
        member = next((m for m in group.members if m.id == key), None) if group else None
        role = member.role if member else None
        return self.console.base_context(group=group, member=member, role=role)

    def urgent(self) -> list[str]:
        """What explains the fault of the one under the cursor."""
        member = self.context().member
        failing = member is not None and member.state in groups.FAILING
        return ["instances.first_error", "instances.logs"] if failing else []

    def toggle_faults(self) -> None:
        """Everything, or only what is not ready."""
        self.faults_only = not self.faults_only
        self.sync(force=True)

    def relabelled(self) -> None:
        """Rows in another language are other rows."""
        self._made = {}

    @on(ResourceTable.RowOpened)
    def _open(self, event: ResourceTable.RowOpened) -> None:
        event.stop()
        if group := self._of.get(event.key):
            self.console.open_group(group, event.key)
