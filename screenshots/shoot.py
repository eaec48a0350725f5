"""Redraws the pictures of the console from fixed data: `python -m screenshots.shoot [NAME...]`.

Each scene is an application on data of its own and the keys that lead to the view; the picture is
taken when two exports in a row are the same. Written beside this file as SVG and PNG.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

from textual.app import App
from textual.pilot import Pilot

from screenshots.render import RenderError, check_fonts, save

HERE = Path(__file__).parent
LOOKS = 100
"""How often a view is looked at before it counts as one that never comes to rest."""


@dataclass(frozen=True)
class Scene:
    """One picture: `app` builds the console on fixed data, `keys` lead to the view.

    `size` is columns and rows. `name` is the file's name without its suffix. `shows` are words of
    one style that prove the keys led to the right view.
    """

    name: str
    app: Callable[[], App[Any]]
    size: tuple[int, int]
    keys: tuple[str, ...] = ()
    shows: str = ""
    title: str = "pdtui"


async def at_rest(pilot: Pilot[Any], title: str) -> str:
    """The export of a view that has come to rest. Raises RenderError when it never does."""
    last = ""
    for _ in range(LOOKS):
        await pilot.pause()
        now = pilot.app.export_screenshot(title=title)
        if now == last:
            return now
        last = now
    raise RenderError(f"the view still changed after {LOOKS} looks: its data or clock is not fixed")


def words(exported: str) -> str:
    """The text of an exported screenshot, its runs one after the other."""
    runs = re.findall(r"<text[^>]*>([^<]*)</text>", exported)
    return unescape("\n".join(runs)).replace("\u00a0", " ")


async def shoot(scene: Scene, folder: Path, *, zoom: float = 1.0) -> tuple[Path, Path]:
    """Draws one scene into `folder`; returns the SVG's and the PNG's path.

    Raises RenderError when the view never rests, or lacks what it should show.
    """
    app = scene.app()
    app.animation_level = "none"
    async with app.run_test(size=scene.size) as pilot:
        await at_rest(pilot, scene.title)
        for key in scene.keys:
            await pilot.press(key)
            await at_rest(pilot, scene.title)
        exported = await at_rest(pilot, scene.title)
    if scene.shows not in words(exported):
        raise RenderError(f"{scene.name}: no {scene.shows!r} after {' '.join(scene.keys)}")
    return save(exported, folder / scene.name, zoom=zoom)


def chosen(scenes: Sequence[Scene], names: Sequence[str]) -> list[Scene]:
    """The scenes of these names, all without names. Raises RenderError for an unknown name."""
    known = {scene.name: scene for scene in scenes}
    if unknown := [name for name in names if name not in known]:
        raise RenderError(f"no scene {', '.join(unknown)}; there are {', '.join(known)}")
    return [known[name] for name in names] or list(scenes)


async def shoot_all(scenes: Sequence[Scene], folder: Path, zoom: float) -> None:
    """Draws the scenes one after the other and names each file."""
    for scene in scenes:
        svg, png = await shoot(scene, folder, zoom=zoom)
        print(f"{svg.name}  {png.name}  {scene.size[0]}x{scene.size[1]}")


def main(argv: list[str] | None = None) -> int:
    """Draws the chosen scenes; exit code 1 with a sentence when a picture cannot be made."""
    parser = argparse.ArgumentParser(prog="python -m screenshots.shoot")
    parser.add_argument("--folder", type=Path, default=HERE)
    parser.add_argument("--zoom", type=float, default=1.0, help="scale of the PNG files")
    parser.add_argument("names", nargs="*", metavar="NAME", help="scenes; default: all")
    options = parser.parse_args(argv)
    # A picture must not depend on who draws it.
    os.environ.pop("NO_COLOR", None)
    os.environ.update(COLORTERM="truecolor", LANG="C.UTF-8", TZ="UTC")
    time.tzset()
    from screenshots.scenes import SCENES

    try:
        check_fonts()
        asyncio.run(shoot_all(chosen(SCENES, options.names), options.folder, options.zoom))
    except RenderError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
