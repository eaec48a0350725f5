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
    for scope in dict.fromkeys(order):
        commands = [c for c in catalog.of(scope) if c.keys]
        if not commands:
            continue
        if out:
            out.append(())
        out.append((Span(tr(f"scope.{scope}"), "accent"),))
        out += [_row(c, ctx if scope in here else None, own) for c in commands]
    return out


def _row(command: Command, ctx: Context | None, own: Mapping[str, str]) -> Line:
    keys = own[command.id].split(",") if command.id in own else command.keys
    shown = " ".join(keymap.shown(k) for k in keys)
    reason = command.why_not(ctx) if ctx else None
    tail = Span(f" ({reason})", "off") if reason else Span("")
    return (
        Span(f"  {shown:<16}", "off" if reason else "strong"),
        Span(command.help, "off" if reason else "text"),
        tail,
    )


class HelpDialog(Dialog[None]):
    """The help of the screen below."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,question_mark,f1", "leave", show=False)]
    DEFAULT_CSS = """
    HelpDialog > #box { width: 92; height: 90%; }
    HelpDialog LinesView { height: 1fr; max-height: 100%; }
    """

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
