"""The pictures: one small site at a fixed moment, each main view at two sizes."""

from __future__ import annotations

from collections.abc import Callable

from pdtui.app import Console
from screenshots.shoot import Scene
from tests.tui.factories import DOCUMENTS, LOGS, NOW, site
from tests.tui.fake_client import FakeClient

SIZES = ((80, 24), (160, 50))


def console(theme: str) -> Callable[[], Console]:
    """Builds the console in `theme` on a client that holds the site in memory."""

    async def client() -> FakeClient:
        return FakeClient(site(), embedded=True, documents=DOCUMENTS, logs=LOGS)

    return lambda: Console(client, theme=theme, clock=lambda: NOW)


QWEN = ("G",)
"""The group that serves is the last of the list."""

VIEWS: dict[str, tuple[tuple[str, ...], str]] = {
    "groups": (QWEN, "Partially ready"),
    "group": ((*QWEN, "enter"), "qwen3-32b-d0"),
    "forming": (("j", "j", "enter"), "glm-5-d1"),
    "config-changed": (("j", "enter"), "Config changed"),
    "scale": ((*QWEN, "enter", "S", "plus"), "Scale qwen3-32b"),
    "restart": ((*QWEN, "enter", "r"), "Restart qwen3-32b?"),
    "logs": ((*QWEN, "enter", "l"), "following"),
    "hosts": (("2",), "key unknown"),
    "events": (("3",), "router started with 3 peers"),
    "help": (("question_mark",), "Keys"),
}
"""Name of a view -> the keys that lead there from the first screen, and words it must show."""


def scene(view: str, theme: str, size: tuple[int, int], name: str) -> Scene:
    """The picture `name` of a view."""
    keys, shows = VIEWS[view]
    return Scene(f"{name}-{size[0]}x{size[1]}", console(theme), size, keys, shows)


SCENES = [
    *(scene(view, "dark", size, view) for view in VIEWS for size in SIZES),
    scene("groups", "light", (80, 24), "groups-light"),
    scene("group", "light", (160, 50), "group-light"),
]
