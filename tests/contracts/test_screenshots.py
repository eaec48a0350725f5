"""Pictures of the console put every glyph on its cell, Chinese ones too."""

from __future__ import annotations

import re
import struct
import zlib
from itertools import pairwise
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.text import Text
from textual.app import App, ComposeResult
from textual.widgets import Static

from screenshots import render
from screenshots.render import RenderError, check_fonts, pieces, place_runs, save
from screenshots.shoot import Scene, at_rest, chosen, shoot

BAR = (255, 0, 170)
"""Colour of the two bars whose places are compared; nothing else in the picture has it."""


class Bars(App[None]):
    """Two lines of equal width in cells, one Chinese, one ASCII, each between two bars."""

    CSS = "Screen { background: black; }"

    def compose(self) -> ComposeResult:
        bar = Text("█", style=f"rgb({BAR[0]},{BAR[1]},{BAR[2]})")
        lines = [Text("部分就绪 副本"), Text("partially rea")]
        yield Static(Text("\n").join(Text.assemble(bar, line, bar) for line in lines))


async def exported(app: App[None]) -> str:
    """The first frame of `app` as Textual exports it."""
    async with app.run_test(size=(40, 4)) as pilot:
        await pilot.pause()
        return app.export_screenshot(title="pdtui")


def pixels(png: bytes) -> list[list[tuple[int, int, int]]]:
    """The rows of an 8-bit RGB or RGBA picture, alpha left out."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    position, data, header = 8, b"", b""
    while position < len(png):
        (length,) = struct.unpack(">I", png[position : position + 4])
        kind, body = png[position + 4 : position + 8], png[position + 8 : position + 8 + length]
        header = body if kind == b"IHDR" else header
        data += body if kind == b"IDAT" else b""
        position += length + 12
    width, height, depth, colour = struct.unpack(">IIBB", header[:10])
    assert (depth, colour) in ((8, 2), (8, 6)), "rsvg-convert writes 8-bit RGB or RGBA"
    step = 3 if colour == 2 else 4
    raw, rows, above = zlib.decompress(data), [], bytearray(width * step)
    for y in range(height):
        start = y * (width * step + 1)
        above = unfiltered(raw[start], raw[start + 1 : start + 1 + width * step], above, step)
        rows.append([tuple(above[x : x + 3]) for x in range(0, width * step, step)])
    return rows  # type: ignore[return-value]


def unfiltered(kind: int, line: bytes, above: bytearray, step: int) -> bytearray:
    """One scan line with PNG's filter `kind` undone."""
    out = bytearray(line)
    for i in range(len(out)):
        a, b = (out[i - step] if i >= step else 0), above[i]
        c = above[i - step] if i >= step else 0
        paeth = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
        out[i] = (out[i] + (0, a, b, (a + b) // 2, paeth)[kind]) & 0xFF
    return out


def bar_columns(row: list[tuple[int, int, int]]) -> list[int]:
    """Left edge of each bar in one row of pixels."""
    return [x for x, (old, new) in enumerate(pairwise(row), 1) if new == BAR and old != BAR]


@pytest.mark.needs("rsvg-convert")
async def test_chinese_and_ascii_lines_of_equal_width_end_at_the_same_pixel(tmp_path: Path) -> None:
    _, png = save(await exported(Bars()), tmp_path / "bars")
    rows = {tuple(found) for row in pixels(png.read_bytes()) if len(found := bar_columns(row)) == 2}
    assert len(rows) == 1, f"the bars of the two lines do not line up: {rows}"


class Word(App[None]):
    """One long word in the bars' colour, and room behind it to drift into."""

    CSS = "Screen { background: black; }"

    def compose(self) -> ComposeResult:
        yield Static(Text("M" * 36, style=f"rgb({BAR[0]},{BAR[1]},{BAR[2]})"))


@pytest.mark.needs("rsvg-convert")
async def test_a_long_word_does_not_drift_off_its_cells(tmp_path: Path) -> None:
    svg, png = save(await exported(Word()), tmp_path / "word")
    left = float(re.search(r"translate\((\d+), 41\)", svg.read_text(encoding="utf-8"))[1])  # type: ignore[index]
    rows = pixels(png.read_bytes())[41:]  # below the window's title and its red button
    inked = [x - left for row in rows for x, (r, g, _) in enumerate(row) if r > 100 > g]
    assert 0 <= min(inked) < 12.2, "the first letter is in the first cell"
    assert 35 * 12.2 < max(inked) < 36 * 12.2, "the last letter is in the last cell"


async def test_each_run_is_placed_at_its_cell() -> None:
    svg = place_runs(await exported(Bars()))
    placed = re.findall(r'<text x="([\d.]+)"[^>]*>([^<]+)</text>', svg)
    at = {text: float(x) for x, text in placed}
    assert at["rea"] - at["partially"] == pytest.approx(10 * 12.2)
    assert at["副"] - at["部"] == pytest.approx(9 * 12.2)


async def test_nothing_is_fetched_and_the_same_screen_gives_the_same_file() -> None:
    first, second = place_runs(await exported(Bars())), place_runs(await exported(Bars()))
    assert first == second
    assert not re.search(r"url\((?!#)|href", first)


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("--host 0.0.0.0", ["-", "-host", "0.0.0.0"]),
        ("a->b", ["a-", ">b"]),
        ("0xFF", ["0", "xFF"]),
        ("角色 2:1", ["角", "色", "2:1"]),
        ("cafe\u0301 ok", ["caf", "e\u0301", "ok"]),
        ("\u00a0\u00a0x", ["x"]),
    ],
)
def test_runs_are_cut_where_spacing_could_drift(text: str, cut: list[str]) -> None:
    found = list(pieces(text))
    assert [piece.text for piece in found] == cut
    for piece in found:
        before = text[: text.index(piece.text)]
        assert piece.column == cell_len(before)


