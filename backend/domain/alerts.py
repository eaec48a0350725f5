"""What somebody should look at now, from a group's view. Pure.

An alert lasts as long as its cause: it is made anew each time, and known again by its id.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from backend.domain.effect import BAD
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
    "exited": "has ended by itself",
    "unhealthy": "does not answer its health path",
    "unreachable": "cannot be seen: its host does not answer",
}
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
    return _alert("member_dead", event.message, **about)


def _asked_to_end(group: GroupView) -> bool:
    """Whether what ends there ends because somebody said so."""
    return group.deleting or group.paused or group.phase is not None


def _of_member(group: GroupView, m: MemberView, wedged: frozenset[str]) -> Iterator[AlertView]:
    about = {"group": group.name, "instance": m.id, "host": m.host}
    why = f": {m.note}" if m.note else ""
    if m.state == "crash_loop":
        text = f"{m.id} ended {m.failures} times before it served; it is not started again{why}"
        yield _alert("crash_loop", text, **about)
    elif m.state in DEAD:
        yield _alert("member_dead", f"{m.id} {DEAD[m.state]}{why}", **about)
    if m.id in wedged and m.state != "ready":
        yield _alert("wedged", f"{m.id} answered no more and was killed{why}", **about)
    if m.note and m.state not in ("ready", *PLANNED):
        if DISK_FULL.search(m.note):
            yield _alert("disk_full", f"the disk of {m.host} is full: {m.note}", **about)
        if ACCELERATOR.search(m.note):
            yield _alert("accelerator", f"an accelerator of {m.host} fails: {m.note}", **about)


def _of_traffic(group: GroupView) -> Iterator[AlertView]:
    for m in group.members:
        found = m.effect
        if found is None or found.verdict not in BAD:
            continue
        kind = "lease_expired" if found.reason == "lease_expired" else "effect"
        about = {"group": group.name, "instance": m.id, "host": m.host}
        yield _alert(kind, f"{m.id}: {found.text}", **about)
    run = group.canary
    if run is not None and not run.ok:
        yield _alert("canary", f"the canary of {group.name} fails: {run.note}", group=group.name)
    for mark in group.marks:
        if DISK_FULL.search(mark.text):
            yield _alert("disk_full", f"{group.name}: {mark.text}", group=group.name)


def _alert(kind: str, text: str, **about: str) -> AlertView:
    where = about.get("instance") or about.get("host") or about.get("group") or ""
    return AlertView(id=f"{kind}:{where}", kind=kind, text=text, **about)
