"""Metrics pages of engines and routers, read into the catalogue's series. Pure.

A value is kept under a key: `prompt_tokens`, `routed[http://10.0.0.1:40000]` where a label's values
are kept apart, and `first_token.sum`, `first_token.count`, `first_token.le:0.25` of a histogram.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from backend.domain.metrics_recipe import SeriesRecipe, SeriesSource

MOST_HEADS = 4000
"""Names with labels whose meaning is remembered of one page; more is no engine's page."""
MOST_KEPT_APART = 600
"""Values of a label that are kept apart on one page: far above the members of any group."""


@dataclass(frozen=True)
class _Wanted:
    """One part of one series that a sample name feeds. `rank` is the place among its sources."""

    series: str
    recipe: SeriesRecipe
    rank: int
    source: SeriesSource
    part: str = ""


@dataclass(frozen=True)
class _Feed:
    """What one sample adds to."""

    key: str
    rank: int
    scale: float
    together: bool
    largest: bool


def key(series: str, value: str) -> str:
    """Where a series keeps what carries that value of its label."""
    return f"{series}[{value}]"


class PageReader:
    """Reads the pages of one instance. A sample's name and labels are parsed the first time they
    are seen; after that its line costs one look-up."""

    def __init__(self, series: Mapping[str, SeriesRecipe]) -> None:
        self._wanted: dict[str, list[_Wanted]] = {}
        for name, recipe in series.items():
            for rank, source in enumerate(recipe.sources):
                for raw, part in _spellings(recipe, source):
                    self._wanted.setdefault(raw, []).append(
                        _Wanted(name, recipe, rank, source, part)
                    )
        self._heads: dict[str, tuple[_Feed, ...]] = {}

    def read(self, page: str) -> dict[str, float]:
        """The values of every series that the page has.

        Raises ValueError, naming the line, for one that is no metrics page or was cut short.
        """
        found: dict[str, tuple[int, float]] = {}
        seen = False
        for number, line in enumerate(page.split("\n"), start=1):
            if not line or line[0] == "#":
                seen = seen or line.startswith("# TYPE ")
                continue
            head, _, text = line.rpartition(" ")
            feeds = self._heads.get(head)
            if feeds is None:
                name = line.partition("{")[0].partition(" ")[0]
                if name not in self._wanted:
                    continue
                sample = _sample(line, number)
                feeds, value = self._feeds(sample), sample.value
                if sample.timestamp is None and len(self._heads) < MOST_HEADS:
                    self._heads[head] = feeds
            else:
                value = _number(text, number)
            for feed in feeds:
                _add(found, feed, value)
        if not found and not seen:
            raise ValueError("no metrics page: it names no metric")
        return {k: v for k, (_, v) in found.items()}

    def _feeds(self, sample: Sample) -> tuple[_Feed, ...]:
        return tuple(
            _Feed(
                key=_key(want, sample),
                rank=want.rank,
                scale=1.0 if want.part in ("count", "bucket") else want.source.scale,
                together=want.recipe.together,
                largest=want.recipe.fold == "max",
            )
            for want in self._wanted[sample.name]
            if want.source.labels.items() <= sample.labels.items()
        )


def _spellings(recipe: SeriesRecipe, source: SeriesSource) -> Iterator[tuple[str, str]]:
    """The sample names of a source, and which part of the series each is."""
    if recipe.kind == "histogram":
        yield f"{source.name}_sum", "sum"
        yield f"{source.name}_count", "count"
        if recipe.buckets:
            yield f"{source.name}_bucket", "bucket"
        return
    yield source.name, ""
    if recipe.kind == "counter":
        yield f"{source.name}_total", ""


def _sample(line: str, number: int) -> Sample:
    try:
        for family in text_string_to_metric_families(line + "\n"):
            for sample in family.samples:
                return sample
    except (ValueError, IndexError) as error:
        raise ValueError(f"line {number} is no sample: {line[:120]!r}") from error
    raise ValueError(f"line {number} is no sample: {line[:120]!r}")


def _number(text: str, number: int) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"line {number} ends in no number: {text[:40]!r}") from None


def _key(want: _Wanted, sample: Sample) -> str:
    where = want.series
    if want.source.by:
        where = key(where, sample.labels.get(want.source.by, ""))
    if want.part == "bucket":
        bound = float(sample.labels.get("le", "nan")) * want.source.scale
        return f"{where}.le:{bound!r}"
    return f"{where}.{want.part}" if want.part else where


def _add(found: dict[str, tuple[int, float]], feed: _Feed, value: float) -> None:
    value *= feed.scale
    before = found.get(feed.key)
    if before is None or (not feed.together and feed.rank < before[0]):
        if before is None and len(found) >= MOST_KEPT_APART:
            return
        found[feed.key] = (feed.rank, value)
    elif feed.together or feed.rank == before[0]:
        joined = max(before[1], value) if feed.largest else before[1] + value
        found[feed.key] = (before[0], joined)
