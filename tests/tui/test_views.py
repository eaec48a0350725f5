"""The canonical views as text, at two sizes, and what must hold at any size."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pdtui.present.status import ASCII, use_glyphs
from tests.tui.conftest import Driver, Start

Matches = Callable[[str, str], None]
SIZES = [(80, 24), (160, 50)]


async def _groups(d: Driver) -> None:
    d.table.select("deepseek-v31")
    await d.settle()


async def _group(d: Driver) -> None:
    await d.open_group("deepseek-v31", "deepseek-v31-p1")


async def _forming(d: Driver) -> None:
    await d.open_group("glm-5")


async def _restarting(d: Driver) -> None:
    await d.open_group("llama-70b")


async def _hosts(d: Driver) -> None:
    await d.press("2")


async def _events(d: Driver) -> None:
    await d.press("3")


async def _scale(d: Driver) -> None:
    await d.open_group("deepseek-v31", "deepseek-v31-p0")
    await d.press("S", "plus", "down", "0")


async def _restart(d: Driver) -> None:
    await d.open_group("deepseek-v31")
    await d.press("r")


async def _log(d: Driver) -> None:
    await d.open_group("qwen3-32b", "qwen3-32b-p0")
    await d.press("l")
    await d.until(lambda: "reqs" in d.text)
    await d.press("slash", *"error", "enter")


async def _describe(d: Driver) -> None:
    await d.open_group("qwen3-32b", "role:prefill")
    await d.press("d")
    await d.until(lambda: "apiVersion" in d.text)


async def _help(d: Driver) -> None:
    await d.press("question_mark")


VIEWS = {
    "groups": _groups,
    "group": _group,
    "forming": _forming,
    "restarting": _restarting,
    "hosts": _hosts,
    "events": _events,
    "scale": _scale,
    "restart": _restart,
    "log": _log,
    "describe": _describe,
    "help": _help,
}


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
@pytest.mark.parametrize("view", VIEWS)
async def test_view_is_as_stored(
    start: Start, matches: Matches, view: str, size: tuple[int, int]
) -> None:
    async with start(size=size) as d:
        await VIEWS[view](d)
        matches(f"{view}-{size[0]}x{size[1]}", d.text)


@pytest.mark.parametrize("size", [(60, 20), (40, 10), (300, 80)], ids=str)
async def test_no_view_breaks_at_odd_sizes(start: Start, size: tuple[int, int]) -> None:
    async with start(size=size) as d:
        for name in ("group", "help"):
            await VIEWS[name](d)
            assert d.text.strip()
        await d.pilot.press("escape", "3", "2")
        await d.settle()
        assert d.text.strip()


async def test_narrow_terminals_keep_what_matters(start: Start) -> None:
    async with start(size=(60, 20)) as d:
        assert d.table.visible_columns[:2] == ["name", "status"]
        assert "Running" in d.text
        await d.pilot.resize_terminal(160, 50)
        await d.settle()
        assert "model" in d.table.visible_columns


async def test_key_bar_is_one_line_of_at_most_nine(start: Start) -> None:
    async with start(size=(300, 40)) as d:
        for key in ("1", "2", "3"):
            await d.press(key)
            assert 3 <= len(d.hints) <= 9
            assert list(d.hints)[-2:] == ["app.help", "app.quit"]


async def test_ascii_terminals_get_ascii(start: Start) -> None:
    use_glyphs(ASCII)
    async with start(size=(80, 24)) as d:
        d.table.select("glm-5")
        await d.press("enter")
        assert d.text.isascii(), [c for c in d.text if not c.isascii()]


@pytest.mark.parametrize("theme", ["dark", "light"])
async def test_both_themes_give_every_tone_a_colour(start: Start, theme: str) -> None:
    from pdtui.present.cells import TONES

    async with start(theme=theme) as d:
        assert d.console.has_class(f"-{theme}-mode")
        colours = {t: d.table.tone(t).color for t in TONES}
        assert all(colours.values())
        assert len({str(colours[t]) for t in ("ok", "warn", "bad", "busy", "off")}) == 5
        await d.press("colon")
        await d.pilot.press(*"theme")
        await d.settle()
        await d.pilot.pause(0.2)
        await d.press("enter")
        await d.until(lambda: d.console.current_theme.dark != (theme == "dark"))
