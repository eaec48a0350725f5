"""What somebody should look at now, from a group's view. Pure.

An alert lasts as long as its cause: it is made anew each time, and known again by its id.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from backend.domain.effect import BAD
from backend.domain.telling import Said, plainly, said, told
from backend.domain.views import EventView, GroupView, MemberView
from backend.domain.watch_views import AlertView

DISK_FULL = re.compile(
    r"No space left on device|disk (?:is )?full|ENOSPC|EFBIG|File too large", re.I
)
ACCELERATOR = re.compile(
    r"\bXid\b|GPU has fallen off|uncorrectable ECC|CUDA error|device-side assert|"
    r"Unable to determine the device handle|Driver/library version mismatch|NVML|"
    r"\bE[EZ]\d{4}\b|aclrt\w+ failed|error code:? 5078\d\d|507\d{3}",
    re.I,
)
DEAD = {
    "exited": "alert.exited",
    "unhealthy": "alert.unhealthy",
    "unreachable": "alert.unreachable",
}
"""A member's state, or what is told of it, and the alert's sentence."""
PLANNED = ("draining", "stopping")


def alerts(group: GroupView, wedged: frozenset[str] = frozenset()) -> list[AlertView]:
    """Every alert of one group; `wedged` are instances killed because they answered no more."""
    if _asked_to_end(group):
        return []
    found = [a for m in group.members for a in _of_member(group, m, wedged)]
    found += _of_traffic(group)
    return found


def brief(group: GroupView, event: EventView) -> AlertView | None:
    """What a member's fault was that began with `event` and is over: it was started again at once,
    so that no view ever showed it."""
    if _asked_to_end(group) or event.kind not in DEAD:
        return None
    about = {"group": event.group, "instance": event.instance, "host": event.host}
    return _alert("member_dead", event.said or plainly(event.message), **about)


def _asked_to_end(group: GroupView) -> bool:
    """Whether what ends there ends because somebody said so."""
    return group.deleting or group.paused or group.phase is not None


def _of_member(group: GroupView, m: MemberView, wedged: frozenset[str]) -> Iterator[AlertView]:
    about = {"group": group.name, "instance": m.id, "host": m.host}
    why = said("alert.because", why=m.note) if m.note else ""
    if m.state == "crash_loop":
        words = said("alert.crash_loop", instance=m.id, failures=m.failures, why=why)
        yield _alert("crash_loop", words, **about)
    elif m.state in DEAD:
        yield _alert("member_dead", said(DEAD[m.state], instance=m.id, why=why), **about)
    if m.id in wedged and m.state != "ready":
        yield _alert("wedged", said("alert.wedged", instance=m.id, why=why), **about)
    if m.note and m.state not in ("ready", *PLANNED):
        if DISK_FULL.search(m.note):
            words = said("alert.disk_full", host=m.host, why=m.note)
            yield _alert("disk_full", words, **about)
        if ACCELERATOR.search(m.note):
            words = said("alert.accelerator", host=m.host, why=m.note)
            yield _alert("accelerator", words, **about)


def _of_traffic(group: GroupView) -> Iterator[AlertView]:
    for m in group.members:
        found = m.effect
        if found is None or found.verdict not in BAD:
            continue
        kind = "lease_expired" if found.reason == "lease_expired" else "effect"
        about = {"group": group.name, "instance": m.id, "host": m.host}
        yield _alert(kind, said("alert.of", name=m.id, what=found.words), **about)
    run = group.canary
    if run is not None and not run.ok:
        words = said("alert.canary", name=group.name, what=run.words)
        yield _alert("canary", words, group=group.name)
    for mark in group.marks:
        if DISK_FULL.search(mark.text):
            what = list(mark.said) or mark.text
            words = said("alert.of", name=group.name, what=what)
            yield _alert("disk_full", words, group=group.name)


def _alert(kind: str, words: Said, **about: str) -> AlertView:
    where = about.get("instance") or about.get("host") or about.get("group") or ""
    text = told(words, "en")
    return AlertView(id=f"{kind}:{where}", kind=kind, text=text, said=words, **about)
