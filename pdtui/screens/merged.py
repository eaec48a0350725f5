"""The logs of all members of a group in one, in order of time, each line behind its member."""

from __future__ import annotations

import asyncio
from typing import get_args

from pdtui.commands.model import Context
from pdtui.i18n import tr
from pdtui.present.cells import Line, Span, Tone
from pdtui.present.safe import lines
from pdtui.present.status import glyphs
from pdtui.screens.logs import POLL_S, LogScreen
from pdtui.state.logs import merged
from pdtui.widgets.log_pane import LogPane

_TONES: tuple[Tone, ...] = ("accent", "ok", "busy", "strong", "warn", "dim")
assert set(_TONES) <= set(get_args(Tone))


class _Tail:
    """How far one member's log was read."""

    def __init__(self, instance: str) -> None:
        self.instance = instance
        self.generation = 0
        self.offset: int | None = None
        self.partial = ""

    def take(self, text: str) -> list[str]:
        """The whole lines of a piece; the rest waits."""
        *whole, self.partial = lines(self.partial + text)
        return whole


class MergedLogScreen(LogScreen):
    """Every member at once."""

    def __init__(self, group: str) -> None:
        super().__init__(group, "")
        self._tails: dict[str, _Tail] = {}

    def path(self) -> list[str]:
        """The group, all."""
        return [self.group_name, tr("cmd.log.merged")]

    def context(self) -> Context:
        """No single member."""
        group = self.console.store.groups.get(self.group_name)
        searching = bool(self.query_one(LogPane).sought)
        return self.console.base_context(group=group, searching=searching)

    def on_mount(self) -> None:
        """Members that are there from the start are told apart at once."""
        super().on_mount()
        self._tag()

    def tag(self, instance: str) -> str:
        """What stands before a member's lines: its name without the group's."""
        return f"{instance.removeprefix(f'{self.group_name}-')}{glyphs().path}"

    def _tag(self) -> None:
        tones = {self.tag(n): _TONES[i % len(_TONES)] for i, n in enumerate(self.names())}
        self.query_one(LogPane).tags = tones

    def _head(self) -> Line:
        pane = self.query_one(LogPane)
        dot = Span(f"  {glyphs().dot}  ", "off")
        spans = [Span(tr("log.merged", count=len(self.names())), "accent"), dot]
        if pane.sought:
            matches = pane.matches
            at = matches.index(pane.current_match) + 1 if pane.current_match in matches else 0
            found = tr("log.matches", query=pane.sought, at=at, count=len(matches))
            spans += [Span(found, "warn" if matches else "bad"), dot]
        key, tone = ("log.following", "ok") if pane.following else ("log.paused", "dim")
        spans.append(Span(tr(key), tone))  # type: ignore[arg-type]
        if pane.hidden:
            spans += [dot, Span(tr("log.probes", count=pane.hidden), "dim")]
        return tuple(spans)

    async def _read(self) -> None:
        while self.console.session is not None:
            self._tag()
            batches = await asyncio.gather(*(self._piece(name) for name in self.names()))
            if new := merged(batches):
                self.query_one(LogPane).add_lines(new)
                self.fill()
            await asyncio.sleep(POLL_S)

    async def _piece(self, name: str) -> tuple[str, list[str]]:
        """What is new of one member; nothing while it has no log or does not answer."""
        from backend.domain.errors import PdError

        session = self.console.session
        tail = self._tails.setdefault(name, _Tail(name))
        group = self.console.store.groups.get(self.group_name)
        member = next((m for m in group.members if m.id == name), None) if group else None
        if member and tail.generation and member.generation > tail.generation:
            tail.offset = None
        assert session is not None
        try:
            chunk = await session.read_log(
                name,
                generation=tail.generation if tail.offset is not None else None,
                offset=tail.offset,
            )
        except PdError:
            return self.tag(name), []
        first, tail.generation, tail.offset = tail.offset is None, chunk.generation, chunk.offset
        if first:
            tail.partial = ""
        found = tail.take(chunk.text)
        return self.tag(name), found[1:] if first and chunk.truncated else found

    def sources(self) -> list[tuple[str, int | None]]:
        """Every member that has a log."""
        return [(t.instance, t.generation) for t in self._tails.values() if t.generation]

    def other_member(self, direction: int) -> None:
        """From all to one: the first, or the last."""
        if names := self.names():
            name = names[0 if direction > 0 else -1]
            self.console.push_screen(LogScreen(self.group_name, name))

    def previous_generation(self) -> None:
        """Only one member has generations."""

    def newest_generation(self) -> None:
        """Only one member has generations."""
