"""One command, and what a command may look at to say whether it can act."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pdtui.i18n import tr

if TYPE_CHECKING:
    from backend.domain.views import (
        CacheView,
        EventView,
        GroupView,
        HostView,
        MemberView,
        ModeView,
    )
    from pdtui.state.form import Form, Item

Scope = Literal[
    "app",
    "list",
    "groups",
    "group",
    "hosts",
    "events",
    "text",
    "describe",
    "log",
    "form",
    "modes",
    "instances",
    "caches",
    "settings",
    "doctor",
    "ports",
    "watch",
    "rendered",
]
Effect = Literal["read", "change", "destroy"]


@dataclass(frozen=True)
class Context:
    """What stands under the cursor and how the console is connected, at one moment."""

    connected: bool = True
    read_only: bool = False
    group: GroupView | None = None
    member: MemberView | None = None
    role: str | None = None
    host: HostView | None = None
    event: EventView | None = None
    log_instance: str | None = None
    log_generation: int = 0
    searching: bool = False
    mode: ModeView | None = None
    item: Item | None = None
    form: Form | None = None
    cache: CacheView | None = None
    setting: str = ""
    markable: bool = False
    sortable: bool = False
    marked: tuple[str, ...] = ()


WhyNot = Callable[[Context], str | None]


def always(_: Context) -> str | None:
    """Nothing stands in the way."""
    return None


@dataclass(frozen=True)
class Command:
    """One row of the table.

    `keys` are Textual key names, the first is shown. `bar` is the place in the key bar (lower is
    earlier, 0 is never). `owner` is `handler` for commands the console runs, or `widget` for those
    the focused widget runs itself through `action`.
    """

    id: str
    keys: tuple[str, ...]
    scope: Scope
    effect: Effect = "read"
    bar: int = 0
    why_not: WhyNot = always
    owner: Literal["handler", "widget"] = "handler"
    action: str = ""
    text: str = ""

    @property
    def title(self) -> str:
        """A word or two, for the key bar."""
        return tr(f"cmd.{self.text or self.id}")

    @property
    def help(self) -> str:
        """A sentence, for the help screen and the palette."""
        return tr(f"cmd.{self.text or self.id}.help")

    @property
    def bound_action(self) -> str:
        """The Textual action string its keys run."""
        return self.action if self.owner == "widget" else f"app.command('{self.id}')"
