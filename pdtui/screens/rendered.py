"""What would be started, a role at a time: the command as one line for a shell, and in parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType

from pdtui.commands import keymap
from pdtui.i18n import tr
from pdtui.i18n.catalog import word
from pdtui.present import rendered
from pdtui.screens.text import TextScreen

if TYPE_CHECKING:
    from backend.domain.views import RenderedView


class RenderedScreen(TextScreen):
    """Begins with the role it was asked for; copying takes that role's command."""

    scopes = ("text", "describe", "rendered")
    BINDINGS: ClassVar[list[BindingType]] = [*keymap.bindings("describe", "rendered")]

    def __init__(self, path: list[str], found: tuple[RenderedView, ...], role: str) -> None:
        self._found = found
        names = [v.role for v in found]
        self._at = names.index(role) if role in names else 0
        super().__init__("groups", path, lambda: rendered.page(self.shown))

    @property
    def shown(self) -> RenderedView:
        """The role on the screen."""
        return self._found[self._at]

    @property
    def text(self) -> str:
        """The command alone, as a shell takes it."""
        return self.shown.command

    def path(self) -> list[str]:
        """The deployment, and the role."""
        return [*self._path, f"{tr('rendered.title')}{tr('colon')}{word('role', self.shown.role)}"]

    def turn(self, by: int) -> None:
        """To the next role, round the end."""
        self._at = (self._at + by) % len(self._found)
        self.sync(force=True)
