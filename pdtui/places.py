"""Going about in the console: areas, panels, and keys that are typed before a screen is there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events
from textual.app import App
from textual.screen import Screen
from textual.timer import Timer

from pdtui.screens.base import Area, ConsoleScreen, TableScreen
from pdtui.screens.caches import CachesScreen
from pdtui.screens.events import EventsScreen
from pdtui.screens.group import GroupScreen
from pdtui.screens.groups import GroupsScreen
from pdtui.screens.hosts import HostsScreen
from pdtui.screens.instances import InstancesScreen
from pdtui.screens.modes import ModesScreen
from pdtui.screens.settings import SettingsScreen

if TYPE_CHECKING:
    from pdtui.settings import Settings

HOLD_S = 5.0
"""Seconds after which keys typed ahead go to the screen that is there, whatever was to come."""
ACT_S = 10.0
"""Seconds in which a key has been acted upon on any machine."""
NEVER_HELD = frozenset({"ctrl+c"})
"""The way out is open while a screen is on its way."""


class Places(App[None]):
    """The areas of the console and the ways between them."""

    MODES: ClassVar[dict[str, str | Callable[[], Screen[Any]]]] = {
        "groups": GroupsScreen,
        "hosts": HostsScreen,
        "events": EventsScreen,
        "modes": ModesScreen,
        "instances": InstancesScreen,
        "caches": CachesScreen,
        "settings": SettingsScreen,
    }

    settings: Settings

    def __init__(self, *, watch_css: bool = False) -> None:
        super().__init__(watch_css=watch_css)
        self._kept: list[events.Key] = []
        self._going: list[events.Key] = []
        self._typing = False
        self._holds = 0
        self._hold_ends: Timer | None = None

    # going places

    def go_area(self, area: Area) -> None:
        """To another area, which is as it was left."""
        if self.current_mode == area:
            while len(self.screen_stack) > 1:
                top = self.screen
                if isinstance(top, ConsoleScreen) and not top.may_leave():
                    return
                self.pop_screen()
        else:
            self.switch_mode(area)

    def open_group(self, name: str, member: str = "") -> None:
        """A group's panel, with the cursor on a member if one is named."""
        if self.current_mode != "groups":
            self.switch_mode("groups")
        self.push_screen(GroupScreen(name))
        if member:
            self._put_cursor(member)

    def open_host(self, name: str) -> None:
        """A host, found in the list."""
        self.go_area("hosts")
        self._put_cursor(name)

    def open_instance(self, name: str) -> None:
        """An instance, found in the list."""
        self.go_area("instances")
        self._put_cursor(name)

    def _put_cursor(self, key: str) -> None:
        def select() -> None:
            if isinstance(self.screen, TableScreen):
                self.screen.table().select(key)

        self.call_after_refresh(select)

    def go_back(self) -> None:
        """Escape."""
        if isinstance(self.screen, ConsoleScreen):
            self.screen.back()

    async def relabel(self) -> None:
        """Make every screen anew, for another language; each stays where it is."""
        for stack in list(self._screen_stacks.values()):
            for screen in stack:
                if isinstance(screen, ConsoleScreen):
                    await screen.relabel()

    # typing ahead

    def hold_keys(self) -> None:
        """Keep what is typed from now on for the screen that is on its way. Each call wants a
        `release_keys` of its own."""
        self._holds += 1
        if self._hold_ends is None:
            self._hold_ends = self.set_timer(HOLD_S, self._give_up)

    def release_keys(self) -> None:
        """The screen is there: type what was kept into it, one key after the other."""
        self._holds = max(0, self._holds - 1)
        if self._holds == 0:
            self._give_up()

    def drop_keys(self) -> None:
        """Forget what was kept: a question came that nobody expected."""
        self._kept.clear()

    def _give_up(self) -> None:
        self._holds = 0
        if self._hold_ends is not None:
            self._hold_ends.stop()
            self._hold_ends = None
        if self._kept and not self._typing:
            self._typing = True
            self.run_worker(
                self._type(), name="typed ahead", group="call.typed", exit_on_error=False
            )

    async def _type(self) -> None:
        try:
            await self._acted_upon()  # the new screen has its focus by then
            while self._kept and self._hold_ends is None:
                event = self._kept.pop(0)
                self._going.append(event)
                self.post_message(event)
                await self._acted_upon()
        finally:
            self._typing = False

    async def _acted_upon(self) -> None:
        """Wait until what was posted has been acted upon, and what that opened has been drawn."""
        # a key goes from the app to the focused widget, what that says of it to the screen
        for follow in (
            self.call_later,
            lambda done: (self.focused or self.screen).call_later(done),
            lambda done: self.screen.call_later(done),
        ):
            done = asyncio.Event()
            follow(done.set)
            with suppress(TimeoutError):  # what was closed meanwhile never answers
                async with asyncio.timeout(ACT_S):
                    await done.wait()

    async def on_event(self, event: events.Event) -> None:
        """Keep keys while a screen is on its way, and while earlier ones are still to be typed."""
        if isinstance(event, events.Key) and not event.is_forwarded:
            keeping = self._hold_ends is not None or self._typing
            if any(event is typed for typed in self._going):
                self._going = [typed for typed in self._going if typed is not event]
            elif keeping and event.key not in NEVER_HELD:
                self._kept.append(event)
                return
        await super().on_event(event)
