"""What the form's commands do. The form is imported with its first use: it needs the rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, cast

from pdtui.commands.model import Context
from pdtui.i18n import tr

if TYPE_CHECKING:
    from pdtui.app import Console
    from pdtui.screens.form import FormScreen

Act = Callable[["FormScreen"], None]


def _on_form(act: Act) -> Callable[[Console, Context], None]:
    def run(console: Console, _: Context) -> None:
        from pdtui.screens.form import FormScreen

        if isinstance(console.screen, FormScreen):
            act(console.screen)

    return run


def _on_item(what: Literal["override", "inherit", "remove"]) -> Act:
    def act(screen: FormScreen) -> None:
        if (item := screen.item()) is not None:
            screen.act(item, what)

    return act


def _add(screen: FormScreen) -> None:
    if (item := screen.item()) is not None:
        screen.add_to(item.field)


def _keeper(name: str) -> Act:
    def act(screen: FormScreen) -> None:
        from pdtui.screens import form_keeper

        cast("Act", getattr(form_keeper, name))(screen)

    return act


def _copy(screen: FormScreen) -> None:
    from backend.domain.secrets import masked

    text = screen.written(masked(screen.form.output()))
    screen.console.copy(text, tr("copy.what.document"))


def _turn(by: int) -> Callable[[Console, Context], None]:
    def run(console: Console, _: Context) -> None:
        from pdtui.screens.rendered import RenderedScreen

        if isinstance(console.screen, RenderedScreen):
            console.screen.turn(by)

    return run


FORM: dict[str, Callable[[Console, Context], None]] = {
    "form.save": _on_form(_keeper("save")),
    "form.override": _on_form(_on_item("override")),
    "form.inherit": _on_form(_on_item("inherit")),
    "form.add": _on_form(_add),
    "form.remove": _on_form(_on_item("remove")),
    "form.next_tab": _on_form(lambda s: s.turn(1)),
    "form.previous_tab": _on_form(lambda s: s.turn(-1)),
    "form.editor": _on_form(_keeper("open_editor")),
    "form.plan": _on_form(_keeper("show_plan")),
    "form.yaml": _on_form(lambda s: s.go("yaml")),
    "form.copy": _on_form(_copy),
    "form.command": _on_form(_keeper("show_command")),
    "rendered.next": _turn(1),
    "rendered.previous": _turn(-1),
    "form.discard": _on_form(_keeper("ask_to_discard")),
}
