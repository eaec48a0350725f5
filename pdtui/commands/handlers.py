"""What each command of the table does: ask, then let the session speak to the backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pdtui.commands.form_handlers import FORM
from pdtui.commands.host_handlers import GROUP as _GROUP_DOCTOR
from pdtui.commands.host_handlers import HOSTS
from pdtui.commands.insight_handlers import GROUP as _INSIGHT_GROUP
from pdtui.commands.insight_handlers import INSIGHT
from pdtui.commands.model import Context
from pdtui.commands.more_handlers import GROUP as _MORE_GROUP
from pdtui.commands.more_handlers import MORE
from pdtui.commands.site_handlers import SITE, or_bulk
from pdtui.commands.watch_handlers import GROUP as _WATCH_GROUP
from pdtui.commands.watch_handlers import WATCH
from pdtui.i18n import tr
from pdtui.i18n.catalog import word
from pdtui.present import detail, plans
from pdtui.present.cells import Line, Span
from pdtui.present.status import MEMBER_ORDER
from pdtui.screens.base import TableScreen
from pdtui.screens.dialogs.confirm import Confirm, LineQuestion
from pdtui.screens.dialogs.help import HelpDialog
from pdtui.screens.dialogs.scale import ScaleDialog
from pdtui.screens.events import EventsScreen
from pdtui.screens.logs import LogScreen
from pdtui.screens.text import TextScreen

if TYPE_CHECKING:
    from backend.domain.views import GroupView, HostView, MemberView
    from pdtui.app import Console

Handler = Callable[["Console", Context], None]


def hosts(console: Console) -> list[HostView]:
    """Every host, for what a plan says of free room."""
    return list(console.store.hosts.values())


def scale(console: Console, ctx: Context) -> None:
    """The dialog with every role's count."""
    group = ctx.group
    assert group is not None

    def answered(counts: dict[str, int] | None) -> None:
        if counts and console.session:
            console.session.scale(group.name, counts, group.etag)

    console.push_screen(ScaleDialog(group, ctx.role, hosts(console)), answered)


def _step(by: int) -> Handler:
    """One member more or fewer of the role under the cursor; the dialog when there is none."""

    def run(console: Console, ctx: Context) -> None:
        group = ctx.group
        assert group is not None
        if ctx.role is None:
            scale(console, ctx)
            return
        counts = {ctx.role: plans.wanted(group)[ctx.role] + by}
        ask(console, plans.scale(group, counts, hosts(console)), group, counts)

    return run


def ask(console: Console, lines: list[Line], group: GroupView, counts: dict[str, int]) -> None:
    """One line, then scale."""

    def answered(yes: bool | None) -> None:
        if yes and console.session:
            console.session.scale(group.name, counts, group.etag)

    console.push_screen(LineQuestion(lines), answered)


def restart(console: Console, ctx: Context) -> None:
    """The whole group, after saying what that interrupts; forced past a host that blocks it."""
    group = ctx.group
    assert group is not None
    blocked = group.phase.blocked_by if group.phase else ""

    def answered(yes: bool | None) -> None:
        if yes and console.session:
            console.session.restart(group.name, force=bool(blocked), etag=group.etag)

    if blocked:
        lines: list[Line] = [
            (Span(tr("plan.force.blocked", host=blocked), "warn"),),
            (Span(tr("plan.force.means", host=blocked)),),
        ]
        dialog = Confirm(tr("force.title", name=group.name), lines, tr("force.yes"), danger=True)
    else:
        dialog = Confirm(
            tr("restart.title", name=group.name), plans.restart(group), tr("restart.yes")
        )
    console.push_screen(dialog, answered)


def delete(console: Console, ctx: Context) -> None:
    """The group, once its name was typed."""
    group = ctx.group
    assert group is not None

    def answered(yes: bool | None) -> None:
        if yes and console.session:
            console.session.delete(group.name, group.etag)

    dialog = Confirm(
        tr("delete.title", name=group.name),
        plans.delete(group),
        tr("delete.yes"),
        danger=True,
        name=group.name,
    )
    console.push_screen(dialog, answered)


def delete_member(console: Console, ctx: Context) -> None:
    """One member, after saying what the router needs."""
    group, member = ctx.group, ctx.member
    assert group is not None
    assert member is not None

    def answered(yes: bool | None) -> None:
        if yes and console.session:
            console.session.delete_instance(group.name, member.id, group.etag)

    dialog = Confirm(
        tr("delete_member.title", name=member.id),
        plans.delete_member(group, member.id),
        tr("delete_member.yes"),
        danger=True,
    )
    console.push_screen(dialog, answered)


