"""Showing the console: the settings, the language and the glyphs first, then the app."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pdtui.app import Console, OpenClient
from pdtui.config import folder
from pdtui.i18n import pick, use
from pdtui.present.status import ASCII, UNICODE, Glyphs, speaks_unicode, use_glyphs
from pdtui.settings import Settings, read


def glyphs_for(settings: Settings) -> Glyphs:
    """The marks as set, else as the terminal can be expected to draw them."""
    if settings.icons == "auto":
        plain = not speaks_unicode(os.environ, getattr(sys.stdout, "encoding", "utf-8"))
    else:
        plain = settings.icons == "ascii"
    return ASCII if plain else UNICODE


def run(
    open_client: OpenClient,
    *,
    read_only: bool = False,
    theme: str | None = None,
    keys: Mapping[str, str] | None = None,
    ask_to_leave: bool = True,
    state_dir: Path | None = None,
) -> int:
    """Show the console until it is left; returns the exit code.

    `open_client` is awaited after the first frame, so that it may import and start a backend.
    `theme` is `dark` or `light`; None takes the setting, or looks at the terminal. `keys` maps
    command ids to keys. `ask_to_leave` is for a backend that ends with the console: ask first when
    groups still run.
    """
    use(pick(os.environ))
    settings, bad = read(folder() / "settings.json")
    use(pick(os.environ, "" if settings.language == "auto" else settings.language))
    use_glyphs(glyphs_for(settings))
    console = Console(
        open_client,
        read_only=read_only,
        theme=theme,
        keys=keys,
        keys_file=folder() / "keys.yaml",
        settings=settings,
        settings_file=folder() / "settings.json",
        bad_settings=bad,
        ask_to_leave=ask_to_leave,
        state_dir=state_dir,
    )
    console.run()
    return console.return_code or 0
