"""A busy site on the screen: `python -m tests.bench.busy_app ours|rival RATE [MOST]`, under a
terminal. After MOST changes nothing moves any more.

125 groups of 8 instances on 200 hosts; RATE changes a second arrive as the JSON text that the
event stream carries, and both applications parse them. `rival` shows the same rows in Textual's own
DataTable, each changed cell updated by itself.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from itertools import count, cycle, islice
from pathlib import Path
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.widgets import DataTable  # noqa: TID251  (the rival)

import pdtui
from backend.domain.views import Change, GroupView, Snapshot
from pdtui.app import Console
from pdtui.present import groups
from tests.tui import factories
from tests.tui.fake_client import FakeClient

GROUPS, MEMBERS, HOSTS = 125, 8, 200
STILL = 20
"""The first rows never change: the cursor moves among them while those below do."""
CURSOR = "#123456"


def name(number: int) -> str:
    """A group's name."""
    return f"group-{number:03d}"


def group(number: int, turn: int) -> GroupView:
    """One group as it stands at some turn; the number of its ready members differs by turn."""
    ready = 1 + turn % 4
    members = tuple(
        factories.member(
            f"{name(number)}-p{i}",
            "prefill" if i < MEMBERS // 2 else "decode",
            f"node-{(number * MEMBERS + i) % HOSTS:03d}",
            state="ready" if i < ready else "starting",
        )
        for i in range(MEMBERS)
    )
    return factories.running(name(number), members=members, ratio="4:4", currently=f"{ready}:4")


def site() -> Snapshot:
    """Everything before the first change."""
    hosts = tuple(factories.host(f"node-{i:03d}", 5, 8) for i in range(HOSTS))
    return Snapshot(seq=1, groups=tuple(group(i, 3) for i in range(GROUPS)), hosts=hosts)


def texts() -> Iterator[str]:
    """Changes for ever, as lines of the stream."""
    bodies = [
        [group(n, turn).model_dump(mode="json") for turn in range(4)] for n in range(STILL, GROUPS)
    ]
    seq = count(2)
    for turn in cycle(range(4)):
        for states in bodies:
            body = states[turn]
            yield Change.model_construct(seq=next(seq), kind="group", body=body).model_dump_json()


def mixed() -> Iterator[str]:
    """The same changes for ever, each fifth one a line of history."""
    for turn, text in enumerate(texts()):
        if turn % 5:
            yield text
            continue
        event = factories.event(turn + 2, name(turn % GROUPS), f"the {turn}th thing that happened")
        body = event.model_dump(mode="json")
        yield Change.model_construct(seq=turn + 2, kind="event", body=body).model_dump_json()


async def changes(rate: float, most: int = 0) -> AsyncIterator[Change]:
    """`rate` changes a second, parsed; none at all for a rate of 0. With `most`, so many of them,
    among them history, and then rest."""
    if not rate:
        await asyncio.Event().wait()
    due = asyncio.get_running_loop().time()
    for text in islice(mixed(), most) if most else texts():
        due += 1 / rate
        await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
        yield Change.model_validate_json(text)
    await asyncio.Event().wait()


class BusyClient(FakeClient):
    """A backend whose changes come by themselves."""

    def __init__(self, rate: float, most: int) -> None:
        super().__init__(site())
        self._rate, self._most = rate, most

    def changes(self, since: int) -> AsyncIterator[Change]:
        return changes(self._rate, self._most)


class Ours(Console):
    """The console, with a colour of the cursor that can be found in its output."""

    CSS_PATH = Path(pdtui.__file__).parent / "styles" / "base.tcss"

    def get_css_variables(self) -> dict[str, str]:
        return {**super().get_css_variables(), "cursor": CURSOR}


class Rival(App[None]):
    """The same rows in a DataTable."""

    CSS = f"DataTable > .datatable--cursor {{ background: {CURSOR}; }}"
    BINDINGS: ClassVar = [("j", "down"), ("k", "up"), ("q", "quit")]

    def __init__(self, rate: float, most: int) -> None:
        super().__init__()
        self._rate, self._most = rate, most
        self._shown: dict[str, tuple[str, ...]] = {}

    def compose(self) -> ComposeResult:
        yield DataTable(cursor_type="row")

    def on_mount(self) -> None:
        table = self.query_one(DataTable)
        for column in groups.columns():
            table.add_column(column.title, key=column.key)
        for view in site().groups:
            cells = self._cells(view)
            self._shown[view.name] = cells
            table.add_row(*cells, key=view.name)
        table.focus()
        self.run_worker(self._follow(), group="follow")

    async def _follow(self) -> None:
        table = self.query_one(DataTable)
        keys = [c.key for c in groups.columns()]
        async for change in changes(self._rate, self._most):
            if change.kind != "group":
                continue
            view = GroupView.model_validate(change.body)
            cells = self._cells(view)
            for key, new, old in zip(keys, cells, self._shown[view.name], strict=True):
                if new != old:
                    table.update_cell(view.name, key, new)
            self._shown[view.name] = cells

    @staticmethod
    def _cells(view: GroupView) -> tuple[str, ...]:
        return tuple(c.text.replace("[", r"\[") for c in groups.row(view, "1h").cells)

    def action_down(self) -> None:
        self.query_one(DataTable).action_cursor_down()

    def action_up(self) -> None:
        self.query_one(DataTable).action_cursor_up()


def main(which: str, rate: float, most: int = 0) -> None:
    """Shows one of the two until the terminal goes."""

    async def client() -> FakeClient:
        return BusyClient(rate, most)

    app: App[None] = Ours(client, theme="dark") if which == "ours" else Rival(rate, most)
    app.run()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), *map(int, sys.argv[3:]))