def _pause(paused: bool) -> Handler:
    def run(console: Console, ctx: Context) -> None:
        group = ctx.group
        assert group is not None

        def answered(yes: bool | None) -> None:
            if yes and console.session:
                console.session.pause(group.name, paused, group.etag)

        if paused:
            dialog = Confirm(
                tr("stop.title", name=group.name),
                [(Span(tr("stop.means")),), *plans.delete(group)[1:]],
                tr("stop.yes"),
                danger=True,
            )
            console.push_screen(dialog, answered)
        else:
            console.push_screen(LineQuestion([(Span(tr("start.ask", name=group.name)),)]), answered)

    return run


def worst(members: Sequence[MemberView]) -> MemberView:
    """The member that most needs a look."""
    return min(members, key=lambda m: (MEMBER_ORDER.index(m.state), m.id))


def logs(console: Console, ctx: Context, *, at_error: bool = False) -> None:
    """The member under the cursor, or of its role, or the one that most needs a look."""
    group = ctx.group
    assert group is not None
    member = ctx.member
    if member is None:
        mine = [m for m in group.members if m.role == ctx.role]
        member = worst(group.members if at_error or not mine else mine)
    console.push_screen(LogScreen(group.name, member.id, at_error=at_error))


def first_error(console: Console, ctx: Context) -> None:
    """Why it fails: the log, at its earliest error. Without a member under the cursor, that of the
    one that fares worst of the whole group, whose role ever the cursor stands on."""
    logs(console, ctx, at_error=True)


def events(console: Console, ctx: Context) -> None:
    """The group's own history."""
    assert ctx.group is not None
    console.push_screen(EventsScreen(ctx.group.name))


def describe(console: Console, ctx: Context) -> None:
    """The long view of what is under the cursor."""
    store = console.store
    if ctx.event:
        found = ctx.event
        console.push_screen(TextScreen("events", [str(found.seq)], lambda: detail.event(found)))
    elif ctx.host:
        name = ctx.host.name

        def host_page() -> list[Line] | None:
            view = store.hosts.get(name)
            return detail.host(view, console.now()) if view else None

        console.push_screen(TextScreen("hosts", [name], host_page))
    elif ctx.group and ctx.member:
        group, member = ctx.group.name, ctx.member.id

        def member_page() -> list[Line] | None:
            view = store.groups.get(group)
            one = next((m for m in view.members if m.id == member), None) if view else None
            return detail.member(one, console.now()) if one else None

        console.push_screen(TextScreen("groups", [group, member], member_page))
    elif ctx.group:
        _describe_group(console, ctx.group.name)


def _describe_group(console: Console, name: str) -> None:
    def shown(document: dict[str, object]) -> None:
        from backend.domain.secrets import masked
        from pdtui.state.yamltext import dump

        text = dump(masked(document))

        def page() -> list[Line] | None:
            view = console.store.groups.get(name)
            return detail.group(view, text) if view else None

        console.push_screen(TextScreen("groups", [name, tr("detail.document")], page))

    if console.session:
        console.session.document(name, shown)


def changes(console: Console, ctx: Context) -> None:
    """What was saved and does not run yet."""
    assert ctx.group is not None
    name = ctx.group.name

    def page() -> list[Line] | None:
        view = console.store.groups.get(name)
        if view is None:
            return None
        return [
            (Span(tr("changes.title"), "strong"),),
            (Span(tr("changes.means"), "dim"),),
            (),
            *(detail.changes(view) or [(Span(tr("changes.none"), "dim"),)]),
        ]

    console.push_screen(TextScreen("groups", [name, tr("mark.config_changed")], page))


def copy_endpoint(console: Console, ctx: Context) -> None:
    """The request anyone can paste."""
    assert ctx.group is not None
    assert ctx.group.endpoint is not None
    console.copy(ctx.group.endpoint.curl, tr("copy.what.request"))


def delete_host(console: Console, ctx: Context) -> None:
    """A host of the inventory, once its name was typed."""
    host = ctx.host
    assert host is not None

    def answered(yes: bool | None) -> None:
        if yes and console.session:
            console.session.delete_host(host.name, host.etag)

    lines: list[Line] = [(Span(tr("delete_host.means")),)]
    dialog = Confirm(
        tr("delete_host.title", name=host.name),
        lines,
        tr("delete.yes"),
        danger=True,
        name=host.name,
    )
    console.push_screen(dialog, answered)


