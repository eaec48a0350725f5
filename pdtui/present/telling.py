"""What the backend tells, in the language in use: history lines and marks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pdtui.i18n import current

if TYPE_CHECKING:
    from backend.domain.views import Deletion, EventView, Mark


def of_event(event: EventView) -> str:
    """A history line; as it came where it is of an earlier version."""
    if event.said is None or current() == "en":
        return event.message
    from backend.domain.telling import told

    return told(event.said, current())


def of_mark(mark: Mark) -> str:
    """What a mark says."""
    if not mark.said or current() == "en":
        return mark.text
    from backend.domain.telling import all_told

    return all_told(mark.said, current())


def of_deletion(deletion: Deletion) -> tuple[str, ...]:
    """What taking an instance out means, a sentence each."""
    if not deletion.said or current() == "en":
        return deletion.warnings
    from backend.domain.telling import told

    return tuple(told(s, current()) for s in deletion.said)
