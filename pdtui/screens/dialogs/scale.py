"""How many members of each role, and what that starts and stops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from pdtui.i18n import tr
from pdtui.i18n.catalog import word
from pdtui.present import plans
from pdtui.present.cells import Line, Span, padded
from pdtui.present.groups import ROLE_ORDER
from pdtui.present.status import glyphs
from pdtui.screens.dialogs.base import Dialog
from pdtui.widgets.lines_view import wrap
from pdtui.widgets.paint import Lines

if TYPE_CHECKING:
    from backend.domain.views import GroupView, HostView

MOST = 999


class ScaleDialog(Dialog[dict[str, int]]):
    """One line a role; the answer holds only the counts that differ."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "role(-1)", show=False),
        Binding("down,j,tab", "role(1)", show=False),
        Binding("plus,right,l,equals_sign", "step(1)", show=False),
        Binding("minus,left,h", "step(-1)", show=False),
        Binding("backspace", "erase", show=False),
        Binding("enter", "accept", show=False),
        *(Binding(str(d), f"digit({d})", show=False) for d in range(10)),
    ]

    def __init__(
        self, group: GroupView, role: str | None = None, hosts: Sequence[HostView] = ()
    ) -> None:
        super().__init__(tr("scale.title", name=group.name))
        self._group = group
        self._hosts = hosts
        self._start = plans.wanted(group)
        self.counts = dict(self._start)
        self._roles: list[str] = [r for r in ROLE_ORDER if r in self.counts]
        self._roles += [r for r in self.counts if r not in self._roles]
        self._at = self._roles.index(role) if role in self._roles else 0
        self._typing = False

    def content(self) -> Iterable[Widget]:
        """The counts, what they do, the keys."""
        yield Lines(widget_id="counts")
        yield Lines(widget_id="plan")
        yield Lines(widget_id="policy")
        yield Lines([self._hint()], widget_id="hint")

    def on_mount(self) -> None:
        """Draw."""
        self.query_one("#plan").styles.margin = (1, 0, 0, 0)
        self.query_one("#policy").styles.margin = (1, 0, 0, 0)
        self.redraw()

    def on_resize(self) -> None:
        """The sentences wrap at the box's width."""
        self.call_after_refresh(self.redraw)

    def action_role(self, by: int) -> None:
        """To another role."""
        self._at = (self._at + by) % len(self._roles)
        self._typing = False
        self.redraw()

    def action_step(self, by: int) -> None:
        """One more or one fewer."""
        self._typing = False
        self._set(self.counts[self._role] + by)

    def action_digit(self, digit: int) -> None:
        """Type a count."""
        base = self.counts[self._role] if self._typing else 0
        self._typing = True
        self._set(base * 10 + digit)

    def action_erase(self) -> None:
        """Take the last digit away."""
        self._typing = True
        self._set(self.counts[self._role] // 10)

    def action_accept(self) -> None:
        """Answer with what differs; nothing does: the same as leaving."""
        changed = {r: n for r, n in self.counts.items() if n != self._start[r]}
        self.dismiss(changed or None)

    def redraw(self) -> None:
        """The counts and the plan."""
        self.query_one("#counts", Lines).show([self._line(i) for i in range(len(self._roles))])
        plan = (
            plans.scale(self._group, self.counts, self._hosts) if self.counts != self._start else []
        )
        if not plan:
            plan = [(Span(tr("scale.nothing"), "dim"),)]
        width = self.query_one("#plan").size.width or 66
        self.query_one("#plan", Lines).show([w for p in plan for w in wrap(p, width)])
        policy = word("membership", self._group.membership)
        told: Line = (Span(f"{tr('detail.membership')}{tr('colon')}"), Span(policy, "dim"))
        self.query_one("#policy", Lines).show(wrap(told, width))

    @property
    def _role(self) -> str:
        return self._roles[self._at]

    def _set(self, count: int) -> None:
        self.counts[self._role] = max(0, min(MOST, count))
        self.redraw()

    def _line(self, at: int) -> Line:
        role = self._roles[at]
        current, count = at == self._at, self.counts[role]
        before = self._group.roles[role].wanted
        marks = glyphs()
        spans = [
            Span(f"{marks.cursor} " if current else "  ", "accent"),
            Span(padded(word("role", role), 10), "strong" if current else "text"),
            Span(" - ", "accent" if current else "off"),
            Span(f"{count:^5}", "strong"),
            Span(" + ", "accent" if current else "off"),
        ]
        if count != before:
            tone = "ok" if count > before else "warn"
            spans.append(Span(f"   {tr('scale.was', count=before)}", tone))  # type: ignore[arg-type]
        ready = tr("role.ready", ready=self._group.roles[role].ready, wanted=before)
        spans.append(Span(f"   {ready}", "dim"))
        return tuple(spans)

    def _hint(self) -> Line:
        pairs = (
            (f"{glyphs().up} {glyphs().down}", "scale.key.role"),
            ("- + 0-9", "scale.key.count"),
            ("enter", "scale.key.apply"),
            ("esc", "scale.key.cancel"),
        )
        spans: list[Span] = []
        for key, text in pairs:
            spans += [Span(key, "accent"), Span(f" {tr(text)}   ", "dim")]
        return tuple(spans)
