"""Handlers of the instances, the cache services, the settings, sorting and marking."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pdtui.commands import availability as can
from pdtui.commands.model import Context, WhyNot
from pdtui.i18n import tr
from pdtui.present import caches as drawn
from pdtui.present.cells import Line, Span
from pdtui.present.numbers import count
from pdtui.present.status import glyphs
from pdtui.screens.base import TableScreen
from pdtui.screens.caches import CachesScreen
from pdtui.screens.dialogs.choose import ChooseDialog
from pdtui.screens.dialogs.confirm import Confirm
from pdtui.screens.instances import InstancesScreen
from pdtui.screens.settings import SettingsScreen
from pdtui.screens.text import TextScreen

if TYPE_CHECKING:
    from backend.domain.errors import PdError
    from backend.domain.views import CacheView, GroupView
    from pdtui.app import Console
    from pdtui.session import Session

Handler = Callable[["Console", Context], None]

# tables


def _on_table(act: Callable[[TableScreen], None]) -> Handler:
    def run(console: Console, _: Context) -> None:
        if isinstance(console.screen, TableScreen):
            act(console.screen)

    return run


def sort(console: Console, _: Context) -> None:
    """Choose the column to sort by; the same again turns it round."""
    screen = console.screen
    if not isinstance(screen, TableScreen):
        return
    columns = [c for c in screen.table().columns if c.title]
    now = screen.sorting
    arrow = glyphs().down if now.down else glyphs().up
    options = [("", tr("list.unsorted")), *((c.key, c.title) for c in columns)]
    shown = [(k, f"{t} {arrow}" if k and k == now.column else t) for k, t in options]

    def answered(column: str | None) -> None:
        if column is not None:
            screen.sort_by(column)

    console.push_screen(ChooseDialog(tr("list.sort_by"), shown, now.column, bare=True), answered)


def _next_column(by: int) -> Callable[[TableScreen], None]:
    def act(screen: TableScreen) -> None:
        keys = ["", *screen.table().visible_columns]
        now = screen.sorting.column
        at = keys.index(now) if now in keys else 0
        screen.sort_by(keys[(at + by) % len(keys)])

    return act


# many groups at once


def bulk(
    verb: str, why_not: WhyNot, act: Callable[[Session, str], None], *, typed: bool = False
) -> Handler:
    """Do one thing to every marked group that it can be done to, after naming them all."""

    def run(console: Console, ctx: Context) -> None:
        groups = [console.store.groups[n] for n in ctx.marked if n in console.store.groups]
        reasons = {g.name: why_not(console.base_context(group=g)) for g in groups}
        able = [g for g in groups if not reasons[g.name]]
        lines: list[Line] = [(Span(f"  {g.name}", "strong"), *_state(g)) for g in able]
        left = [(n, r) for n, r in reasons.items() if r]
        if left:
            lines += [(), (Span(tr("bulk.left_out"), "warn"),)]
            lines += [(Span(f"  {name}  "), Span(reason, "dim")) for name, reason in left]
        if not able:
            console.say(left[0][1] if left else tr("why.no_group"), "warn")
            return

        def answered(yes: bool | None) -> None:
            if yes and console.session:
                for group in able:
                    act(console.session, group.name)
                if isinstance(console.screen, TableScreen):
                    console.screen.marked.clear()
                    console.screen.sync(force=True)

        amount = count(len(able), tr("group.one"), tr("group.many"))
        lines = [(Span(tr(f"bulk.{verb}.means")),), (), *lines]
        name = str(len(able)) if typed else ""
        title = tr(f"bulk.{verb}", groups=amount)
        dialog = Confirm(title, lines, tr(f"bulk.{verb}.yes"), danger=typed, name=name)
        console.push_screen(dialog, answered)

    return run


def _state(group: GroupView) -> Line:
    from pdtui.present.groups import headline

    return (Span("  "), *headline(group))


def _can_restart(ctx: Context) -> str | None:
    """A blocked restart is forced one at a time, never among others."""
    if ctx.group and ctx.group.phase:
        return tr("why.restarting", name=ctx.group.name)
    return can.can_restart(ctx)


BULK: dict[str, Handler] = {
    "restart": bulk("restart", _can_restart, lambda s, n: s.restart(n)),
    "stop": bulk("stop", can.can_stop, lambda s, n: s.pause(n, True), typed=True),
    "start": bulk("start", can.can_start, lambda s, n: s.pause(n, False)),
    "delete": bulk("delete", can.can_delete, lambda s, n: s.delete(n), typed=True),
}


def or_bulk(name: str, single: Handler) -> Handler:
    """The marked groups where some are marked, else the one under the cursor."""

    def run(console: Console, ctx: Context) -> None:
        (BULK[name] if ctx.marked else single)(console, ctx)

    return run


# instances


def copy_instance(console: Console, ctx: Context) -> None:
    """The instance's name."""
    assert ctx.member is not None
    console.copy(ctx.member.id, tr("copy.what.name"))


