"""Questions that no command asks by itself: a host's unknown key, and leaving groups unwatched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pdtui.i18n import tr
from pdtui.present import detail
from pdtui.present.cells import Line, Span
from pdtui.screens.dialogs.confirm import Confirm

if TYPE_CHECKING:
    from backend.domain.errors import PdError
    from pdtui.app import Console

NAMED = 6
"""Groups that are named before the rest is only counted."""


def accept_key(console: Console, host: str, fingerprint: str, error: PdError) -> None:
    """Show a key nobody has accepted yet; a read-only console shows it and no more."""

    def answered(yes: bool | None) -> None:
        if yes and console.session:
            console.session.accept_host_key(host, fingerprint)

    if console.read_only:
        console.report(error)
        return
    lines: list[Line] = [
        *detail.problems(error.problems),
        (),
        (Span(tr("accept.means"), "warn"),),
    ]
    title = tr("accept.title", name=host)
    console.push_screen(Confirm(title, lines, tr("accept.yes"), danger=True), answered)


def leave(console: Console, running: list[str]) -> None:
    """Say which groups nobody will watch, and how to keep them watched."""

    def answered(yes: bool | None) -> None:
        if yes:
            console.exit()

    rest = len(running) - NAMED
    lines: list[Line] = [
        (Span(tr("quit.unwatched")),),
        *((Span(f"  {name}", "strong"),) for name in running[:NAMED]),
        *([(Span(tr("quit.more", count=rest), "dim"),)] if rest > 0 else []),
        (),
        (Span(tr("quit.means"), "dim"),),
        (Span(tr("quit.daemon"), "accent"),),
    ]
    dialog = Confirm(tr("quit.title"), lines, tr("quit.yes"), no=tr("quit.no"))
    console.push_screen(dialog, answered)
