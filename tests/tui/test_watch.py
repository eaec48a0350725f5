"""The watched group on screen: verdicts, the canary's matrix, a plot, alerts."""

from __future__ import annotations

from typing import Any

import pytest

from backend.domain.views import GroupView, Mark, Snapshot
from backend.domain.watch_views import (
    AlertView,
    CanaryView,
    EffectView,
    GroupMetrics,
    MemberMetrics,
    PairView,
)
from pdtui.present.cells import plain
from pdtui.present.watch import number
from pdtui.screens.text import TextScreen
from pdtui.screens.watch import WatchScreen
from pdtui.widgets.chart import chart
from tests.tui.conftest import Start
from tests.tui.factories import NOW, running
from tests.tui.fake_client import FakeClient

pytestmark = pytest.mark.slow

NAME = "qwen3-32b"
WHY = "the router sent it 4 requests and it computed none of them"


def effect(verdict: Any, text: str) -> EffectView:
    return EffectView(verdict=verdict, reason="x", text=text, at=NOW)


def watched() -> GroupView:
    """A group whose second prefill answers errors behind a router that answers 200."""
    base = running()
    said = {
        f"{NAME}-p0": effect("good", "it computed the 12 prompts it was sent"),
        f"{NAME}-p1": effect("failing", WHY),
        f"{NAME}-d0": effect("partial", "only 50 % of the prompt tokens came from prefill"),
    }
    members = tuple(m.model_copy(update={"effect": said.get(m.id)}) for m in base.members)
    pairs = (
        PairView(
            prefill=f"{NAME}-p0", decode=f"{NAME}-d0", verdict="ok", text="KV moved",
            seconds=0.21, moved=True,
        ),
        PairView(
            prefill=f"{NAME}-p1", decode=f"{NAME}-d0", verdict="failed",
            text="prefill: HTTP 500: [bold]boom[/bold]", culprit=f"{NAME}-p1", seconds=0.01,
        ),
    )  # fmt: skip
    run = CanaryView(
        at=NOW - 40, seconds=0.4, why="interval", ok=False, pairs=pairs,
        router=PairView(verdict="ok", text="answered by 10.20.0.11:40000 -> 10.20.0.11:40010"),
        note=f"{NAME}-p1: prefill: HTTP 500",
    )  # fmt: skip
    alert = AlertView(
        id="effect:p1", kind="effect", group=NAME, instance=f"{NAME}-p1", text=f"{NAME}-p1: {WHY}",
        since=NOW - 30,
    )  # fmt: skip
    mark = Mark(id="effect", text=f"PD effectiveness: {NAME}-p1: {WHY}.", level="error")
    return base.model_copy(
        update={"members": members, "canary": run, "alerts": (alert,), "marks": (mark,)}
    )


def figures() -> GroupMetrics:
    at = tuple(NOW - 300 + 5 * n for n in range(60))
    one = MemberMetrics(
        instance=f"{NAME}-p0", role="prefill", host="gpu-1", at=at,
        series={"requests": tuple(float(n % 9) for n in range(60)), "running": (1.0,) * 60},
    )  # fmt: skip
    two = MemberMetrics(
        instance=f"{NAME}-d0", role="decode", host="gpu-1", at=at,
        series={
            "requests": tuple(None if n < 20 else 4.0 for n in range(60)),
            "external_share": (1.0,) * 60,
        },
    )  # fmt: skip
    return GroupMetrics(group=NAME, every_s=5, members=(one, two))


def client() -> FakeClient:
    made = FakeClient(Snapshot(seq=1, groups=(watched(),)))
    made.figures = {NAME: figures()}
    made.tried = watched().canary or made.tried
    return made


async def test_the_panel_shows_each_members_verdict_and_the_list_that_something_stands(
    start: Start,
) -> None:
    async with start(client(), size=(160, 50)) as d:
        assert "1 alert" in d.text
        await d.press("enter")
        assert "failing" in d.line(f"{NAME}-p1  ")
        assert "partly" in d.line(f"{NAME}-d0 ")
        assert f"{NAME}-p1: {WHY}" in d.text


@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
async def test_a_watched_group_has_a_plot_its_verdicts_and_the_matrix(
    start: Start, size: tuple[int, int]
) -> None:
    async with start(client(), size=size) as d:
        await d.press("enter", "w")
        assert isinstance(d.console.screen, WatchScreen)
        assert "requests /s" in d.text
        assert "┤" in d.text
        page = d.console.screen.query_one("#page").text  # type: ignore[attr-defined]
        assert WHY in page
        assert "prefill: HTTP 500: [bold]boom[/bold]" in page
        assert "✓ ok 0.21s" in page
        await d.press("right_square_bracket")
        assert "share of tokens from prefill" in d.text
        await d.press("left_square_bracket", "left_square_bracket")
        assert "running requests" in d.text


async def test_a_canary_is_run_from_the_list_and_told(start: Start) -> None:
    fake = client()
    async with start(fake, size=(160, 50)) as d:
        await d.press("T")
        assert ("canary", NAME) in fake.calls
        assert f"The canary of {NAME} fails: {NAME}-p1: prefill: HTTP 500" in d.text


async def test_alerts_are_listed(start: Start) -> None:
    async with start(client(), size=(120, 30)) as d:
        await d.press("A")
        assert isinstance(d.console.screen, TextScreen)
        assert "PD not working" in d.line(WHY[:30])


def test_a_plot_is_as_large_as_it_was_asked_to_be() -> None:
    at = [float(n) for n in range(-50, 0)]
    lines = chart(at, [[float(n % 7) for n in range(50)], [None] * 49 + [1.0]], 60, 12)
    assert len(lines) == 12
    assert all(len(plain(one)) == 60 for one in lines)
    assert {s.tone for one in lines for s in one} == {"dim", "accent"}
    assert chart(at, [[1.0] * 50], 10, 12) == []
    assert chart(at, [[None] * 50], 60, 12) == []


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "-"), (0.0, "0"), (0.1234, "0.123"), (999, "999"), (4100, "4100"), (41234, "41.2k"),
     (7.5e6, "7.5M"), (2e9, "2G")],
)  # fmt: skip
def test_figures_fit_few_cells(value: float | None, shown: str) -> None:
    assert number(value) == shown