def faults(console: Console, _: Context) -> None:
    """All, or only what is not ready."""
    if isinstance(console.screen, InstancesScreen):
        console.screen.toggle_faults()


# cache services


def describe_cache(console: Console, ctx: Context) -> None:
    """The service at length."""
    cache = ctx.cache
    assert cache is not None
    console.push_screen(TextScreen("caches", [cache.name], lambda: drawn.page(cache)))


def new_cache(console: Console, _: Context) -> None:
    """An empty document."""
    from pdtui.screens.dialogs.cache import CacheDialog

    console.push_screen(CacheDialog(lambda d, refused: _put(console, d, refused, "")))


def edit_cache(console: Console, ctx: Context) -> None:
    """The document as it was saved."""
    from pdtui.screens.dialogs.cache import CacheDialog

    assert ctx.cache is not None
    etag = ctx.cache.etag

    def shown(document: dict[str, Any]) -> None:
        console.push_screen(
            CacheDialog(lambda d, refused: _put(console, d, refused, etag), document)
        )

    if console.session:
        console.session.cache_document(ctx.cache.name, shown)


def _put(
    console: Console, document: dict[str, Any], refused: Callable[[PdError], bool], etag: str
) -> None:
    from pdtui.screens.dialogs.cache import CacheDialog

    def done(cache: CacheView) -> None:
        if isinstance(console.screen, CacheDialog):
            console.pop_screen()
        _reread(console)
        text = "cacheform.changed" if cache.used_by else "cacheform.saved"
        console.say(tr(text, name=cache.name), "ok")

    if console.session:
        console.session.put_cache(document, done, refused, etag=etag)


def delete_cache(console: Console, ctx: Context) -> None:
    """A service, once its name was typed."""
    cache = ctx.cache
    assert cache is not None

    def gone() -> None:
        _reread(console)
        console.say(tr("done.delete_cache", name=cache.name), "ok")

    def answered(yes: bool | None) -> None:
        if yes and console.session:
            console.session.delete_cache(cache.name, gone, cache.etag)

    lines: list[Line] = [(Span(tr("delete_cache.means")),)]
    title = tr("delete_cache.title", name=cache.name)
    dialog = Confirm(title, lines, tr("delete.yes"), danger=True, name=cache.name)
    console.push_screen(dialog, answered)


def _reread(console: Console) -> None:
    if isinstance(console.screen, CachesScreen):
        console.screen.reread()


def change_setting(console: Console, _: Context) -> None:
    """Another value of the setting under the cursor."""
    if isinstance(console.screen, SettingsScreen):
        console.screen.change()


SITE: dict[str, Handler] = {
    "list.sort": sort,
    "list.sort_next": _on_table(_next_column(1)),
    "list.sort_previous": _on_table(_next_column(-1)),
    "list.mark": _on_table(TableScreen.mark),
    "list.mark_all": _on_table(TableScreen.mark_all),
    "instances.copy": copy_instance,
    "instances.faults": faults,
    "caches.describe": describe_cache,
    "caches.new": new_cache,
    "caches.edit": edit_cache,
    "caches.delete": delete_cache,
    "settings.change": change_setting,
    "area.instances": lambda console, _: console.go_area("instances"),
    "area.caches": lambda console, _: console.go_area("caches"),
    "area.settings": lambda console, _: console.go_area("settings"),
}
