"""Handlers of the modes, histories, merged logs, event filters and the inventory's entries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pdtui.commands.model import Context
from pdtui.i18n import tr
from pdtui.screens.dialogs.host import HostDialog
from pdtui.screens.events import EventsScreen
from pdtui.screens.logs import LogScreen
from pdtui.screens.merged import MergedLogScreen
from pdtui.screens.save_log import save

if TYPE_CHECKING:
    from backend.domain.errors import PdError
    from backend.domain.views import HostView
    from pdtui.app import Console
    from pdtui.screens.history import HistoryScreen

Handler = Callable[["Console", Context], None]


def history(console: Console, ctx: Context) -> None:
    """Every saved version of the deployment."""
    from pdtui.screens.history import HistoryScreen

    assert ctx.group is not None
    name = ctx.group.name
    if console.session:
        console.session.history(name, lambda v: _show(console, HistoryScreen(name, v)))


def _show(console: Console, screen: HistoryScreen) -> None:
    console.push_screen(screen)


def merged(console: Console, ctx: Context) -> None:
    """The logs of all members in one; from there, one member's again."""
    if isinstance(console.screen, MergedLogScreen):
        console.pop_screen()
        if not isinstance(console.screen, LogScreen):
            console.screen.call_after_refresh(_first_log, console, ctx)
    elif ctx.group is not None:
        console.push_screen(MergedLogScreen(ctx.group.name))


def _first_log(console: Console, ctx: Context) -> None:
    if ctx.group and ctx.group.members:
        console.push_screen(LogScreen(ctx.group.name, ctx.group.members[0].id))


def _on_log(act: Callable[[LogScreen], None]) -> Handler:
    def run(console: Console, _: Context) -> None:
        if isinstance(console.screen, LogScreen):
            act(console.screen)

    return run


def faults(console: Console, _: Context) -> None:
    """All events, faults, errors."""
    if isinstance(console.screen, EventsScreen):
        console.screen.next_level()


def only(console: Console, ctx: Context) -> None:
    """Of one group, or of all."""
    if isinstance(console.screen, EventsScreen) and ctx.event:
        console.screen.only(ctx.event.group)


def copy_mode(console: Console, ctx: Context) -> None:
    """The mode's name."""
    assert ctx.mode is not None
    console.copy(ctx.mode.name, tr("copy.what.name"))


def new_host(console: Console, _: Context) -> None:
    """An empty entry."""
    console.push_screen(HostDialog(lambda entry, refused: _put(console, entry, refused, "")))


def edit_host(console: Console, ctx: Context) -> None:
    """The entry as it was written."""
    assert ctx.host is not None

    def shown(read: tuple[Mapping[str, Any], str]) -> None:
        entry, etag = read
        console.push_screen(
            HostDialog(lambda changed, refused: _put(console, changed, refused, etag), entry)
        )

    if console.session:
        console.session.host_entry(ctx.host.name, shown)


def _put(
    console: Console, entry: dict[str, Any], refused: Callable[[PdError], bool], etag: str
) -> None:
    session = console.session
    if session is None:
        return

    def done(host: HostView) -> None:
        console.store.put_host(host)
        if isinstance(console.screen, HostDialog):
            console.pop_screen()
        console.say(tr("hostform.saved", name=host.name), "ok")
        session.test_host(host.name, console.store.put_host)

    session.put_host(entry, done, refused, etag=etag)


GROUP: dict[str, Handler] = {"history": history, "merged": merged}
MORE: dict[str, Handler] = {
    "log.merged": merged,
    "log.first_error": _on_log(LogScreen.first_error),
    "log.probes": _on_log(LogScreen.toggle_probes),
    "log.save": _on_log(save),
    "events.faults": faults,
    "events.only": only,
    "modes.copy": copy_mode,
    "hosts.new": new_host,
    "hosts.edit": edit_host,
}
