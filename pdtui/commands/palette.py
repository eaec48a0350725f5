"""The palette: the same table, the commands of this screen first, then places to go."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from pdtui.commands import catalog, keymap
from pdtui.commands.model import Command
from pdtui.i18n import tr
from pdtui.present.safe import clean

if TYPE_CHECKING:
    from pdtui.app import Console

_HIDDEN = frozenset({"app.palette", "app.back", "app.interrupt"})


class CommandProvider(Provider):
    """Commands that the console runs, each with its key and, when it cannot act, the reason."""

    @property
    def _console(self) -> Console:
        return cast("Console", self.app)

    def _commands(self) -> list[Command]:
        found = [*catalog.of(*self._console.scopes_of(self.screen)), *catalog.of("app")]
        return [c for c in found if c.owner == "handler" and c.id not in _HIDDEN]

    def _help(self, command: Command) -> str:
        ctx = self._console.context_of(self.screen)
        reason = command.why_not(ctx)
        return tr("palette.cannot", reason=reason) if reason else command.help

    def _title(self, command: Command) -> str:
        key = keymap.shown(command.keys[0]) if command.keys else ""
        return f"{command.title}  {key}".rstrip()

    def _run(self, command: Command) -> None:
        self._console.action_command(command.id)

    async def discover(self) -> Hits:
        """Everything that can be done here."""
        for command in self._commands():
            yield DiscoveryHit(
                Content(self._title(command)),
                partial(self._run, command),
                text=command.title,
                help=Content(self._help(command)),  # type: ignore[arg-type]
            )

    async def search(self, query: str) -> Hits:
        """Commands by title, help or id; then groups and hosts by name."""
        matcher = self.matcher(query)
        for command in self._commands():
            score = max(
                matcher.match(command.title), matcher.match(command.help), matcher.match(command.id)
            )
            if score > 0:
                yield Hit(
                    score,
                    Content(self._title(command)),
                    partial(self._run, command),
                    text=command.title,
                    help=Content(self._help(command)),  # type: ignore[arg-type]
                )
        store, go_instance = self._console.store, self._console.open_instance
        for kind, names, go in (
            ("groups", list(store.groups), self._console.open_group),
            ("hosts", list(store.hosts), self._console.open_host),
            ("instances", [m.id for g in store.groups.values() for m in g.members], go_instance),
        ):
            for name in names:
                score = matcher.match(name)
                if score > 0:
                    title = f"{tr(f'palette.{kind}')} {clean(name)}"
                    yield Hit(score, Content(title), partial(go, name), text=clean(name))
