"""The console's app: its areas, themes and last resorts. Paints first, asks for a backend after."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.app import App, SystemCommand
from textual.binding import BindingType
from textual.command import CommandPalette, Provider
from textual.screen import Screen
from textual.timer import Timer
from textual.worker import Worker, WorkerState

from pdtui import clipboard
from pdtui.commands import catalog, keymap, questions
from pdtui.commands.handlers import HANDLERS
from pdtui.commands.model import Context, Scope
from pdtui.commands.palette import CommandProvider
from pdtui.config import read_keys, state_folder
from pdtui.i18n import tr
from pdtui.i18n.catalog import word
from pdtui.places import Places
from pdtui.present import detail, groups
from pdtui.present.cells import Line, Span, Tone
from pdtui.screens.base import ConsoleScreen, TableScreen
from pdtui.screens.dialogs.error import ErrorDialog
from pdtui.settings import Settings
from pdtui.state.messages import StoreChanged
from pdtui.state.store import Store
from pdtui.styles import themes
from pdtui.widgets.bars import StatusBar

if TYPE_CHECKING:
    from backend.client.base import BackendClient
    from backend.domain.errors import PdError
    from pdtui.session import Session

SPIN_S = 0.25
INTERRUPT_S = 3.0
"""Seconds in which a second ctrl+c ends the console."""

OpenClient = Callable[[], Awaitable["BackendClient"]]


class Console(Places):
    """The terminal console."""

    TITLE = "pdtui"
    CSS_PATH = "styles/base.tcss"
    ENABLE_COMMAND_PALETTE = True
    COMMAND_PALETTE_BINDING = ""
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {CommandProvider}
    DEFAULT_MODE = "groups"
    BINDINGS: ClassVar[list[BindingType]] = [*keymap.bindings("app")]

    def __init__(
        self,
        open_client: OpenClient,
        *,
        read_only: bool = False,
        theme: str | None = None,
        keys: Mapping[str, str] | None = None,
        keys_file: Path | None = None,
        clock: Callable[[], float] = time.time,
        state_dir: Path | None = None,
        ask_to_leave: bool = True,
        settings: Settings | None = None,
        settings_file: Path | None = None,
        bad_settings: Sequence[str] = (),
    ) -> None:
        super().__init__(watch_css=False)
        self.settings = settings or Settings()
        self.settings_file = settings_file
        self._bad_settings = list(bad_settings)
        self._asked_theme = theme
        self._open_client = open_client
        self._asked_read_only = read_only
        self._clock = clock
        self._state_dir = state_dir
        self._ask_to_leave = ask_to_leave
        for known in themes.THEMES.values():
            self.register_theme(known)
        chosen = self._theme_name()
        self.set_reactive(App.theme, f"pdtui-{chosen}")  # the first frame has it already
        self.set_class(chosen == "dark", "-dark-mode", update=False)
        self.set_class(chosen == "light", "-light-mode", update=False)
        self.own_keys, self.bad_keys = keymap.check(keys or {})
        self._keys = dict(self.own_keys)
        self.keys_file = keys_file
        self.store = Store()
        self.session: Session | None = None
        self._paint: Timer | None = None
        self._stale = False
        self._spin: Timer | None = None
        self._turn = 0
        self._interrupted = -INTERRUPT_S

    # life

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Our tones, for a theme that lacks them."""
        return themes.DEFAULTS

    def on_mount(self) -> None:
        """Keys now; the backend after the first frame."""
        if self.own_keys:
            self.set_keymap(self.own_keys)
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        from pdtui.session import Session

        self.session = Session(self, self._open_client)
        self.session.start()
        self.read_keys()
        if any((self.state_dir / "drafts").glob("*.json")):
            self.run_worker(self._offer_draft(), name="draft", group="draft", exit_on_error=False)

    def read_keys(self) -> None:
        """The user's own keys, after the first frame: YAML is not needed before."""
        if self.keys_file is not None and self.keys_file.exists():
            found, unreadable = read_keys(self.keys_file)
            good, bad = keymap.check({**found, **self._keys})
            self.own_keys, self.bad_keys = good, [*unreadable, *bad]
            self.set_keymap(good)
            if (screen := self._console_screen()) is not None:
                screen.key_bar()
        bad = [*self._bad_settings, *self.bad_keys]
        if bad:
            first, rest = bad[0], len(bad) - 1
            self.say(tr("keymap.more", first=first, count=rest) if rest else first, "warn")

    async def _offer_draft(self) -> None:
        from pdtui.screens.form_keeper import offer_draft

        await offer_draft(self)

    async def on_unmount(self) -> None:
        """Close the connection; the groups go on."""
        if self.session:
            await self.session.close()

    def now(self) -> float:
        """Epoch seconds."""
        return self._clock()

    # what screens and commands ask

    @property
    def state_dir(self) -> Path:
        """Where drafts and what is too long for the clipboard are kept."""
        return self._state_dir or state_folder()

    @property
    def read_only(self) -> bool:
        """Whether nothing may be changed, by our own flag, the setting or the backend's."""
        health = self.store.health
        set_so = self._asked_read_only or self.settings.read_only == "yes"
        return set_so or bool(health and health.read_only)

    def base_context(self, **under_cursor: Any) -> Context:
        """A context with the connection filled in."""
        connected = self.store.connected and self.store.loaded
        return Context(connected=connected, read_only=self.read_only, **under_cursor)

    def scopes_of(self, screen: Screen[Any]) -> tuple[Scope, ...]:
        """The command scopes of a screen."""
        return screen.scopes if isinstance(screen, ConsoleScreen) else ()

    def context_of(self, screen: Screen[Any]) -> Context:
        """What stands under a screen's cursor."""
        ctx = screen.context() if isinstance(screen, ConsoleScreen) else self.base_context()
        if isinstance(screen, TableScreen):
            marked = tuple(sorted(screen.marked))
            found = {"markable": screen.markable, "sortable": screen.sortable, "marked": marked}
            return replace(ctx, **found)  # type: ignore[arg-type]
        return ctx

    def scopes(self) -> tuple[Scope, ...]:
        """The command scopes of the present screen."""
        return self.scopes_of(self.screen)

    def action_command(self, command_id: str) -> None:
        """Run a command of the table, or say why it cannot act."""
        command = catalog.BY_ID[command_id]
        ctx = self.context_of(self.screen)
        if reason := command.why_not(ctx):
            self.say(reason, "warn")
        else:
            HANDLERS[command_id](self, ctx)

    def say(self, text: str, tone: Tone = "dim") -> None:
        """A message in the status line of the screen that is seen."""
        screen = self._console_screen()
        if screen and screen.is_mounted:
            screen.say(text, tone)

    def report(self, error: PdError) -> None:
        """An error as a dialog with its values and its remedy."""
        self.push_screen(ErrorDialog(word("error", error.kind), detail.problems(error.problems)))

    def _console_screen(self) -> ConsoleScreen | None:
        for screen in reversed(self.screen_stack):
            if isinstance(screen, ConsoleScreen):
                return screen
        return None

    # following the store

    def store_changed(self) -> None:
        """Draw soon: at once when nothing was drawn lately, else with the next paint."""
        if self._paint is not None:
            self._stale = True
            return
        self._tell()
        self._paint = self.set_timer(self.settings.paint_s, self._painted)

    @property
    def settled(self) -> bool:
        """Whether everything known has been sent to the screen."""
        return not self._stale

    def _painted(self) -> None:
        self._paint = None
        if self._stale:
            self._stale = False
            self.store_changed()

    def _tell(self) -> None:
        screen = self._console_screen()
        if screen and screen.is_mounted:
            screen.post_message(StoreChanged())

    def busy_changed(self, busy: bool) -> None:
        """Turn the one-cell spinner while a call is under way."""
        if busy and self._spin is None:
            self._spin = self.set_interval(SPIN_S, self._turn_spinner)
        elif not busy and self._spin is not None:
            self._spin.stop()
            self._spin = None
        self._show_spinner(busy)

    def _turn_spinner(self) -> None:
        self._turn += self.animation_level != "none"
        self._show_spinner(True)

    def _show_spinner(self, busy: bool) -> None:
        screen = self._console_screen()
        if screen and screen.is_mounted:
            screen.query_one(StatusBar).spin(busy, turn=self._turn)

    @on(Worker.StateChanged)
    def _worker_failed(self, event: Worker.StateChanged) -> None:
        """A worker that broke in a way nobody foresaw is shown, and the console stays."""
        if event.state is WorkerState.ERROR and event.worker.error is not None:
            error = event.worker.error
            self.log.error(f"worker {event.worker.name}: {error!r}")
            lines: list[Line] = [
                (Span(tr("error.internal", name=event.worker.name), "strong"),),
                detail.fact(type(error).__name__, str(error)),
            ]
            self.push_screen(ErrorDialog(tr("error.unforeseen"), lines))

    # doing things

    def refresh_all(self) -> None:
        """Read everything anew."""
        if self.session:
            self.session.refresh()

    def other_theme(self) -> None:
        """Dark to light and back."""
        self.theme = "pdtui-light" if self.current_theme.dark else "pdtui-dark"

    def _theme_name(self) -> str:
        wanted = self._asked_theme or self.settings.theme
        return themes.pick(wanted, os.environ.get("COLORFGBG"))

    def change_settings(self, settings: Settings) -> None:
        """Take new settings at once, and keep them."""
        from pdtui.screens.settings import apply

        before, self.settings = self.settings, settings
        if settings.theme != before.theme:
            self._asked_theme = None
            self.theme = f"pdtui-{self._theme_name()}"
        apply(self, before)

    def copy(self, text: str, what: str) -> None:
        """Copy, and say what came of it."""

        async def work() -> None:
            import asyncio

            folder = self.state_dir
            try:
                said = await asyncio.to_thread(
                    clipboard.copy,
                    text,
                    lambda t: self.call_from_thread(self.copy_to_clipboard, t),
                    folder=folder,
                    in_tmux="TMUX" in os.environ,
                    what=what,
                )
            except OSError as error:
                self.say(tr("copy.failed", path=folder, why=error.strerror or error), "bad")
            else:
                self.say(said, "ok")

        self.run_worker(work(), name="copy", group="copy", exclusive=True)

    def offer_key(self, host: str, fingerprint: str, error: PdError) -> None:
        """Show an unknown host key; accept it when told to."""
        questions.accept_key(self, host, fingerprint, error)

    # leaving

    def ask_quit(self) -> None:
        """Leave; ask first when the groups would run on unwatched."""
        health = self.store.health
        running = groups.running(self.store.groups.values())
        if self._ask_to_leave and health and health.embedded and running:
            questions.leave(self, running)
        else:
            self.exit()

    def interrupt(self) -> None:
        """ctrl+c: the second one within three seconds leaves at once."""
        now = time.monotonic()
        if now - self._interrupted < INTERRUPT_S:
            self.exit()
        else:
            self._interrupted = now
            self.say(tr("quit.interrupt"), "warn")

    def action_command_palette(self) -> None:
        """Open the palette over the present screen."""
        if not isinstance(self.screen, CommandPalette):
            ask = tr("palette.ask")
            self.push_screen(CommandPalette(placeholder=ask, id="--command-palette"))

    async def action_quit(self) -> None:
        """Textual's own way out asks the same."""
        self.ask_quit()

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """None of Textual's own: the table has ours."""
        return ()
