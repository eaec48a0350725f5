"""Alerts: which stand, since when, told as events and handed to the command that wants them.

The command (`PDTUI_ALERT_HOOK`) gets one alert as JSON on its stdin, and its parts as
`PDTUI_ALERT_*` in its environment. It may take ten seconds; two run at a time, and of a flood some
are dropped.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shlex
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from backend.adapters.secrets import ended
from backend.domain.alerts import DEAD, alerts, brief
from backend.domain.telling import said
from backend.domain.views import EventView, GroupView
from backend.domain.watch_views import AlertView
from backend.store.clock import steady
from backend.store.store import Store, Touched

log = logging.getLogger(__name__)

LASTS_S = 5.0
"""An alert whose cause is gone for so long is over: a cause that comes and goes is one alert."""
HOOK_TIMEOUT_S = 10.0
HOOKS_AT_ONCE = 2
MOST_WAITING = 100
LOOK_S = 1.0


@dataclass
class _Standing:
    view: AlertView
    gone_since: float | None = None


class Alarm:
    """Every alert that stands. `raised(view)` is called whenever a group's view is made."""

    def __init__(
        self,
        store: Store,
        on_change: Callable[[str], None],
        hook: str = "",
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._store, self._on_change, self._hook = store, on_change, shlex.split(hook)
        self._clock = clock or steady()
        self._standing: dict[str, dict[str, _Standing]] = {}  # by group and id
        self._wedged: set[str] = set()
        self._begun: dict[str, EventView] = {}
        self._news: deque[tuple[str, AlertView]] = deque(maxlen=MOST_WAITING)
        self._hooks: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(HOOKS_AT_ONCE)
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        store.listeners.append(self._on_touched)

    def start(self) -> None:
        """Begin to tell of them."""
        self._task = asyncio.create_task(self._tell(), name="alerts")

    async def close(self) -> None:
        """Stop, and end the commands that still run."""
        tasks = [*self._hooks, *([self._task] if self._task else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def standing(self) -> tuple[AlertView, ...]:
        """Every alert that stands, the oldest first."""
        found = [s.view for of_group in self._standing.values() for s in of_group.values()]
        return tuple(sorted(found, key=lambda a: a.since))

    def raised(self, view: GroupView) -> tuple[AlertView, ...]:
        """The alerts of a group as it is now; new ones are told of, old ones keep their time."""
        now = self._clock()
        self._wedged -= {m.id for m in view.members if m.state == "ready"}
        found = {a.id: a for a in alerts(view, frozenset(self._wedged))}
        self._pass_by(view, found, now)
        for key, alert in found.items():
            known = self._of(view.name).get(key)
            if known is None:
                self._raise(alert, now)
            else:
                same = alert.model_copy(update={"since": known.view.since})
                self._standing[view.name][key] = _Standing(same)
        for key, known in list(self._of(view.name).items()):
            if key in found:
                continue
            known.gone_since = known.gone_since or now
            if now - known.gone_since >= LASTS_S:
                self._end(known.view)
        mine = [s.view for s in self._of(view.name).values()]
        return tuple(sorted(mine, key=lambda a: (a.since, a.id)))

    def _of(self, group: str) -> Mapping[str, _Standing]:
        return self._standing.get(group, {})

    def _pass_by(self, view: GroupView, found: dict[str, AlertView], now: float) -> None:
        """Raise what began and was over before any view of the group was made."""
        for event in [e for e in self._begun.values() if e.group == view.name]:
            del self._begun[event.instance]
            alert = brief(view, event)
            if alert is not None and alert.id not in found and alert.id not in self._of(view.name):
                self._raise(alert, now, gone_since=now)

    def _raise(self, alert: AlertView, now: float, gone_since: float | None = None) -> None:
        fresh = alert.model_copy(update={"since": now})
        self._standing.setdefault(alert.group, {})[alert.id] = _Standing(fresh, gone_since)
        self._have_told("raised", fresh)

    def _end(self, alert: AlertView) -> None:
        mine = self._standing[alert.group]
        del mine[alert.id]
        if not mine:
            del self._standing[alert.group]
        self._have_told("over", alert)

    def _have_told(self, what: str, alert: AlertView) -> None:
        self._news.append((what, alert))
        self._wake.set()

    def _on_touched(self, touched: Touched) -> None:
        self._wedged |= {e.instance for e in touched.events if e.kind == "wedged"}
        self._begun |= {e.instance: e for e in touched.events if e.kind in DEAD and e.instance}
        for gone in [e for e in self._begun.values() if e.group not in self._store.groups]:
            del self._begun[gone.instance]

    async def _tell(self) -> None:
        while True:
            self._look_again()
            self._wake.clear()
            while self._news:
                what, alert = self._news.popleft()
                try:
                    await self._told(what, alert)
                except Exception:  # no room to keep it, for one: the next ones are told still
                    log.exception("the alert %s could not be told", alert.id)
            try:
                async with asyncio.timeout(LOOK_S):
                    await self._wake.wait()
            except TimeoutError:
                continue

    def _look_again(self) -> None:
        """Have the views made anew on which an alert only waits for its end."""
        for group, mine in list(self._standing.items()):
            if group not in self._store.groups:
                for known in list(mine.values()):
                    self._end(known.view)
            elif any(known.gone_since is not None for known in mine.values()):
                self._on_change(group)

    async def _told(self, what: str, alert: AlertView) -> None:
        about = {"group": alert.group, "instance": alert.instance, "host": alert.host}
        over = what == "over"
        async with self._store.write() as tx:
            if over:
                lasted = self._clock() - alert.since
                words = said("alert.over", seconds=f"{lasted:.0f}", what=alert.words)
                tx.event("alert_over", words, **about)
            else:
                tx.event("alert", alert.words, level=alert.level, **about)
        if self._hook:
            task = asyncio.create_task(self._call(what, alert), name=f"alert hook {alert.id}")
            self._hooks.add(task)
            task.add_done_callback(self._hooks.discard)
            if len(self._hooks) > MOST_WAITING:
                log.warning("too many alerts for the hook: %s is not handed to it", alert.id)
                task.cancel()

    async def _call(self, what: str, alert: AlertView) -> None:
        body = {"what": what, **alert.model_dump(mode="json")}
        env = {
            f"PDTUI_ALERT_{k.upper()}": str(v).replace("\0", " ")
            for k, v in body.items()
            if k != "said"
        }
        async with self._slots:
            try:
                process = await asyncio.create_subprocess_exec(
                    *self._hook,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.DEVNULL,
                    stderr=asyncio.subprocess.PIPE,
                    env={**os.environ, **env},
                    start_new_session=True,
                )
            except OSError as error:
                log.warning("the alert hook cannot be started: %s", error)
                return
            try:
                async with asyncio.timeout(HOOK_TIMEOUT_S):
                    _, printed = await process.communicate(json.dumps(body).encode())
            except TimeoutError:
                log.warning("the alert hook took over %.0f s and is ended", HOOK_TIMEOUT_S)
                return
            finally:
                await ended(process)
            if process.returncode:
                words = printed.decode("utf-8", "replace").strip()[-200:]
                log.warning("the alert hook ended with %d: %s", process.returncode, words)