def test_host(console: Console, ctx: Context) -> None:
    """Connect and look now; an unknown key is offered for acceptance."""
    assert ctx.host is not None
    name = ctx.host.name
    if console.session:
        console.session.test_host(
            name,
            lambda h: console.say(tr("done.test", name=name, state=word("host", h.state)), "ok"),
        )


def filter_rows(console: Console, _: Context) -> None:
    """Open the filter box."""
    if isinstance(console.screen, TableScreen):
        console.screen.ask_filter()


def show_help(console: Console, ctx: Context) -> None:
    """The help of this screen."""
    console.push_screen(HelpDialog(console.scopes(), ctx, console.own_keys, console.bad_keys))


def copy_page(console: Console, _: Context) -> None:
    """The whole page."""
    if isinstance(console.screen, TextScreen):
        console.copy(console.screen.text, tr("copy.what.page"))


def _on_log(act: Callable[[LogScreen], None]) -> Handler:
    def run(console: Console, _: Context) -> None:
        if isinstance(console.screen, LogScreen):
            act(console.screen)

    return run


def new_deployment(console: Console, _: Context) -> None:
    """An empty form, or the draft that was left."""
    from pdtui.screens import form_keeper

    form_keeper.new(console)


def edit_deployment(console: Console, ctx: Context) -> None:
    """The form on a stored document."""
    from pdtui.screens import form_keeper

    assert ctx.group is not None
    form_keeper.edit(console, ctx.group.name)


_GROUP: dict[str, Handler] = {
    "new": new_deployment,
    "edit": edit_deployment,
    **_MORE_GROUP,
    **_WATCH_GROUP,
    **_GROUP_DOCTOR,
    **_INSIGHT_GROUP,
    "scale": scale,
    "more": _step(1),
    "fewer": _step(-1),
    "restart": or_bulk("restart", restart),
    "delete": or_bulk("delete", delete),
    "stop": or_bulk("stop", _pause(True)),
    "start": or_bulk("start", _pause(False)),
    "logs": logs,
    "first_error": first_error,
    "events": events,
    "describe": describe,
    "changes": changes,
    "copy": copy_endpoint,
}

HANDLERS: dict[str, Handler] = {
    **FORM,
    **MORE,
    **WATCH,
    **SITE,
    **HOSTS,
    **INSIGHT,
    **{f"groups.{name}": handler for name, handler in _GROUP.items()},
    **{f"group.{name}": handler for name, handler in _GROUP.items()},
    "group.delete_member": delete_member,
    "hosts.describe": describe,
    "hosts.test": test_host,
    "hosts.accept": test_host,
    "hosts.delete": delete_host,
    "events.describe": describe,
    "instances.logs": logs,
    "instances.first_error": first_error,
    "instances.describe": describe,
    "instances.delete": delete_member,
    "list.filter": filter_rows,
    "describe.copy": copy_page,
    "log.follow": _on_log(LogScreen.toggle_follow),
    "log.wrap": _on_log(LogScreen.toggle_wrap),
    "log.search": _on_log(LogScreen.ask_filter),
    "log.next": _on_log(lambda s: s.step(1)),
    "log.previous_match": _on_log(lambda s: s.step(-1)),
    "log.previous": _on_log(LogScreen.previous_generation),
    "log.newest": _on_log(LogScreen.newest_generation),
    "log.next_member": _on_log(lambda s: s.other_member(1)),
    "log.previous_member": _on_log(lambda s: s.other_member(-1)),
    "log.copy": _on_log(lambda s: s.console.copy(s.text(), tr("copy.what.log"))),
    "app.help": show_help,
    "app.palette": lambda console, _: console.action_command_palette(),
    "app.back": lambda console, _: console.go_back(),
    "app.quit": lambda console, _: console.ask_quit(),
    "app.interrupt": lambda console, _: console.interrupt(),
    "app.refresh": lambda console, _: console.refresh_all(),
    "app.theme": lambda console, _: console.other_theme(),
    "area.groups": lambda console, _: console.go_area("groups"),
    "area.hosts": lambda console, _: console.go_area("hosts"),
    "area.modes": lambda console, _: console.go_area("modes"),
    "area.events": lambda console, _: console.go_area("events"),
}
"""The handler of every command the console runs itself."""
