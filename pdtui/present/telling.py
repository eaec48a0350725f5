"""What the backend tells, in the language in use: history lines, marks, verdicts, findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pdtui.i18n import current
from pdtui.i18n.foreign import said_as

if TYPE_CHECKING:
    from backend.domain.doctor import Finding
    from backend.domain.telling import Said
    from backend.domain.views import Deletion, EventView, Mark
    from backend.domain.watch_views import AlertView, CanaryView, EffectView, PairView


def of(said: Said | None, text: str) -> str:
    """What is told; `text`, its English, where it came without data from an earlier version."""
    if said is None or current() == "en":
        return text
    from backend.domain.telling import rewritten, told

    return told(rewritten(said, said_as), current())


def of_event(event: EventView) -> str:
    """A history line."""
    return of(event.said, event.message)


def of_mark(mark: Mark) -> str:
    """What a mark says."""
    if not mark.said or current() == "en":
        return mark.text
    from backend.domain.telling import all_told, rewritten

    return all_told((rewritten(one, said_as) for one in mark.said), current())


def of_deletion(deletion: Deletion) -> tuple[str, ...]:
    """What taking an instance out means, a sentence each."""
    if not deletion.said or current() == "en":
        return deletion.warnings
    return tuple(of(s, "") for s in deletion.said)


def of_watched(one: EffectView | PairView | AlertView) -> str:
    """What a verdict or an alert says."""
    return of(one.said, one.text)


def of_canary(run: CanaryView) -> str:
    """What is wrong with a canary; empty when nothing is."""
    return of(run.said, run.note)


def of_finding(finding: Finding) -> tuple[str, str]:
    """What the doctor saw, and what to do about it."""
    return of(finding.said, finding.seen), of(finding.advised, finding.remedy)
