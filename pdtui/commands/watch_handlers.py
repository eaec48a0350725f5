"""Handlers of what is watched: the group's screen, canaries, alerts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pdtui.commands.model import Context
from pdtui.i18n import tr
from pdtui.present import watch
from pdtui.present.cells import Line
from pdtui.screens.text import TextScreen
from pdtui.screens.watch import WatchScreen

if TYPE_CHECKING:
    from backend.domain.watch_views import CanaryView, GroupMetrics
    from pdtui.app import Console

Handler = Callable[["Console", Context], None]


def open_watch(console: Console, ctx: Context) -> None:
    """Figures, effectiveness and the canary of the group."""
    assert ctx.group is not None
    name = ctx.group.name

    def shown(found: GroupMetrics) -> None:
        console.push_screen(WatchScreen(name, found))

    if console.session:
        console.session.call(f"metrics.{name}", lambda c: c.metrics(name), shown, opens=True)


def run_canary(console: Console, ctx: Context) -> None:
    """Try every pair now; the matrix follows by itself."""
    assert ctx.group is not None
    name = ctx.group.name

    def done(run: CanaryView) -> None:
        if run.ok:
            seconds = f"{run.seconds:.1f}"
            console.say(
                tr("watch.canary.done", name=name, count=len(run.pairs), seconds=seconds), "ok"
            )
        else:
            console.say(tr("watch.canary.failed", name=name, note=run.note), "bad")

    if console.session:
        console.say(tr("watch.canary.begun", name=name), "busy")
        console.session.call(f"canary.{name}", lambda c: c.canary(name), done)


def alerts(console: Console, _: Context) -> None:
    """What stands now, of all groups."""

    def page() -> list[Line]:
        standing = [a for g in console.store.groups.values() for a in g.alerts]
        return watch.alerts(standing, console.now())

    console.push_screen(TextScreen("groups", [tr("alerts.title")], page))


def _step(by: int) -> Handler:
    def run(console: Console, _: Context) -> None:
        if isinstance(console.screen, WatchScreen):
            console.screen.step(by)

    return run


GROUP: dict[str, Handler] = {"watch": open_watch, "canary": run_canary}
WATCH: dict[str, Handler] = {
    "app.alerts": alerts,
    "watch.next": _step(1),
    "watch.previous": _step(-1),
    "watch.canary": run_canary,
}
