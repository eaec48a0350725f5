"""One group watched: a figure of its members over time, effectiveness, the canary's matrix."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType
from textual.widget import Widget

from pdtui.commands import keymap
from pdtui.commands.model import Context
from pdtui.i18n import tr
from pdtui.present import watch
from pdtui.present.cells import Line, Span, line
from pdtui.screens.base import Area, ConsoleScreen
from pdtui.widgets.chart import TONES, chart
from pdtui.widgets.lines_view import LinesView
from pdtui.widgets.paint import Lines

if TYPE_CHECKING:
    from backend.domain.views import GroupView
    from backend.domain.watch_views import GroupMetrics

FRESH_S = 4.0
"""A history younger than this is not asked for anew; pages are read every 5 s."""


class WatchScreen(ConsoleScreen):
    """Traffic of one group. `[` and `]` go through the figures, `T` runs a canary."""

    area: Area = "groups"
    scopes = ("text", "watch")
    kinds = ("groups",)
    BINDINGS: ClassVar[list[BindingType]] = [*keymap.bindings("watch")]
    DEFAULT_CSS = """
    WatchScreen #chart { padding: 0 1; margin: 1 0 0 0; }
    WatchScreen LinesView { padding: 0 2; margin: 1 0 0 0; }
    """

    def __init__(self, name: str, found: GroupMetrics) -> None:
        super().__init__()
        self.group_name = name
        self._history, self._asked = found, 0.0
        self._figure = next((f for f in watch.FIGURES if self._has(f)), watch.FIGURES[0])

    def body(self) -> Iterable[Widget]:
        """The plot, then the page."""
        yield Lines(widget_id="chart")
        yield LinesView(widget_id="page")

    def path(self) -> list[str]:
        """The group's name."""
        return [self.group_name, tr("watch.title")]

    def home_widget(self) -> Widget:
        """The page."""
        return self.query_one(LinesView)

    def view(self) -> GroupView | None:
        """The group as the store has it."""
        return self.console.store.groups.get(self.group_name)

    def context(self) -> Context:
        """The group."""
        return self.console.base_context(group=self.view())

    def step(self, by: int) -> None:
        """Plot the next figure that somebody exports."""
        known = [f for f in watch.FIGURES if self._has(f)] or [self._figure]
        at = known.index(self._figure) if self._figure in known else 0
        self._figure = known[(at + by) % len(known)]
        self.fill()

    def take(self, found: GroupMetrics) -> None:
        """Newer figures."""
        self._history = found
        if self.is_current:
            self.fill()

    def fill(self) -> None:
        """Draw the plot and the page."""
        self._refresh()
        view = self.view()
        self.query_one("#chart", Lines).show(self._plot())
        if view is None:
            return
        page: list[Line] = [*watch.members(view), ()]
        page += watch.canary(view.canary, self.console.now())
        self.query_one(LinesView).show(page)

    def _refresh(self) -> None:
        """Ask for the history again when the group's figures have changed since."""
        now = self.console.now()
        if self.console.session and now - self._asked >= FRESH_S:
            self._asked = now
            name = self.group_name
            self.console.session.call(
                f"metrics.{name}", lambda c: c.metrics(name), self.take, failed=lambda _: True
            )

    def _has(self, figure: str) -> bool:
        return any(v is not None for m in self._history.members for v in m.series.get(figure, ()))

    def _plot(self) -> list[Line]:
        width, height = max(20, self.size.width - 3), max(7, min(18, self.size.height // 2 - 2))
        mine = [m for m in self._history.members if m.series.get(self._figure)]
        mine = [m for m in mine if any(v is not None for v in m.series[self._figure])]
        at = sorted({t for m in mine for t in m.at})
        now = self.console.now()
        curves = []
        for m in mine[: len(TONES)]:
            known = dict(zip(m.at, m.series[self._figure], strict=True))
            curves.append([known.get(t) for t in at])
        newest = [
            (m.instance, next((v for v in reversed(m.series[self._figure]) if v is not None), None))
            for m in mine[: len(TONES)]
        ]
        legend = watch.legend(self._figure, ((n, v, TONES[i]) for i, (n, v) in enumerate(newest)))
        drawn = chart([t - now for t in at], curves, width, height)
        return [*legend, *(drawn or [line(Span(tr("watch.nothing"), "dim"))])]