class Counter(App[None]):
    """Counts a key's presses; `restless` never shows the same twice."""

    def __init__(self, restless: bool = False) -> None:
        super().__init__()
        self.restless, self.count = restless, 0

    def compose(self) -> ComposeResult:
        yield Static("0")

    def on_key(self) -> None:
        self.count += 1
        self.query_one(Static).update(f"pressed {self.count}")

    def on_idle(self) -> None:
        if self.restless:
            self.count += 1
            self.query_one(Static).update(f"tick {self.count}")


@pytest.mark.needs("rsvg-convert")
async def test_a_scene_is_drawn_after_its_keys(tmp_path: Path) -> None:
    scene = Scene("keys", Counter, (30, 3), keys=("x", "y"), shows="pressed 2")
    svg, png = await shoot(scene, tmp_path)
    assert (svg.name, png.name) == ("keys.svg", "keys.png")
    text = " ".join(re.findall(r"<text [^>]*>([^<]+)</text>", svg.read_text(encoding="utf-8")))
    assert "pressed 2" in text
    assert len(pixels(png.read_bytes())) > 60


async def test_a_scene_whose_keys_lead_elsewhere_is_refused(tmp_path: Path) -> None:
    scene = Scene("keys", Counter, (30, 3), keys=("x",), shows="pressed 2")
    with pytest.raises(RenderError, match="keys: no 'pressed 2' after x"):
        await shoot(scene, tmp_path)
    assert not list(tmp_path.iterdir())


async def test_a_view_that_never_rests_is_refused() -> None:
    async with Counter(restless=True).run_test(size=(30, 3)) as pilot:
        with pytest.raises(RenderError, match="still changed"):
            await at_rest(pilot, "x")


def test_scenes_are_chosen_by_name() -> None:
    scenes = [Scene("a", Counter, (30, 3)), Scene("b", Counter, (30, 3))]
    assert chosen(scenes, []) == scenes
    assert chosen(scenes, ["b"]) == scenes[1:]
    with pytest.raises(RenderError, match="no scene c; there are a, b"):
        chosen(scenes, ["c"])


@pytest.mark.needs("fc-list")
def test_a_missing_font_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    check_fonts()
    monkeypatch.setattr(render, "FONTS", '"Fira Code", "No Such Font", monospace')
    with pytest.raises(RenderError, match=r"no font No Such Font\. .*fonts-firacode"):
        check_fonts()


@pytest.mark.parametrize("svg", ["not xml", "<svg xmlns='http://www.w3.org/2000/svg'/>"])
def test_what_is_no_screenshot_is_refused(svg: str) -> None:
    with pytest.raises(RenderError):
        place_runs(svg)
