"""Every key, from the table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from pdtui.commands import catalog, keymap
from pdtui.commands.model import Command, Context, Scope
from pdtui.i18n import tr
from pdtui.present.cells import Line, Span
from pdtui.screens.dialogs.base import Dialog
from pdtui.widgets.lines_view import LinesView

_OTHERS: tuple[Scope, ...] = (
    "groups",
    "group",
    "form",
    "hosts",
    "events",
    "modes",
    "instances",
    "caches",
    "settings",
    "rendered",
    "log",
    "text",
    "list",
    "app",
)


def page(scopes: tuple[Scope, ...], ctx: Context, own: Mapping[str, str]) -> list[Line]:
    """The keys of this screen first, then every other screen's; greyed with the reason."""
    moving = ("list", "text")
    own_scopes = [s for s in scopes if s not in moving]
    here: list[Scope] = [*own_scopes, "app", *(s for s in scopes if s in moving)]
    order = [*here, *(s for s in _OTHERS if s not in here)]
    out: list[Line] = []
    told = {scope: [c for c in catalog.of(scope) if c.keys] for scope in order}
    room = max(len(_keys(c, own)) for commands in told.values() for c in commands)
    for scope, commands in told.items():
        if not commands:
            continue
        if out:
            out.append(())
        out.append((Span(tr(f"scope.{scope}"), "accent"),))
        out += [_row(c, ctx if scope in here else None, own, room) for c in commands]
    return out


def _keys(command: Command, own: Mapping[str, str]) -> str:
    keys = own[command.id].split(",") if command.id in own else command.keys
    return " ".join(keymap.shown(k) for k in keys)


def _row(command: Command, ctx: Context | None, own: Mapping[str, str], room: int) -> Line:
    reason = command.why_not(ctx) if ctx else None
    tail = Span(f" ({reason})", "off") if reason else Span("")
    return (
        Span(f"  {_keys(command, own):<{room}}  ", "off" if reason else "strong"),
        Span(command.help, "off" if reason else "text", hang=True),
        tail,
    )


class HelpDialog(Dialog[None]):
    """The help of the screen below."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,question_mark,f1", "leave", show=False)]

    def __init__(
        self,
        scopes: tuple[Scope, ...],
        ctx: Context,
        own: Mapping[str, str],
        bad: Sequence[str] = (),
    ) -> None:
        """`bad` are sentences about the user's own keys that could not be used."""
        super().__init__(tr("help.title"))
        self._page = page(scopes, ctx, own)
        if bad:
            title: Line = (Span(tr("help.keys_file"), "warn"),)
            self._page = [title, *((Span(f"  {b}"),) for b in bad), (), *self._page]

    def content(self) -> Iterable[Widget]:
        """One page."""
        yield LinesView(self._page)

    def on_mount(self) -> None:
        """The page has the keys."""
        self.query_one(LinesView).focus()
