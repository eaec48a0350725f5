"""The port map of one host."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType

from pdtui.commands import keymap
from pdtui.i18n import tr
from pdtui.present import ports
from pdtui.present.cells import Line
from pdtui.screens.text import TextScreen

if TYPE_CHECKING:
    from backend.domain.portmap import PortMap


class PortsScreen(TextScreen):
    """Drawn from one look at the host; `t` looks again."""

    scopes = ("text", "describe", "ports")
    BINDINGS: ClassVar[list[BindingType]] = [*keymap.bindings("ports")]

    def __init__(self, found: PortMap) -> None:
        self.found = found
        super().__init__("hosts", [found.host, tr("ports.title")], self._page)

    def _page(self) -> list[Line]:
        return ports.page(self.found)

    def again(self) -> None:
        """Look at the host now."""
        if self.console.session:
            self.console.session.host_ports(self.found.host, self._take)

    def _take(self, found: PortMap) -> None:
        self.found = found
        if self.is_mounted:
            self.fill()
            self.say(tr("ports.looked", host=found.host), "ok")
