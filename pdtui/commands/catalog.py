"""The table of commands. Bindings, key bar, help, palette and their tests all read these rows.

Lower case reads or can be taken back, capital letters change more; what destroys asks for a name.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pdtui.commands import availability as can
from pdtui.commands.model import Command, Effect, Scope, WhyNot

_ALL = can.all_of
_MANY = can.unless_marked
_CHANGES = can.changes


def _on_group(scope: Scope) -> tuple[Command, ...]:
    """What can be done to a group, in the list (`groups`) and on its panel (`group`)."""
    panel = scope == "group"
    more = can.can_scale_role if panel else can.can_scale
    fewer = can.can_scale_down if panel else can.can_scale
    table: tuple[tuple[str, str, Effect, int, int, WhyNot], ...] = (
        # name, key, effect, place in the list's bar, in the panel's, what stands in the way
        ("logs", "l", "read", 2, 2, can.has_log),
        ("scale", "S", "change", 3, 3, _ALL(_CHANGES, can.can_scale)),
        ("more", "plus", "change", 0, 4, _ALL(_CHANGES, more)),
        ("fewer", "minus", "change", 0, 5, _ALL(_CHANGES, fewer)),
        ("restart", "r", "change", 4, 6, _ALL(_CHANGES, _MANY(can.can_restart))),
        ("new", "n", "change", 5, 0, _CHANGES),
        ("edit", "E", "change", 0, 0, _ALL(_CHANGES, can.can_edit)),
        ("diagnose", "i", "read", 0, 9, can.has_log),
        ("advise", "a", "read", 0, 0, _ALL(can.group, can.reads)),
        ("describe", "d", "read", 6, 8, _ALL(can.group, can.reads)),
        ("events", "e", "read", 7, 0, can.group),
        ("watch", "w", "read", 0, 9, _ALL(can.group, can.reads)),
        ("canary", "T", "read", 0, 0, _ALL(can.group, can.reads)),
        ("first_error", "f", "read", 0, 0, can.has_log),
        ("merged", "m", "read", 0, 0, _ALL(can.any_member, can.reads)),
        ("doctor", "C", "read", 0, 0, _ALL(can.group, can.reads)),
        ("history", "H", "read", 0, 0, _ALL(can.group, can.reads)),
        ("changes", "c", "read", 0, 0, can.has_changes),
        ("copy", "y", "read", 0, 7, can.has_endpoint),
        ("stop", "x", "change", 0, 0, _ALL(_CHANGES, _MANY(can.can_stop))),
        ("start", "u", "change", 0, 0, _ALL(_CHANGES, _MANY(can.can_start))),
        ("delete", "D", "destroy", 8, 0, _ALL(_CHANGES, _MANY(can.can_delete))),
    )
    return tuple(
        Command(
            f"{scope}.{name}", (key,), scope, effect, there if panel else here, why_not, text=name
        )
        for name, key, effect, here, there, why_not in table
    )


def _moves(scope: Scope, rows: tuple[tuple[str, tuple[str, ...], str], ...]) -> tuple[Command, ...]:
    """Moving about, run by the widget itself: name, keys, action."""
    return tuple(
        Command(f"{scope}.{name}", keys, scope, owner="widget", action=action, text=f"list.{name}")
        for name, keys, action in rows
    )


COMMANDS: tuple[Command, ...] = (
    # the console itself
    Command("app.help", ("question_mark", "f1"), "app", bar=90),
    Command("app.palette", ("ctrl+p", "colon"), "app"),
    Command("app.back", ("escape",), "app"),
    Command("app.quit", ("q",), "app", bar=99),
    Command("app.interrupt", ("ctrl+c",), "app"),
    Command("area.groups", ("1",), "app"),
    Command("area.hosts", ("2",), "app"),
    Command("area.events", ("3",), "app"),
    Command("area.modes", ("4",), "app"),
    Command("area.instances", ("5",), "app"),
    Command("area.caches", ("6",), "app"),
    Command("area.settings", ("7",), "app"),
    Command("app.alerts", ("A",), "app"),
    Command("app.refresh", ("R", "f5"), "app"),
    Command("app.theme", (), "app"),
    # every table
    *_moves("list", (
        ("down", ("down", "j"), "cursor_down"),
        ("up", ("up", "k"), "cursor_up"),
        ("page_down", ("pagedown",), "page_down"),
        ("page_up", ("pageup",), "page_up"),
        ("first", ("g", "home"), "first"),
        ("last", ("G", "end"), "last"),
    )),
    Command("list.open", ("enter",), "list", owner="widget", action="open", bar=1),
    Command("list.filter", ("slash",), "list", bar=60),
    Command("list.sort", ("O",), "list", why_not=can.sortable),
    Command("list.sort_next", ("greater_than_sign",), "list", why_not=can.sortable),
    Command("list.sort_previous", ("less_than_sign",), "list", why_not=can.sortable),
    Command("list.mark", ("space",), "list", why_not=can.markable),
    Command("list.mark_all", ("asterisk",), "list", why_not=can.markable),
    *_on_group("groups"),
    *_on_group("group"),
    Command(
        "group.delete_member", ("X",), "group", "change", 0, _ALL(_CHANGES, can.can_delete_member),
        text="delete_member",
    ),
    # the form
    Command("form.save", ("W",), "form", "change", 2, _CHANGES),
    Command("form.override", ("o",), "form", bar=4, why_not=can.can_override),
    Command("form.inherit", ("i",), "form", bar=5, why_not=can.can_inherit),
    Command("form.add", ("n",), "form", bar=6, why_not=can.can_add),
    Command("form.remove", ("X",), "form", bar=7, why_not=can.can_remove),
    Command("form.next_tab", ("right_square_bracket", "tab"), "form", bar=3),
    Command("form.previous_tab", ("left_square_bracket", "shift+tab"), "form"),
    Command("form.editor", ("E",), "form", bar=8),
    Command("form.command", ("v",), "form", bar=9, why_not=can.reads),
    Command("form.plan", ("P",), "form"),
    Command("form.yaml", ("Y",), "form"),
    Command("form.copy", ("y",), "form"),
    Command("form.discard", ("D",), "form"),
    # hosts
    Command("hosts.describe", ("d",), "hosts", bar=2, why_not=can.host, text="describe"),
    Command("hosts.new", ("n",), "hosts", "change", 7, _CHANGES),
    Command("hosts.edit", ("E",), "hosts", "change", 0, _ALL(_CHANGES, can.host)),
    Command("hosts.test", ("t",), "hosts", bar=3, why_not=_ALL(can.reads, can.host)),
    Command("hosts.accept", ("a",), "hosts", "change", 4, _ALL(_CHANGES, can.key_unknown)),
    Command("hosts.delete", ("D",), "hosts", "destroy", 8, _ALL(_CHANGES, can.host)),
    Command("hosts.doctor", ("c",), "hosts", bar=5, why_not=_ALL(can.reads, can.host)),
    Command("hosts.doctor_all", ("C",), "hosts", why_not=can.reads),
    Command("hosts.ports", ("p",), "hosts", bar=6, why_not=_ALL(can.reads, can.host)),
    # the doctor's findings, a host's ports
    Command("doctor.again", ("t",), "doctor", bar=2, why_not=can.reads),
    Command("doctor.every", ("a",), "doctor", bar=3),
    Command("ports.again", ("t",), "ports", bar=2, why_not=can.reads),
    # events
    Command("events.describe", ("d",), "events", bar=2, why_not=can.event, text="describe"),
    Command("events.faults", ("exclamation_mark",), "events", bar=3),
    Command("events.only", ("o",), "events", bar=4, why_not=can.event_group),
    # modes
    Command("modes.copy", ("y",), "modes", bar=2, why_not=can.mode),
    # instances
    Command("instances.logs", ("l",), "instances", bar=2, why_not=_ALL(can.member, can.has_log),
            text="logs"),
    Command("instances.first_error", ("f",), "instances", why_not=_ALL(can.member, can.has_log),
            text="first_error"),
    Command("instances.describe", ("d",), "instances", bar=3, why_not=can.member, text="describe"),
    Command("instances.faults", ("exclamation_mark",), "instances", bar=4),
    Command("instances.copy", ("y",), "instances", bar=5, why_not=can.member),
    Command("instances.delete", ("X",), "instances", "change", 6,
            _ALL(_CHANGES, can.member, can.can_delete_member), text="delete_member"),
    # cache services
    Command("caches.describe", ("d",), "caches", bar=2, why_not=can.cache, text="describe"),
    Command("caches.new", ("n",), "caches", "change", 3, _CHANGES),
    Command("caches.edit", ("E",), "caches", "change", 4, _ALL(_CHANGES, can.cache)),
    Command("caches.delete", ("D",), "caches", "destroy", 5, _ALL(_CHANGES, can.unused_cache)),
    # settings
    Command("settings.change", ("E",), "settings", bar=2, why_not=can.setting),
    # a group watched
    Command("watch.next", ("right_square_bracket",), "watch", bar=1),
    Command("watch.previous", ("left_square_bracket",), "watch", bar=2),
    Command("watch.canary", ("T",), "watch", bar=3, why_not=_ALL(can.group, can.reads)),
    # text views
    *_moves("text", (
        ("down", ("down", "j"), "scroll_down"),
        ("up", ("up", "k"), "scroll_up"),
        ("page_down", ("pagedown", "space"), "page_down"),
        ("page_up", ("pageup", "b"), "page_up"),
        ("first", ("g", "home"), "scroll_home"),
        ("last", ("G", "end"), "scroll_end"),
    )),
    Command("describe.copy", ("y",), "describe", bar=1),
    Command("rendered.next", ("right_square_bracket", "tab"), "rendered", bar=2),
    Command("rendered.previous", ("left_square_bracket", "shift+tab"), "rendered"),
    # logs
    Command("log.follow", ("F",), "log", bar=1),
    Command("log.wrap", ("w",), "log", bar=2),
    Command("log.search", ("slash",), "log", bar=4),
    Command("log.next", ("n",), "log", bar=5, why_not=can.is_searching),
    Command("log.previous_match", ("N",), "log", bar=8, why_not=can.is_searching),
    Command("log.previous", ("p",), "log", bar=6, why_not=_ALL(can.reads, can.has_previous)),
    Command("log.newest", ("P",), "log", why_not=can.reads),
    Command("log.next_member", ("right_square_bracket",), "log"),
    Command("log.previous_member", ("left_square_bracket",), "log"),
    Command("log.merged", ("m",), "log", bar=7),
    Command("log.first_error", ("f",), "log", bar=3),
    Command("log.probes", ("h",), "log"),
    Command("log.diagnose", ("i",), "log", why_not=can.reads, text="diagnose"),
    Command("log.save", ("s",), "log", why_not=can.reads),
    Command("log.copy", ("y",), "log", bar=9),
)  # fmt: skip

BY_ID: dict[str, Command] = {c.id: c for c in COMMANDS}


def of(*scopes: Scope) -> list[Command]:
    """The commands of some scopes, in the table's order."""
    return [c for c in COMMANDS if c.scope in scopes]


def bar(
    *scopes: Scope, most: int = 9, first: Sequence[str] = (), without: Collection[str] = ()
) -> list[Command]:
    """The commands the key bar of these scopes shows: those of `first`, which the moment asks for,
    then the most used but those of `without`."""
    urgent = [BY_ID[name] for name in first]
    usual = sorted(
        (c for c in of(*scopes) if c.bar and c not in urgent and c.id not in without),
        key=lambda c: c.bar,
    )
    shown = [*urgent, *usual]
    return shown[:most] if len(shown) <= most else [*shown[: most - 2], *shown[-2:]]
