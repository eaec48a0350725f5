"""Canaries: one small request through every prefill and decode of a group, and one by its router.

On demand, when a group was formed or its members changed, and on a slow interval; at most one run a
group and two in all at a time, so many pairs a run, so many tokens a pair.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from backend.adapters.http import HostHttp
from backend.adapters.keys import Keys
from backend.adapters.runtime import InstanceRuntime
from backend.domain import canary
from backend.domain.canary import Reply
from backend.domain.diagnosis.scan import diagnose
from backend.domain.errors import Conflict, PdError, TimedOut
from backend.domain.group import Group, Instance
from backend.domain.instance import MEMBER_ROLES, http_url
from backend.domain.metrics_recipe import CanaryRecipe
from backend.domain.mode import Catalogue
from backend.domain.recipes import shown_mode
from backend.domain.telling import Said, meaning, said, told
from backend.domain.watch_views import CanaryView, PairView
from backend.domain.worker_calls import served_name
from backend.observe.metrics import MetricsWatch
from backend.store.clock import steady
from backend.store.store import Store

log = logging.getLogger(__name__)

LOOK_S = 1.0
COUNTED_WITHIN_S = 3.0
"""An engine shows a request on its metrics page a moment after it answered it."""
LOG_END = 1 << 14
WORDS = 200
RUNS_AT_ONCE = 2
ANSWER_S = 25.0
"""The longest that a caller waits for one answer; it asks again."""


@dataclass(frozen=True)
class CanaryPace:
    """`every_s` seconds between two runs of a group, and `failing_s` while it fails; 0 is never.
    `formed` (0 or 1): also when members came. `timeout_s` is one answer's; a first one may compile
    kernels. `pairs` are the most of one run that nobody asked for."""

    every_s: float = 300.0
    failing_s: float = 30.0
    formed: float = 1
    timeout_s: float = 60.0
    pairs: float = 64


@dataclass(frozen=True)
class _Group:
    """What a run works on."""

    row: Group
    recipe: CanaryRecipe | None
    transfers: str | None
    members: Mapping[str, Instance]
    router: Instance | None
    model: str

    def role(self, name: str) -> list[str]:
        return sorted(i.id for i in self.members.values() if i.role == name)

    @property
    def key(self) -> frozenset[tuple[str, int]]:
        """Who takes part: another key is another group to try."""
        every = [*self.members.values(), *([self.router] if self.router else [])]
        return frozenset((i.id, i.generation) for i in every)


class Canaries:
    """Runs them and keeps each group's last; `on_change(group)` when its view changed."""

    def __init__(
        self,
        store: Store,
        http: HostHttp,
        metrics: MetricsWatch,
        runtime: InstanceRuntime,
        catalogue: Callable[[], Catalogue],
        on_change: Callable[[str], None],
        pace: CanaryPace | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._store, self._http, self._metrics, self._runtime = store, http, metrics, runtime
        self._catalogue, self._on_change = catalogue, on_change
        self._pace, self._clock = pace or CanaryPace(), clock or steady()
        self._views: dict[str, CanaryView] = {}
        self._tried: dict[str, frozenset[tuple[str, int]]] = {}
        self._seen: dict[str, frozenset[tuple[str, int]]] = {}
        self._runs: dict[str, asyncio.Task[CanaryView]] = {}
        self._turn, self._keys = 0, Keys()
        self._task: asyncio.Task[None] | None = None

    def view(self, group: str) -> CanaryView | None:
        """The group's last run, or the one under way."""
        return self._views.get(group)

    def start(self) -> None:
        """Begin to run those that are due."""
        self._task = asyncio.create_task(self._schedule(), name="canaries")

    async def close(self) -> None:
        """End the schedule and every run."""
        tasks: list[asyncio.Task[Any]] = list(self._runs.values())
        tasks += [self._task] if self._task else []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def run(self, name: str, wait_s: float = ANSWER_S) -> CanaryView:
        """Try every pair of a group now; joins a run that is under way. After `wait_s` seconds the
        view is of one that still runs.

        Raises Conflict when there is nothing to try: no router serves, or no member is ready.
        """
        if name not in self._runs:
            found = self._group(name)
            if found is None or not (found.router or found.members):
                raise Conflict.of(
                    "canary.nothing",
                    f"{name} has nothing to try: no member of it is ready.",
                    values={"group": name},
                    remedy="Wait until it runs; `pdtui get` shows what it waits for.",
                )
            self._begin(name, found, "asked")
        task = self._runs[name]
        try:
            async with asyncio.timeout(wait_s):
                return await asyncio.shield(task)
        except TimeoutError:
            return self._views[name]

    # The schedule

    async def _schedule(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                self._look()
            except Exception:  # the next look is made all the same
                log.exception("what is due for a canary could not be seen")

    def _look(self) -> None:
        self._views = {n: v for n, v in self._views.items() if n in self._store.groups}
        for name in sorted(self._store.groups):
            found = self._group(name)
            if found and (why := self._due(name, found)) and len(self._runs) < RUNS_AT_ONCE:
                self._begin(name, found, why)

    def _due(self, name: str, found: _Group) -> str:
        group = found.row
        calm = group.endpoint is not None and group.restart is None and not group.deleting
        wanted = group.document.spec.disaggregation
        if name in self._runs or not calm or wanted is None or not wanted.canary:
            return ""
        before, self._seen[name] = self._seen.get(name), found.key
        if self._pace.formed and found.key == before and self._tried.get(name) != found.key:
            return "formed"
        if not self._pace.every_s:
            return ""
        last = self._views.get(name)
        if last is None:
            return "" if self._pace.formed else "interval"
        every = self._pace.every_s if last.ok else min(self._pace.failing_s, self._pace.every_s)
        return "interval" if self._clock() - last.at >= every else ""

    def _begin(self, name: str, found: _Group, why: str) -> None:
        task = self._runs[name] = asyncio.create_task(
            self._run(name, found, why), name=f"canary {name}"
        )
        task.add_done_callback(lambda _: self._ended(name, task))

    def _ended(self, name: str, task: asyncio.Task[CanaryView]) -> None:
        self._runs.pop(name, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("the canary of %s failed", name, exc_info=error)
            words = said("canary.internal", what=f"{type(error).__name__}: {error}")
            last = CanaryView(at=self._clock(), ok=False, note=told(words, "en"), said=words)
            self._views[name] = last
        self._on_change(name)

    def _group(self, name: str) -> _Group | None:
        group = self._store.groups.get(name)
        mode = shown_mode(group, self._catalogue()) if group is not None else None
        if group is None or mode is None or group.formed is None:
            return None
        ready = [i for i in self._store.of_group(name) if i.state == "ready" and not i.leaving]
        return _Group(
            row=group,
            recipe=mode.canary,
            transfers=mode.metrics.transfers if mode.metrics else None,
            members={i.id: i for i in ready if i.role in MEMBER_ROLES},
            router=next((i for i in ready if i.role == "router"), None),
            model=served_name(group.formed.document),
        )

    # One run

    async def _run(self, name: str, g: _Group, why: str) -> CanaryView:
        began, at = time.monotonic(), self._clock()
        last = self._views.get(name) or CanaryView(at=at)
        self._views[name] = last.model_copy(update={"running": True})
        self._tried[name] = g.key
        self._on_change(name)
        most = int(self._pace.pairs) if why != "asked" else 1 << 30
        pairs, left_out = canary.planned(g.role("prefill"), g.role("decode"), most, self._turn)
        self._turn += 1
        if g.recipe is None:
            pairs = []
        done = canary.settle(await self._pairs(g, pairs))
        through = await self._through_router(g) if g.router is not None else None
        wrong = canary.summary(done, through)
        words = wrong if wrong or g.recipe else said("canary.no_recipe")
        view = CanaryView(
            at=at,
            seconds=round(time.monotonic() - began, 3),
            why=why,
            ok=not wrong,
            pairs=done,
            router=through,
            left_out=left_out,
            note=told(words, "en") if words else "",
            said=words,
        )
        self._views[name] = view
        await self._tell(name, last, view)
        return view

    async def _tell(self, name: str, before: CanaryView, after: CanaryView) -> None:
        if before.ok == after.ok and after.why != "formed":
            return
        async with self._store.lock(name), self._store.write() as tx:
            if name not in self._store.groups:
                return
            if after.ok:
                about = {"count": len(after.pairs), "seconds": f"{after.seconds:.1f}"}
                tx.event("canary", said("canary.well", name=name, **about), group=name)
            else:
                words = said("canary.fails", name=name, what=after.words)
                tx.event("canary_failed", words, group=name, level="error")

    async def _pairs(self, g: _Group, pairs: Sequence[tuple[str, str]]) -> list[PairView]:
        """Pairs of different decodes side by side, those of one decode in turn, so that its
        counters tell them apart."""
        by_decode: dict[str, list[tuple[str, str]]] = {}
        for pair in pairs:
            by_decode.setdefault(pair[1], []).append(pair)
        dead: dict[str, Reply] = {}

        async def in_turn(mine: list[tuple[str, str]]) -> list[PairView]:
            return [await self._pair(g, g.members[p], g.members[d], dead) for p, d in mine]

        done = await asyncio.gather(*(in_turn(mine) for mine in by_decode.values()))
        return sorted((v for views in done for v in views), key=lambda v: (v.prefill, v.decode))

    async def _pair(
        self, g: _Group, prefill: Instance, decode: Instance, dead: dict[str, Reply]
    ) -> PairView:
        ids = (prefill.id, decode.id)
        if prefill.id in dead:  # it did not answer in time: asking again costs as much again
            return canary.judge(dead[prefill.id], Reply(), None, ids=ids)
        view = await self._attempt(g, prefill, decode, dead)
        if view.verdict == "content":  # two equally likely words are no fault: a second opinion
            view = await self._attempt(g, prefill, decode, dead)
        return view

    async def _attempt(
        self, g: _Group, prefill: Instance, decode: Instance, dead: dict[str, Reply]
    ) -> PairView:
        ids = (prefill.id, decode.id)
        before = await self._counts(decode)
        try:
            first, second = await self._ask_both(g, prefill, decode)
        except PdError as error:  # the recipe asks for what this group does not have
            return canary.judge(Reply(problem=str(error)), Reply(), None, ids=ids)
        if first.late:
            dead[prefill.id] = first
        shown = None
        if first.status == second.status == httpx.codes.OK:
            shown = await self._moved(g, decode, before, second.tokens)
        words = None
        if first.status == httpx.codes.OK and (second.status != httpx.codes.OK or shown is False):
            words = await self._log_words(decode)
        return canary.judge(first, second, shown, ids=ids, log=words)

    async def _ask_both(
        self, g: _Group, prefill: Instance, decode: Instance
    ) -> tuple[Reply, Reply]:
        assert g.recipe is not None
        nonce, recipe = secrets.token_hex(8), g.recipe
        base = canary.body(g.model, nonce)
        engine = await self._engine_id(recipe, prefill)
        if recipe.together:
            one, two = canary.fields(recipe, prefill, nonce, engine_id=engine)
            asked = (self._ask(prefill, base | one, nonce), self._ask(decode, base | two, nonce))
            first, second = await asyncio.gather(*asked)
            return first, second
        one, _ = canary.fields(recipe, prefill, nonce, engine_id=engine)
        first = await self._ask(prefill, base | {"max_tokens": 1} | one, nonce)
        if first.status != httpx.codes.OK:
            return first, Reply()
        answered = {k: v for k, v in (first.body or {}).items() if isinstance(v, dict)}
        _, two = canary.fields(recipe, prefill, nonce, engine_id=engine, answered=answered)
        return first, await self._ask(decode, base | two, nonce)

    async def _engine_id(self, recipe: CanaryRecipe, prefill: Instance) -> str:
        """The prefill's engine id, in modes whose router asks for it before."""
        query = recipe.query
        if query is None:
            return ""
        port = next((b.base for b in prefill.bands if b.name == query.band), 0)
        url = http_url(prefill.address, port) + query.path
        reply = await self._call(prefill, "GET", url, None, "")
        return canary.engine_id(reply.body, query.engine_id)

    async def _ask(self, i: Instance, body: dict[str, Any], nonce: str) -> Reply:
        return await self._call(i, "POST", f"{i.url}/v1/completions", body, nonce)

    async def _call(
        self, i: Instance, method: str, url: str, body: dict[str, Any] | None, nonce: str
    ) -> Reply:
        host = self._store.hosts.get(i.host)
        if host is None:
            return Reply(problem=f"host {i.host} is gone")
        began = time.monotonic()
        headers = {"x-request-id": f"canary-{nonce}"} if nonce else {}
        headers |= await self._keys.headers((i, *self._store.of_group(i.group)))
        try:
            answer = await self._http.request(
                host, method, url, json=body, headers=headers, timeout=self._pace.timeout_s
            )
            data = answer.json() if answer.content else {}
        except (PdError, httpx.HTTPError, ValueError) as error:
            said = str(error) or type(error).__name__
            late = isinstance(error, TimedOut | httpx.TimeoutException)
            return Reply(problem=said, seconds=time.monotonic() - began, late=late)
        took = time.monotonic() - began
        return Reply(answer.status_code, data if isinstance(data, dict) else {}, "", took)

    async def _through_router(self, g: _Group) -> PairView:
        assert g.router is not None
        decodes = [g.members[d] for d in g.role("decode")]
        before = {d.id: await self._counts(d) for d in decodes}
        nonce = secrets.token_hex(8)
        reply = await self._ask(g.router, canary.body(g.model, nonce), "")
        shown = None
        if reply.status == httpx.codes.OK and decodes:
            found = [await self._moved(g, d, before[d.id], reply.tokens, 0.5) for d in decodes]
            shown = True if True in found else None if None in found else False
        return canary.through_router(reply, shown)

    async def _counts(self, i: Instance) -> dict[str, float]:
        try:
            return await self._metrics.page(i)
        except (PdError, httpx.HTTPError, ValueError):
            return {}

    async def _moved(
        self,
        g: _Group,
        decode: Instance,
        before: Mapping[str, float],
        tokens: int,
        patience: float = COUNTED_WITHIN_S,
    ) -> bool | None:
        deadline = time.monotonic() + patience
        while True:
            after = await self._counts(decode)
            if not before or not after:
                return None
            shown = canary.moved(before, after, tokens, g.transfers)
            if shown is not False or time.monotonic() >= deadline:
                return shown
            await asyncio.sleep(0.1)

    async def _log_words(self, i: Instance) -> Said | None:
        host = self._store.hosts.get(i.host)
        if host is None:
            return None
        try:
            end = await self._runtime.log(host, i.id, generation=i.generation, tail_bytes=LOG_END)
        except PdError:
            return None
        first = diagnose(end.text, name=i.id, role=i.role, ended=False).first
        return meaning(first.text[:WORDS], first.cause) if first else None
