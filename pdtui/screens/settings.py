"""The console's own settings, taken at once and kept, and who answers it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import BindingType
from textual.widget import Widget

from pdtui.commands import keymap
from pdtui.commands.model import Context
from pdtui.i18n import pick, tr, use
from pdtui.i18n.catalog import word
from pdtui.present import settings as drawn
from pdtui.present.cells import Line, Row
from pdtui.screens.base import Area, TableScreen
from pdtui.screens.dialogs.choose import ChooseDialog
from pdtui.settings import CHOICES, Settings, values, write
from pdtui.widgets.resource_table import ResourceTable

if TYPE_CHECKING:
    from pdtui.app import Console

KEYS_BEGIN = """\
# Keys by command id; `?` and docs/keys.md name the commands. For example:
# groups.restart: f6
# log.search: ctrl+f
"""


class SettingsScreen(TableScreen):
    """One row a setting; enter changes it."""

    area: Area = "settings"
    scopes = ("list", "settings")
    kinds = ("events",)
    sortable = False
    BINDINGS: ClassVar[list[BindingType]] = [*keymap.bindings("list", "settings")]

    def body(self) -> Iterable[Widget]:
        """One table."""
        yield ResourceTable(drawn.columns(), widget_id="settings")

    def rows(self) -> list[Row]:
        """The settings, then the backend."""
        console, store = self.console, self.console.store
        keys = (str(console.keys_file or "-"), len(console.own_keys), len(console.bad_keys))
        facts = drawn.facts(store.health, store.connected, len(store.events))
        return drawn.rows(values(console.settings), keys, facts)

    def nothing(self) -> list[Line]:
        """There is always something."""
        return []

    def context(self) -> Context:
        """The setting under the cursor."""
        key = self.table().cursor_key or ""
        fixed = key.startswith((drawn.INFO, "heading:"))
        return self.console.base_context(setting="" if fixed else key)

    def change(self) -> None:
        """Choose another value, or open the keymap."""
        name = self.context().setting
        if name == "keymap":
            self._edit_keys()
        elif name in CHOICES:
            self._choose(name)

    def _choose(self, name: str) -> None:
        options = [(v, word(f"setting.{name}", v)) for v in CHOICES[name]]

        def answered(chosen: str | None) -> None:
            if chosen:
                changed = replace(self.console.settings, **{name: chosen})
                self.console.change_settings(changed)

        current = values(self.console.settings)[name]
        self.console.push_screen(ChooseDialog(tr(f"setting.{name}"), options, current), answered)

    def _edit_keys(self) -> None:
        from pdtui import external

        path = self.console.keys_file
        argv = external.editor(os.environ)
        if path is None or not argv:
            self.say(tr("editor.none"), "warn")
            return

        async def work() -> None:
            try:
                there = await asyncio.to_thread(
                    lambda: path.read_text(encoding="utf-8") if path.exists() else KEYS_BEGIN
                )
                changed = await external.edit(self.console, argv, there, ".yaml")
                if changed != there:
                    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    await asyncio.to_thread(path.write_text, changed, encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                self.say(tr("editor.failed", why=error), "bad")
                return
            self.console.read_keys()
            self.sync(force=True)

        self.run_worker(
            work(), name="editor", group="call.editor", exclusive=True, exit_on_error=False
        )

    @on(ResourceTable.RowOpened)
    def _open(self, event: ResourceTable.RowOpened) -> None:
        event.stop()
        self.console.action_command("settings.change")


def apply(console: Console, before: Settings) -> None:
    """Write the settings and draw everything as they say."""
    from pdtui.present.status import use_glyphs
    from pdtui.start import glyphs_for

    now = console.settings

    async def work() -> None:
        if (now.language, now.icons) != (before.language, before.icons):
            use(pick(os.environ, "" if now.language == "auto" else now.language))
            use_glyphs(glyphs_for(now))
            await console.relabel()
        console.store_changed()
        screen = console.screen
        if isinstance(screen, TableScreen):
            screen.sync(force=True)
        if console.settings_file is None:
            return
        try:
            await asyncio.to_thread(write, console.settings_file, now)
        except OSError as error:
            path, why = console.settings_file, error.strerror or error
            console.say(tr("settings.not_kept", path=path, why=why), "bad")

    console.run_worker(work(), name="settings", group="call.settings", exit_on_error=False)
