"""A console on a fake client, a fixed clock and zone, and text pictures of the screen."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from pdtui.app import Console
from pdtui.present.status import UNICODE, use_glyphs
from pdtui.screens.base import ConsoleScreen
from pdtui.widgets.bars import KeyBar, StatusBar
from pdtui.widgets.resource_table import ResourceTable
from tests.tui.factories import DOCUMENTS, LOGS, NOW, site
from tests.tui.fake_client import FakeClient

SNAPSHOTS = Path(__file__).parent / "snapshots"
UPDATE = bool(os.environ.get("PDTUI_UPDATE_SNAPSHOTS"))
"""Read at import: the tests themselves run without PDTUI_ variables."""


class Driver:
    """A running console: keys, waiting, and what is on the screen."""

    def __init__(self, console: Console, client: FakeClient, pilot: Pilot[None]) -> None:
        self.console, self.client, self.pilot = console, client, pilot

    async def settle(self) -> None:
        """Wait until every call was answered and everything known is drawn."""
        for _ in range(200):
            await self.pilot.pause()
            calls = [
                w
                for w in self.console.workers
                if w.group.startswith(("call", "copy", "click")) and not w.is_finished
            ]
            if calls:
                await self.console.workers.wait_for_complete(calls)
            elif self.client.idle and self.console.settled:
                await self.pilot.pause()
                return
            else:
                await self.pilot.pause(0.01)
        raise AssertionError("the console did not settle")

    async def until(self, done: Callable[[], Any]) -> None:
        """Wait for something that has no worker to await."""
        for _ in range(3000):
            if done():
                await self.pilot.pause()
                return
            await self.pilot.pause(0.01)
        raise AssertionError(f"never happened; the screen was:\n{self.text}")

    async def press(self, *keys: str) -> None:
        """Press keys and wait for what they do."""
        await self.pilot.press(*keys)
        await self.settle()

    async def open_group(self, name: str, cursor: str | None = None) -> None:
        """Go to a group's panel, the cursor on a row."""
        self.console.open_group(name)
        await self.settle()
        if cursor:
            assert self.table.select(cursor)
            await self.settle()

    @property
    def text(self) -> str:
        """The screen as text, without trailing blanks."""
        strips = self.console.screen._compositor.render_strips()
        return "\n".join(s.text.rstrip() for s in strips)

    @property
    def words(self) -> str:
        """The words of the screen in reading order, whatever the lines they were wrapped at."""
        kept = [w for w in self.text.replace("│", " ").split() if w.strip("─╭╮╰╯▌")]
        return " ".join(kept)

    @property
    def table(self) -> ResourceTable:
        """The table of the screen on top."""
        return self.console.screen.query_one(ResourceTable)

    @property
    def message(self) -> str:
        """What the status line says."""
        screens = [s for s in self.console.screen_stack if isinstance(s, ConsoleScreen)]
        return screens[-1].query_one(StatusBar).message

    @property
    def hints(self) -> dict[str, bool]:
        """The key bar: command id to whether it can act."""
        bar = self.console.screen.query_one(KeyBar)
        return {h.command.id: h.able for h in bar.hints if h.command}

    @property
    def keys(self) -> dict[str, str]:
        """The key bar: key to what it does."""
        return {h.key: h.title for h in self.console.screen.query_one(KeyBar).hints}

    def line(self, part: str) -> str:
        """The first line of the screen that holds `part`."""
        return next(line for line in self.text.splitlines() if part in line)


Start = Callable[..., AbstractAsyncContextManager[Driver]]


@pytest.fixture(autouse=True)
def fixed_surroundings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One zone, one glyph set, nothing of the developer's terminal."""
    for name in ("TMUX", "NO_COLOR", "COLORFGBG", "PDTUI_ASCII"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    use_glyphs(UNICODE)
    yield
    use_glyphs(UNICODE)
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Start a console and wait for its first full screen."""

    @asynccontextmanager
    async def run(
        client: FakeClient | None = None,
        *,
        size: tuple[int, int] = (100, 30),
        loaded: bool = True,
        **options: Any,
    ) -> AsyncIterator[Driver]:
        fake = client or FakeClient(site(), documents=DOCUMENTS, logs=LOGS)

        async def open_client() -> FakeClient:
            return fake

        console = Console(
            options.pop("open_client", open_client),
            clock=lambda: NOW,
            state_dir=tmp_path,
            theme=options.pop("theme", "dark"),
            **options,
        )
        async with console.run_test(size=size) as pilot:
            driver = Driver(console, fake, pilot)
            if loaded:
                await driver.until(lambda: console.store.loaded)
                await driver.settle()
            yield driver

    return run


@pytest.fixture
def matches(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a screen's text with the stored picture; PDTUI_UPDATE_SNAPSHOTS=1 stores it anew."""

    def check(name: str, text: str) -> None:
        path = SNAPSHOTS / f"{name}.txt"
        if UPDATE:
            path.write_text(text + "\n", encoding="utf-8")
            return
        assert path.exists(), f"{path.name} is missing: run with PDTUI_UPDATE_SNAPSHOTS=1"
        assert text.splitlines() == path.read_text(encoding="utf-8").splitlines()

    return check
