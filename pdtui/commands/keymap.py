"""Bindings made from the table, the reserved keys, and a user's own keys by command id."""

from __future__ import annotations

from collections.abc import Mapping

from textual.binding import Binding

from pdtui.commands import catalog
from pdtui.commands.model import Command, Scope
from pdtui.i18n import tr

RESERVED: dict[str, str] = {
    "ctrl+i": "tab",
    "ctrl+m": "enter",
    "ctrl+h": "backspace",
    "ctrl+left_square_bracket": "escape",
    "ctrl+a": "tmux, screen",
    "ctrl+b": "tmux",
    "ctrl+z": "job control",
    "ctrl+s": "flow control",
    "ctrl+q": "flow control",
    "ctrl+enter": "lost in tmux",
    "shift+enter": "lost in tmux",
    "alt+enter": "lost in tmux",
    "ctrl+space": "lost in tmux",
    "ctrl+slash": "lost in tmux",
}
"""Keys nobody may bind, and who has them."""
FIXED = frozenset({"app.help", "app.palette", "app.back", "app.quit", "app.interrupt"})
"""Commands whose keys stay, so that a bad keymap can always be left."""

_SHOWN = {
    "question_mark": "?", "slash": "/", "colon": ":", "exclamation_mark": "!",
    "plus": "+", "minus": "-", "asterisk": "*",
    "escape": "esc", "pagedown": "pgdn", "pageup": "pgup",
    "left_square_bracket": "[", "right_square_bracket": "]",
    "down": "↓", "up": "↑", "less_than_sign": "<", "greater_than_sign": ">",
}  # fmt: skip


def shown(key: str) -> str:
    """A key as the key bar and the help write it."""
    return _SHOWN.get(key, key)


def binding(command: Command) -> Binding:
    """The Textual binding of a command; it carries the command's id so that it can be remapped."""
    return Binding(
        ",".join(command.keys),
        command.bound_action,
        command.id,
        show=False,
        id=command.id,
        priority=command.id == "app.interrupt",
    )


def bindings(*scopes: Scope, owner: str = "handler") -> list[Binding]:
    """The bindings of some scopes that the console or the widgets own."""
    return [binding(c) for c in catalog.of(*scopes) if c.owner == owner and c.keys]


def check(overrides: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """A user's keys by command id: the ones that can be used, and a sentence for each that cannot.

    Keys are separated by commas. Two commands that can be seen together never share a key.
    """
    good: dict[str, str] = {}
    bad: list[str] = []
    for name, keys in overrides.items():
        command = catalog.BY_ID.get(name)
        wanted = [k.strip() for k in keys.split(",") if k.strip()]
        if command is None:
            bad.append(tr("keymap.unknown", id=name))
        elif name in FIXED:
            bad.append(tr("keymap.fixed", id=name))
        elif taken := next((k for k in wanted if k in RESERVED), None):
            bad.append(tr("keymap.reserved", id=name, key=taken, why=RESERVED[taken]))
        elif clash := _clash(command, wanted, {**_defaults(), **good}):
            bad.append(tr("keymap.clash", id=name, key=clash[0], other=clash[1]))
        else:
            good[name] = ",".join(wanted)
    return good, bad


def _defaults() -> dict[str, str]:
    return {c.id: ",".join(c.keys) for c in catalog.COMMANDS}


def _clash(command: Command, wanted: list[str], have: Mapping[str, str]) -> tuple[str, str] | None:
    for other in catalog.COMMANDS:
        if other.id == command.id or not together(command.scope, other.scope):
            continue
        for key in have[other.id].split(","):
            if key in wanted:
                return key, other.id
    return None


_TOGETHER: tuple[frozenset[Scope], ...] = (
    frozenset({"app", "list", "groups"}),
    frozenset({"app", "list", "group"}),
    frozenset({"app", "list", "hosts"}),
    frozenset({"app", "list", "events"}),
    frozenset({"app", "text", "describe"}),
    frozenset({"app", "text", "rendered"}),
    frozenset({"describe", "rendered"}),
    frozenset({"app", "text", "log"}),
    frozenset({"app", "list", "modes"}),
    frozenset({"app", "list", "form"}),
    frozenset({"app", "list", "instances"}),
    frozenset({"app", "list", "caches"}),
    frozenset({"app", "list", "settings"}),
    frozenset({"app", "list", "doctor"}),
    frozenset({"app", "text", "describe", "ports"}),
    frozenset({"app", "text", "form"}),
)


def together(one: Scope, other: Scope) -> bool:
    """Whether two scopes are live on the same screen."""
    return any({one, other} <= group for group in _TOGETHER)
