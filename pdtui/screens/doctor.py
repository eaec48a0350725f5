"""What the doctor found on hosts: a row a finding, asked for when the screen opens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import BindingType
from textual.widget import Widget

from pdtui.commands import keymap
from pdtui.i18n import tr
from pdtui.present import doctor
from pdtui.present.cells import Line, Row, Span
from pdtui.screens.base import Area, TableScreen
from pdtui.screens.text import TextScreen
from pdtui.widgets.resource_table import ResourceTable

if TYPE_CHECKING:
    from backend.domain.doctor import Finding
    from backend.domain.errors import PdError


class DoctorScreen(TableScreen):
    """The findings on `host` (all hosts: None), or on what `deployment` may use."""

    area: Area = "hosts"
    scopes = ("list", "doctor")
    kinds = ()
    BINDINGS: ClassVar[list[BindingType]] = [*keymap.bindings("list", "doctor")]

    def __init__(self, host: str | None = None, deployment: str | None = None) -> None:
        super().__init__()
        self.host, self.deployment = host, deployment
        if deployment is not None:
            self.area = "groups"
        self.found: tuple[Finding, ...] = ()
        self.every = False
        self._state = "new"

    def body(self) -> Iterable[Widget]:
        """One table."""
        yield ResourceTable(doctor.columns(), widget_id="doctor")

    def path(self) -> list[str]:
        """Whom it is about."""
        about = self.deployment or self.host
        return [*([about] if about else []), tr("doctor.title")]

    def rows(self) -> list[Row]:
        """One row a finding."""
        return doctor.rows(self.found, every=self.every)

    def nothing(self) -> list[Line]:
        """Not asked yet, being asked, or all well."""
        text = {
            "asking": (tr("doctor.asking"), "busy"),
            "failed": (tr("doctor.failed"), "bad"),
        }.get(self._state)
        if text is None:
            text = (tr("doctor.well") if self.found else tr("doctor.no_hosts"), "ok")
        return [(Span(text[0], text[1]),)]  # type: ignore[arg-type]

    def fill(self) -> None:
        """Ask once, as soon as somebody can answer."""
        if self._state == "new" and self.console.store.connected:
            self.ask()
        super().fill()

    def ask(self) -> None:
        """Examine the hosts now."""
        session = self.console.session
        if session is None or self._state == "asking":
            return
        self._state = "asking"
        hosts = (self.host,) if self.host else ()
        session.doctor(hosts, self.deployment, self._take, self._failed)

    def toggle(self) -> None:
        """What is well too, or only what is not."""
        self.every = not self.every
        self.fill()

    def _take(self, found: tuple[Finding, ...]) -> None:
        self.found, self._state = found, "done"
        if self.is_mounted:
            self.fill()
            self.key_bar()
            tone = "bad" if any(f.verdict == "fail" for f in found) else "ok"
            self.say(doctor.summary(found), tone)  # type: ignore[arg-type]

    def _failed(self, error: PdError) -> bool:
        self._state = "failed"
        if self.is_mounted:
            self.fill()
        return False

    @on(ResourceTable.RowOpened)
    def _open(self, event: ResourceTable.RowOpened) -> None:
        event.stop()
        finding = next((f for n, f in enumerate(self.found) if doctor.key(f, n) == event.key), None)
        if finding is not None:
            path = [*self.path(), finding.host]
            page = doctor.page(finding)
            self.console.push_screen(TextScreen(self.area, path, lambda: page))
