"""Turns a Textual screenshot into an SVG whose every run sits on its cell, and that into a PNG.

Rich writes one `<text>` a style run and leaves the spacing to the renderer, with a `textLength`
counted in characters instead of cells: Chinese text is squeezed by browsers, and librsvg, which
ignores `textLength`, drifts by a little with every character. Here each run is cut into pieces that
cannot drift (ASCII words in a font whose advance is exactly one cell, anything else glyph by
glyph), and each piece gets its own x. Links to fonts on the network are dropped.

`python -m screenshots.render IN.svg [OUT.png]` converts a file that was exported elsewhere.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.cells import split_graphemes

SVG = "http://www.w3.org/2000/svg"
FONTS = '"Fira Code", "DejaVu Sans Mono", "Noto Sans Mono CJK SC", monospace'
"""In this order, a mark that Fira Code lacks comes from a font in which it is one cell wide."""
ADVANCE = 1200 / 1950
"""Width of a Fira Code glyph in ems: its advance over its units per em."""

PACKAGES = "apt install librsvg2-bin fonts-dejavu-core fonts-firacode fonts-noto-cjk"
CONVERT_TIMEOUT_S = 60.0
BLANK = {" ", "\u00a0"}


class RenderError(RuntimeError):
    """The picture could not be made; the message says what is missing or wrong."""


@dataclass(frozen=True)
class Piece:
    """Part of a run that is placed as a whole: `column` counts cells from the run's start."""

    text: str
    column: int
    cells: int


def pieces(text: str) -> Iterator[Piece]:
    """Cuts a run where spacing could drift or glyphs could join.

    Words of ASCII stay whole, except between two punctuation marks, which Fira Code would draw as
    one ligature. Wide characters, boxes, plots and accented clusters stand alone: they may come
    from another font, whose advance is not ours. Blanks are the background's and are left out.
    """
    spans, _ = split_graphemes(text)
    column = begin = 0
    word = ""
    for start, end, cells in spans:
        glyph = text[start:end]
        plain = glyph.isascii() and glyph not in BLANK
        if word and (not plain or _would_join(word[-1], glyph)):
            yield Piece(word, begin, len(word))
            word = ""
        if plain:
            begin = begin if word else column
            word += glyph
        elif glyph not in BLANK and cells:
            yield Piece(glyph, column, cells)
        column += cells
    if word:
        yield Piece(word, begin, len(word))


def _would_join(left: str, right: str) -> bool:
    """Whether Fira Code draws the two as something else: `->`, `www`, the x of `0xFF`."""
    marks = not left.isalnum() and not right.isalnum()
    return marks or left == right == "w" or (left.isdigit() and right in "xX")


def place_runs(svg: str) -> str:
    """The exported SVG with every run on its exact cells and no font fetched from anywhere.

    Raises RenderError when `svg` is no export of Rich or Textual.
    """
    ET.register_namespace("", SVG)
    try:
        root = ET.fromstring(svg)  # noqa: S314  (the console's own export)
    except ET.ParseError as error:
        raise RenderError(f"not an SVG file: {error}") from error
    cell = _cell_width(root)
    font_size = cell / ADVANCE
    for parent in list(root.iter(f"{{{SVG}}}g")):
        for index, run in reversed(list(enumerate(parent))):
            if run.tag == f"{{{SVG}}}text" and "textLength" in run.attrib:
                parent[index : index + 1] = list(_placed(run, cell, font_size))
    _restyle(root, font_size)
    drawn = ET.tostring(root, encoding="unicode")
    return re.sub(r"terminal-\d+-", "console-", drawn) + "\n"


def _cell_width(root: ET.Element) -> float:
    for run in root.iter(f"{{{SVG}}}text"):
        if "textLength" in run.attrib and run.text:
            return float(run.attrib["textLength"]) / len(run.text)
    raise RenderError("no terminal text in this SVG: export it with App.export_screenshot()")


def _placed(run: ET.Element, cell: float, font_size: float) -> Iterator[ET.Element]:
    left = float(run.attrib["x"])
    kept = {k: v for k, v in run.attrib.items() if k not in ("x", "textLength")}
    for piece in pieces(run.text or ""):
        # A full-width glyph is one em wide; its two cells are a little wider.
        centred = (2 * cell - font_size) / 2 if piece.cells == 2 else 0.0
        element = ET.Element(run.tag, {"x": f"{left + piece.column * cell + centred:.2f}", **kept})
        element.text = piece.text
        yield element


def _restyle(root: ET.Element, font_size: float) -> None:
    """Fonts by name only, in the size at which one advance is exactly one cell."""
    for style in root.iter(f"{{{SVG}}}style"):
        css = re.sub(r"@font-face\s*\{[^}]*\}\s*", "", style.text or "")
        css = re.sub(
            r"(-matrix\s*\{)[^}]*\}",
            rf"\1 font-family: {FONTS}; font-size: {font_size:.4f}px; }}",
            css,
        )
        style.text = css


def check_fonts() -> None:
    """Raises RenderError naming the fonts that are missing; does nothing where none can be listed.

    Without them a picture is still drawn, from fonts that are not a cell wide.
    """
    if shutil.which("fc-list") is None:
        return
    command = ["fc-list", ":", "family"]
    try:
        listed = subprocess.run(
            command, capture_output=True, text=True, timeout=CONVERT_TIMEOUT_S, check=True
        ).stdout
    except (subprocess.SubprocessError, OSError) as error:
        raise RenderError(f"the fonts cannot be listed: {error}") from error
    if missing := [name for name in re.findall(r'"([^"]+)"', FONTS) if name not in listed]:
        raise RenderError(f"no font {', '.join(missing)}. On Debian and Ubuntu: {PACKAGES}")


def to_png(svg: Path, png: Path, *, zoom: float = 1.0) -> None:
    """Draws `svg` into `png`. Raises RenderError without rsvg-convert, and when it fails."""
    if shutil.which("rsvg-convert") is None:
        raise RenderError(f"rsvg-convert is not installed. On Debian and Ubuntu: {PACKAGES}")
    command = ["rsvg-convert", "--zoom", str(zoom), "--output", str(png), str(svg)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=CONVERT_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise RenderError(f"rsvg-convert took over {CONVERT_TIMEOUT_S:.0f} s on {svg}") from error
    if done.returncode:
        raise RenderError(f"rsvg-convert failed on {svg}: {done.stderr.strip()}")


def save(exported: str, stem: Path, *, zoom: float = 1.0) -> tuple[Path, Path]:
    """Writes `stem`.svg and `stem`.png from an exported screenshot; returns both paths."""
    svg, png = stem.with_suffix(".svg"), stem.with_suffix(".png")
    svg.write_text(place_runs(exported), encoding="utf-8")
    to_png(svg, png, zoom=zoom)
    return svg, png


def main(argv: list[str]) -> int:
    """Converts one exported file."""
    if not 1 <= len(argv) <= 2:
        print("usage: python -m screenshots.render IN.svg [OUT.png]", file=sys.stderr)
        return 2
    source = Path(argv[0])
    target = Path(argv[1]) if len(argv) == 2 else source.with_suffix(".png")
    try:
        check_fonts()
        placed = target.with_suffix(".svg")
        placed.write_text(place_runs(source.read_text(encoding="utf-8")), encoding="utf-8")
        to_png(placed, target)
    except (OSError, RenderError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
