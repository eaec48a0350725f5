"""Metrics pages of every member and router, scraped through their hosts' SSH connections."""

from __future__ import annotations

import asyncio
import logging
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import httpx

from backend.adapters.http import HostHttp
from backend.domain.endpoints import metrics_place
from backend.domain.errors import PdError
from backend.domain.group import Instance
from backend.domain.instance import http_url
from backend.domain.metrics_recipe import SeriesRecipe
from backend.domain.pages import PageReader
from backend.observe.ring import CAPACITY, Ring
from backend.observe.tasks import Watchers
from backend.store.clock import steady
from backend.store.store import Store

log = logging.getLogger(__name__)

PAGE_BYTES = 8 << 20
"""The longest page that is read: a hundred times an engine's."""


@dataclass(frozen=True)
class MetricsPace:
    """Seconds between two pages of one instance, and how long one may take."""

    every_s: float = 5.0
    timeout_s: float = 4.0


@dataclass
class Scraped:
    """One instance's pages. `problem` is why the last one could not be read, empty when it was."""

    reader: PageReader
    ring: Ring
    problem: str = ""
    took_s: float = 0.0
    pages: int = 0
    failures: int = 0


class MetricsWatch:
    """One scraping task per instance that has a metrics page; `on_page(group)` after each page."""

    def __init__(
        self,
        store: Store,
        http: HostHttp,
        series: Callable[[], Mapping[str, SeriesRecipe]],
        on_page: Callable[[str], None],
        pace: MetricsPace | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._store, self._http, self._series = store, http, series
        self._on_page, self._pace = on_page, pace or MetricsPace()
        self._clock = clock or steady()
        self._tasks = Watchers("metrics", self._watch)
        self._scraped: dict[str, Scraped] = {}
        self._kept: dict[str, set[str]] = {}  # its keys, by group

    @property
    def every_s(self) -> float:
        """Seconds between two pages of one instance."""
        return self._pace.every_s

    def scraped(self, instance: str) -> Scraped | None:
        """What was read of an instance; None when nothing was asked yet."""
        return self._scraped.get(instance)

    def all(self) -> Mapping[str, Scraped]:
        """Everything that is kept, by instance."""
        return self._scraped

    def sync(self, group: str) -> None:
        """Scrape the group's instances that have a page now; forget those that are gone."""
        instances = self._store.of_group(group)
        wanted = {i.id for i in instances if self._place(i) is not None}
        kept = self._kept.pop(group, set())
        for key in kept - {i.id for i in instances}:
            del self._scraped[key]
        for key in wanted - kept:
            self._scraped[key] = Scraped(PageReader(self._series()), Ring(CAPACITY))
        if left := (kept | wanted) & self._scraped.keys():
            self._kept[group] = left
        self._tasks.sync(wanted, group)

    async def close(self) -> None:
        """End every scraping task."""
        await self._tasks.close()

    async def scrape(self, instance: Instance) -> None:
        """Read one page now and keep it; why not, when it cannot be read."""
        kept = self._scraped.get(instance.id)
        if kept is None:
            return
        began = time.monotonic()
        try:
            values = await self.page(instance)
        except (PdError, httpx.HTTPError, ValueError) as error:
            said = str(error) or type(error).__name__
            if said != kept.problem:
                log.info("no metrics of %s: %s", instance.id, said)
            kept.problem, kept.failures = said, kept.failures + 1
            return
        kept.problem, kept.took_s = "", time.monotonic() - began
        kept.pages += 1
        kept.ring.add(self._clock(), float(instance.generation), values)

    async def page(self, instance: Instance) -> dict[str, float]:
        """One page as it is now, not kept.

        Raises ValueError for what is no metrics page, PdError and httpx.HTTPError when there is no
        answer.
        """
        place, host = self._place(instance), self._store.hosts.get(instance.host)
        kept = self._scraped.get(instance.id)
        if place is None or host is None or kept is None:
            raise ValueError(f"{instance.id} has no metrics page")
        url = http_url(instance.address, place[0]) + place[1]
        answer = await self._http.request(host, "GET", url, timeout=self._pace.timeout_s)
        if answer.status_code != httpx.codes.OK:
            raise ValueError(f"{url} answers HTTP {answer.status_code}")
        if len(answer.content) > PAGE_BYTES:
            raise ValueError(f"{url} is over {PAGE_BYTES >> 20} MiB")
        return kept.reader.read(answer.text)

    def _place(self, instance: Instance) -> tuple[int, str] | None:
        group = self._store.groups.get(instance.group)
        return None if group is None else metrics_place(group, instance)

    async def _watch(self, key: str) -> None:
        # spread over the interval, the same for every start of the backend
        await asyncio.sleep(self._pace.every_s * (zlib.crc32(key.encode()) % 97) / 97)
        due = time.monotonic()
        while (instance := self._store.instances.get(key)) is not None:
            try:
                await self.scrape(instance)
                self._on_page(instance.group)
            except Exception:  # the next page is read all the same
                log.exception("the metrics page of %s could not be judged", key)
            due = max(due + self._pace.every_s, time.monotonic())
            await asyncio.sleep(due - time.monotonic())
