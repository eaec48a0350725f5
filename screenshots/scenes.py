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

VIEWS: dict[str, tuple[str, ...]] = {
    "groups": ("G",),
    "group": (*QWEN, "enter"),
    "forming": ("j", "j", "enter"),
    "config-changed": ("j", "enter"),
    "scale": (*QWEN, "enter", "S"),
    "restart": (*QWEN, "enter", "r"),
    "logs": (*QWEN, "enter", "j", "l"),
    "hosts": ("2",),
    "events": ("3",),
    "help": ("question_mark",),
}
"""Name of a view -> the keys that lead there from the first screen."""

SCENES = [
    *(
        Scene(f"{name}-{columns}x{rows}", console("dark"), (columns, rows), keys)
        for name, keys in VIEWS.items()
        for columns, rows in SIZES
    ),
    Scene("groups-light-80x24", console("light"), (80, 24), VIEWS["groups"]),
    Scene("group-light-160x50", console("light"), (160, 50), VIEWS["group"]),
]
