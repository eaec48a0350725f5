"""Handlers of diagnosis and advice."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pdtui.commands.model import Context
from pdtui.i18n import tr
from pdtui.present import advice, diagnosis
from pdtui.present.cells import Line
from pdtui.screens.text import TextScreen

if TYPE_CHECKING:
    from pdtui.app import Console

Handler = Callable[["Console", Context], None]


def diagnose(console: Console, ctx: Context) -> None:
    """Why the member under the cursor, or the group, does not serve; in a log, that log's own."""
    session = console.session
    if session is None:
        return
    name = ctx.log_instance or (ctx.member.id if ctx.member else "")
    group = ctx.group.name if ctx.group else ""
    if name:
        attempt = ctx.log_generation or None
        session.call(
            f"diagnose.{name}",
            lambda c: c.diagnose_instance(name, attempt),
            lambda d: _show(console, [group, name], diagnosis.member(d)),
            opens=True,
        )
    elif group:
        session.call(
            f"diagnose.{group}",
            lambda c: c.diagnose_group(group),
            lambda d: _show(console, [group], diagnosis.group(d)),
            opens=True,
        )


def advise(console: Console, ctx: Context) -> None:
    """Whether disaggregation pays for the group under the cursor."""
    assert ctx.group is not None
    name = ctx.group.name
    if console.session:
        console.session.call(
            f"advise.{name}",
            lambda c: c.advise(name=name),
            lambda found: _show(console, [name], advice.page(found), tr("advice.title")),
            opens=True,
        )


def _show(console: Console, path: list[str], lines: list[Line], title: str = "") -> None:
    page = [*(p for p in path if p), title or tr("diagnosis.title")]
    console.push_screen(TextScreen("groups", page, lambda: lines))


GROUP: dict[str, Handler] = {"diagnose": diagnose, "advise": advise}
INSIGHT: dict[str, Handler] = {"log.diagnose": diagnose}
