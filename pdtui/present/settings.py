"""The console's settings and who answers it, as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pdtui.i18n import tr
from pdtui.i18n.catalog import word
from pdtui.present.cells import Cell, Column, Row
from pdtui.present.numbers import NONE

if TYPE_CHECKING:
    from backend.domain.views import Health

INFO = "info:"


def columns() -> tuple[Column, ...]:
    """A setting, its value, what it means."""
    return (
        Column("name", tr("col.setting"), least=16, most=24),
        Column("value", tr("col.value"), least=16, most=60, shrink=True),
        Column("means", "", priority=1, least=20, most=120, shrink=True, grow=True),
    )


def rows(
    values: dict[str, str], keys: tuple[str, int, int], facts: list[tuple[str, str]]
) -> list[Row]:
    """The settings, the keymap (its path, how many keys hold, how many do not), and the facts of
    the backend."""
    path, good, bad = keys
    out = [_heading("console", tr("settings.console"))]
    for name, value in values.items():
        shown = Cell.of(word(f"setting.{name}", value), "strong")
        means = Cell.of(tr(f"setting.{name}.means"), "dim")
        out.append(Row(name, (Cell.of(tr(f"setting.{name}")), shown, means)))
    said = tr("settings.keys.bad", good=good, bad=bad) if bad else tr("settings.keys", good=good)
    shown = Cell.of(said, "warn" if bad else "strong")
    means = Cell.of(tr("setting.keymap.means", path=path), "dim")
    out.append(Row("keymap", (Cell.of(tr("setting.keymap")), shown, means)))
    out.append(_heading("backend", tr("settings.backend")))
    out += [Row(f"{INFO}{k}", (Cell.of(tr(f"info.{k}")), Cell.of(v), Cell())) for k, v in facts]
    return out


def facts(health: Health | None, connected: bool, events: int) -> list[tuple[str, str]]:
    """Who answers, and from where."""
    if health is None:
        return [("connection", tr("status.disconnected"))]
    kind = tr("status.embedded" if health.embedded else "status.daemon")
    return [
        ("connection", kind if connected else tr("status.disconnected")),
        ("version", f"{health.version} (API {health.api})"),
        ("pid", str(health.pid)),
        ("state_dir", health.state_dir or NONE),
        ("backend_read_only", tr("yes" if health.read_only else "no")),
        ("events", str(events)),
    ]


def _heading(key: str, text: str) -> Row:
    return Row(f"heading:{key}", (Cell.of(text, "accent"),), heading=True)
