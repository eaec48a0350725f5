"""The last hour of one instance's metrics: one number array a series, of a fixed length."""

from __future__ import annotations

import itertools
import math
from array import array
from collections.abc import Iterator, Mapping, Sequence

CAPACITY = 720
"""Samples that are kept: an hour at one every 5 s."""
MOST_COLUMNS = 700
_NAN = math.nan


class Ring:
    """Samples in a circle. 8 bytes a value: 90 series of 100 instances for an hour are 52 MB."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._times = array("d", bytes(8 * capacity))
        self._epochs = array("d", bytes(8 * capacity))
        self._columns: dict[str, array[float]] = {}
        self._added = 0

    def __len__(self) -> int:
        return min(self._added, self._capacity)

    @property
    def added(self) -> int:
        """How many samples were ever added: another number after each page."""
        return self._added

    @property
    def size(self) -> int:
        """Bytes of its arrays."""
        return 8 * self._capacity * (2 + len(self._columns))

    def add(self, at: float, epoch: float, values: Mapping[str, float]) -> None:
        """Keep one page's values; `epoch` is another number for each start of the process."""
        slot = self._added % self._capacity
        if slot == 0 and self._added:
            self._forget_unused(values)
        self._times[slot], self._epochs[slot] = at, epoch
        for key, column in self._columns.items():
            column[slot] = values.get(key, _NAN)
        for key in values.keys() - self._columns.keys():
            if len(self._columns) < MOST_COLUMNS:
                column = self._columns[key] = array("d", [_NAN]) * self._capacity
                column[slot] = values[key]
        self._added += 1

    def _forget_unused(self, values: Mapping[str, float]) -> None:
        """Drop the series that no page of the last round had."""
        unused = [
            k
            for k, column in self._columns.items()
            if k not in values and all(math.isnan(v) for v in column)
        ]
        for key in unused:
            del self._columns[key]

    def since(self, at: float) -> Stretch:
        """The samples from the last one before `at` on, so that what grew since then is seen."""
        count = len(self)
        first = self._added - count
        n = self._added
        while n > first and self._times[(n - 1) % self._capacity] >= at:
            n -= 1
        return Stretch(self, range(max(first, n - 1), self._added))

    def whole(self) -> Stretch:
        """Every kept sample."""
        return Stretch(self, range(self._added - len(self), self._added))


class Stretch:
    """Some consecutive samples of a ring, as `backend.domain.rates` takes them."""

    def __init__(self, ring: Ring, numbers: range) -> None:
        self._ring, self._numbers = ring, numbers
        self._slots = [n % ring._capacity for n in numbers]
        self.times: Sequence[float] = [ring._times[s] for s in self._slots]
        self.epochs: Sequence[float] = [ring._epochs[s] for s in self._slots]

    def __len__(self) -> int:
        return len(self._slots)

    def column(self, key: str) -> Sequence[float] | None:
        """The values of a series, NaN where a page lacked it; None when none had it."""
        column = self._ring._columns.get(key)
        return None if column is None else [column[s] for s in self._slots]

    def names(self) -> Iterator[str]:
        """Every series."""
        return iter(tuple(self._ring._columns))

    def until(self, at: float) -> Stretch:
        """Without the samples after `at`."""
        kept = sum(1 for t in self.times if t <= at)
        return Stretch(self._ring, self._numbers[:kept])

    def parts(self, count: int) -> Iterator[Stretch]:
        """At most `count` stretches of about the same length, each beginning with the sample that
        the one before ends with."""
        steps = len(self._numbers) - 1
        if steps < 1:
            return
        count = min(count, steps)
        edges = [round(n * steps / count) for n in range(count + 1)]
        for low, high in itertools.pairwise(edges):
            yield Stretch(self._ring, self._numbers[low : high + 1])
