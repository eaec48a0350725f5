"""What a waiting command tells of a group on its way."""

from __future__ import annotations

from typing import Any

import pytest

from backend.domain.views import GroupView, Mark, MemberView, PhaseView, RoleCount
from pdtui.cli.progress import Progress, describe

MEMBER = MemberView(id="p", role="prefill", host="a", state="ready", generation=1, revision="r")


def view(**about: Any) -> GroupView:
    roles = {"prefill": RoleCount(wanted=2, ready=1, present=2)}
    base: dict[str, Any] = {
        "name": "g", "mode": "vllm-nixl", "engine": "vllm", "model": "/m", "version": 1,
        "revision": "r", "status": "Running", "roles": roles, "members": (MEMBER,),
    }  # fmt: skip
    return GroupView(**(base | about))


BLOCKED = Mark(id="restart_blocked", text="The restart waits for a to confirm.", level="error")
PHASE = PhaseView(name="stop members", done=1, total=3)


@pytest.mark.parametrize(
    ("group", "lines"),
    [
        (view(), ("Running: prefill 1/2",)),
        (view(phase=PHASE, marks=(BLOCKED,)), ("stop members 1/3", BLOCKED.text)),
        (view(deleting=True), ("stopping, 1 left",)),
        (view(paused=True, members=()), ("stopped",)),
        (view(marks=(Mark(id="unverified", text="a doubt"),)), ("Running: prefill 1/2",)),
    ],
)
def test_a_group_is_described_by_what_it_goes_through(
    group: GroupView, lines: tuple[str, ...]
) -> None:
    assert describe(group) == lines


def test_a_line_is_printed_when_it_is_new(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress()
    for group in (view(), view(), view(phase=PHASE), view(phase=PHASE, marks=(BLOCKED,)), view()):
        progress(group)
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.splitlines() == [
        "  Running: prefill 1/2", "  stop members 1/3", f"  {BLOCKED.text}",
        "  Running: prefill 1/2",
    ]  # fmt: skip
