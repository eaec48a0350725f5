"""Any size, any theme, no colour: every view draws inside its cells and says what matters."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from rich.cells import cell_len

from pdtui.present.status import ASCII, use_glyphs
from tests.tui.conftest import Driver, Start
from tests.tui.test_form import checked, client

pytestmark = pytest.mark.slow

View = tuple[str, tuple[str, ...], str]
VIEWS: tuple[View, ...] = (
    ("groups", ("1",), "qwen3-32b"),
    ("panel", ("G", "enter"), "qwen3-32b-p0"),
    ("scale", ("S", "plus"), "Scale qwen3-32b"),
    ("restart", ("escape", "r"), "Restart qwen3-32b?"),
    ("log", ("escape", "l"), "following"),
    ("merged", ("m",), "members in one"),
    ("form", ("escape", "escape", "escape", "E"), "Deployment"),
    ("form modes", ("tab",), "vllm-nixl"),
    ("form router", ("tab", "tab", "tab"), "generated"),
    ("form text", ("Y",), "apiVersion"),
    ("hosts", ("escape", "2"), "gpu-1"),
    ("events", ("3",), "keeps ending"),
    ("modes", ("4",), "vllm-mooncake"),
    ("help", ("question_mark",), "Keys"),
)
"""Each reached from the one before: name, keys, a word it must show."""


async def walk(d: Driver, look: Callable[[View], Awaitable[None]]) -> None:
    """Every view in turn."""
    for view in VIEWS:
        await d.press(*view[1])
        if view[0] == "log":
            await d.until(lambda: "reqs" in d.text)
        if view[0] == "form":
            await checked(d)
        await look(view)


@pytest.mark.parametrize("size", [(60, 20), (300, 80)])
async def test_every_view_fits_the_smallest_and_the_largest_terminal(
    start: Start, size: tuple[int, int]
) -> None:
    async with start(client(), size=size) as d:

        async def look(view: View) -> None:
            assert view[2] in d.text, f"{view[0]}:\n{d.text}"
            lines = d.text.splitlines()
            assert len(lines) <= size[1]
            assert max(map(cell_len, lines)) <= size[0]

        await walk(d, look)


async def test_every_view_survives_being_resized_and_is_the_same_again(start: Start) -> None:
    async with start(client(), size=(100, 30)) as d:

        async def look(view: View) -> None:
            if view[0] == "merged":
                return  # lines go on arriving
            before = d.text
            for width, height in ((60, 20), (100, 30)):
                await d.pilot.resize_terminal(width, height)
                await d.settle()
            assert d.text.split() == before.split(), view[0]

        await walk(d, look)


@pytest.mark.parametrize("theme", ["dark", "light"])
async def test_a_state_is_told_without_any_colour(
    start: Start, theme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with start(client(), theme=theme) as d:
        assert d.console.no_color
        for words in ("● Running", "◐ Partially ready", "○ Stopped", "◷ Config changed"):
            assert words in d.text
        await d.press("G", "E", "tab", "tab", "tab")
        assert "inherited" in d.text


async def test_in_ascii_nothing_but_ascii_is_drawn_of_our_own(start: Start) -> None:
    use_glyphs(ASCII)
    async with start(client(), size=(100, 30)) as d:

        async def look(view: View) -> None:
            foreign = {"机", "器", "北", "京", "│", "╭", "╮", "╰", "╯", "“", "”"}
            odd = {c for c in d.text if not c.isascii()} - foreign
            drawn = odd - set("▁▂▃▄▅▆▇█▌▊▎↓↑→…·")
            assert not drawn, (view[0], drawn)

        await walk(d, look)


@pytest.mark.parametrize("system", ["standard", "256", "truecolor"])
def test_tones_stay_apart_in_few_colours(system: str) -> None:
    """What is well, what warns and what is bad are three colours in every palette."""
    from rich.color import Color, ColorSystem

    from pdtui.styles.themes import THEMES

    depth = {
        "standard": ColorSystem.STANDARD,
        "256": ColorSystem.EIGHT_BIT,
        "truecolor": ColorSystem.TRUECOLOR,
    }[system]
    for theme in THEMES.values():
        tones = [theme.variables[f"tone-{t}"] for t in ("ok", "warn", "bad")]
        shown = {str(Color.parse(t).downgrade(depth).get_truecolor()) for t in tones}
        assert len(shown) >= (2 if system == "standard" else 3), (theme.name, shown)
