"""Counters, gauges and histograms in Prometheus's exposition format."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Mapping

_INF = float("inf")


def _number(value: float) -> str:
    return "+Inf" if value == _INF else repr(float(value))


def labels_of(pairs: Mapping[str, str]) -> str:
    def escaped(value: str) -> str:
        return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

    return "{" + ",".join(f'{k}="{escaped(pairs[k])}"' for k in sorted(pairs)) + "}"


class Counts:
    """A counter or gauge, with one label beyond the common ones or none."""

    def __init__(
        self, name: str, kind: str, help_text: str, label: str = "", values: tuple[str, ...] = ()
    ) -> None:
        self.name, self.kind, self.help, self.label = name, kind, help_text, label
        self.created = time.time()
        self._values: dict[str, float] = dict.fromkeys(values or ("",), 0.0)

    def add(self, amount: float = 1.0, value: str = "") -> None:
        """Count."""
        self._values[value] += amount

    def set(self, amount: float, value: str = "") -> None:
        """Set a gauge."""
        self._values[value] = amount

    def get(self, value: str = "") -> float:
        """The present value."""
        return self._values[value]

    def render(self, common: Mapping[str, str]) -> list[str]:
        """The family in the exposition format."""
        out = [f"# HELP {self.name} {self.help}", f"# TYPE {self.name} {self.kind}"]
        made = []
        for value, amount in self._values.items():
            labels = labels_of({**common, self.label: value} if self.label else common)
            out.append(f"{self.name}{labels} {_number(amount)}")
            made.append(labels)
        if self.kind == "counter":
            out += _created(self.name.removesuffix("_total"), self.help, self.created, made)
        return out


class Histogram:
    """A histogram with fixed bounds."""

    def __init__(self, name: str, help_text: str, bounds: tuple[float, ...]) -> None:
        self.name, self.help, self._bounds = name, help_text, (*bounds, _INF)
        self.created = time.time()
        self._counts = [0] * len(self._bounds)
        self.sum, self.count = 0.0, 0

    def observe(self, value: float) -> None:
        """Take one value in."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self.sum += value
        self.count += 1

    def render(self, common: Mapping[str, str]) -> list[str]:
        """The histogram in the exposition format."""
        out = [f"# HELP {self.name} {self.help}", f"# TYPE {self.name} histogram"]
        total = 0
        for bound, count in zip(self._bounds, self._counts, strict=True):
            total += count
            labels = labels_of({**common, "le": _number(bound)})
            out.append(f"{self.name}_bucket{labels} {_number(total)}")
        labels = labels_of(common)
        out.append(f"{self.name}_count{labels} {_number(self.count)}")
        out.append(f"{self.name}_sum{labels} {_number(self.sum)}")
        return out + _created(self.name, self.help, self.created, [labels])


def _created(name: str, help_text: str, at: float, labels: list[str]) -> list[str]:
    return [
        f"# HELP {name}_created {help_text}",
        f"# TYPE {name}_created gauge",
        *(f"{name}_created{one} {at!r}" for one in labels),
    ]
