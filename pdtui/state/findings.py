"""Pure: where on the form each finding of the rules stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pdtui.state import words
from pdtui.state.form import MODE, ROLE_TABS, Item, Tab

if TYPE_CHECKING:
    from backend.domain.errors import Problem


def tab_of(path: str) -> Tab:
    """The tab on which a finding at `path` is shown."""
    for role in ROLE_TABS:
        if path.startswith(f"spec.roles.{role}"):
            return role
    return (
        "disaggregation"
        if path.startswith(("spec.disaggregation", "spec.roles"))
        else ("deployment")
    )


def placed(items: Sequence[Item], problems: Sequence[Problem]) -> dict[str, list[Problem]]:
    """Each finding at the key of the one item where it bites: the entry, else the field.

    What belongs to none of `items` is left out.
    """
    out: dict[str, list[Problem]] = {}
    for problem in problems:
        if (item := _place(items, problem.path)) is not None:
            out.setdefault(item.key, []).append(problem)
    return out


def elsewhere(
    tab: Tab, placed_here: Mapping[str, Sequence[Problem]], problems: Sequence[Problem]
) -> list[Problem]:
    """The findings of a tab that stand at none of its fields: of hosts, of the document whole."""
    shown = {id(p) for found in placed_here.values() for p in found}
    return [p for p in problems if tab_of(p.path) == tab and id(p) not in shown]


def _place(items: Sequence[Item], path: str) -> Item | None:
    if path in ("spec.disaggregation", MODE):
        chosen = (i for i in items if i.part == "mode" and i.marker == "set")
        return next(chosen, None)
    fields = [i for i in items if i.part == "field" and _inside(path, i.field.path)]
    if not fields:
        return None
    head = max(fields, key=lambda i: len(i.field.path))
    entry = words.entry_of(path[len(head.field.path) :])
    for item in items:
        if item.part != "entry" or item.field.path != head.field.path:
            continue
        covered = isinstance(entry, int) and item.at[0] <= entry < item.at[1]
        if covered or (entry is not None and entry == item.name):
            return item
    return head


def _inside(path: str, of: str) -> bool:
    return path == of or path.startswith((f"{of}.", f"{of}["))
