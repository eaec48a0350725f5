"""State to glyph, word and tone, in this one place; an ASCII set for terminals without Unicode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pdtui.i18n.catalog import word
from pdtui.present.cells import Span, Tone

if TYPE_CHECKING:
    from backend.domain.views import GroupView, HostView, Level, MemberView


@dataclass(frozen=True)
class Glyphs:
    """The marks drawn beside words. Each is one cell wide and never the only sign of a state."""

    full: str = "●"
    half: str = "◐"
    empty: str = "○"
    fading: str = "◌"
    cross: str = "✗"
    warn: str = "▲"
    clock: str = "◷"
    cursor: str = "▌"
    more: str = "…"
    rule: str = "─"
    under: str = "━"
    arrow: str = "→"
    path: str = "›"
    dot: str = "·"
    yes: str = "✓"
    up: str = "↑"
    down: str = "↓"
    marked: str = "◆"
    spin: str = "⠋⠙⠹⠸⠼⠴⠦⠧"


UNICODE = Glyphs()
ASCII = Glyphs(
    full="*", half="+", empty="o", fading="~", cross="x", warn="!", clock="@", cursor=">",
    more="~", rule="-", under="=", arrow="->", path=">", dot="-", yes="y", up="^", down="v",
    marked="#", spin="|/-\\",
)  # fmt: skip

_chosen = UNICODE


def glyphs() -> Glyphs:
    """The set in use."""
    return _chosen


def use_glyphs(chosen: Glyphs) -> None:
    """Draw with this set from now on."""
    global _chosen
    _chosen = chosen


def speaks_unicode(environ: Mapping[str, str], encoding: str | None) -> bool:
    """Whether the terminal can be expected to draw more than ASCII."""
    if environ.get("PDTUI_ASCII") or environ.get("TERM") in ("linux", "dumb", "vt100"):
        return False
    locale = environ.get("LC_ALL") or environ.get("LANG") or ""
    if locale in ("C", "POSIX"):
        return False
    return "utf" in (encoding or "").lower()


@dataclass(frozen=True)
class Look:
    """How one state is drawn."""

    glyph: str
    word: str
    tone: Tone

    def span(self) -> Span:
        """Glyph and word as one span."""
        return Span(f"{self.glyph} {self.word}", self.tone)


_GROUP: dict[str, tuple[str, Tone]] = {
    "Stopped": ("empty", "off"),
    "Pending": ("fading", "busy"),
    "Partially ready": ("half", "warn"),
    "Running": ("full", "ok"),
}
_MEMBER: dict[str, tuple[str, Tone]] = {
    "pending": ("fading", "off"),
    "starting": ("half", "busy"),
    "ready": ("full", "ok"),
    "unhealthy": ("warn", "warn"),
    "draining": ("half", "busy"),
    "stopping": ("empty", "busy"),
    "exited": ("cross", "warn"),
    "crash_loop": ("cross", "bad"),
    "unreachable": ("warn", "bad"),
}
MEMBER_ORDER: tuple[str, ...] = (
    "crash_loop", "unreachable", "exited", "unhealthy", "starting", "pending", "draining",
    "stopping", "ready",
)  # fmt: skip
"""States of members, what most needs a look first."""
GROUP_ORDER: tuple[str, ...] = ("Pending", "Partially ready", "Running", "Stopped")
_HOST: dict[str, tuple[str, Tone]] = {
    "unknown": ("fading", "off"),
    "up": ("full", "ok"),
    "unreachable": ("cross", "bad"),
    "key_unknown": ("warn", "warn"),
    "key_changed": ("cross", "bad"),
    "denied": ("cross", "bad"),
}
_LEVEL: dict[str, tuple[str, Tone]] = {
    "info": ("dot", "dim"),
    "warning": ("warn", "warn"),
    "error": ("cross", "bad"),
}


def _look(table: dict[str, tuple[str, Tone]], prefix: str, state: str) -> Look:
    name, tone = table[state]
    return Look(getattr(_chosen, name), word(prefix, state), tone)


def group_look(group: GroupView) -> Look:
    """The status of a group; a group on its way out says so instead."""
    if group.deleting:
        return Look(_chosen.empty, word("status", "Deleting"), "busy")
    return _look(_GROUP, "status", group.status)


def member_look(member: MemberView) -> Look:
    """The state of one member or router."""
    return _look(_MEMBER, "state", member.state)


def host_look(host: HostView) -> Look:
    """The state of one host."""
    return _look(_HOST, "host", host.state)


def level_look(level: Level) -> Look:
    """The weight of an event or a mark."""
    return _look(_LEVEL, "level", level)
