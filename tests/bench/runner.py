"""Times something of ours beside a rival, by turns, so that a busy machine slows both alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from statistics import median

Measure = Callable[[], float]
"""Does the thing once and returns how long it took, in seconds; raises BenchError if it failed."""


class BenchError(RuntimeError):
    """What was to be timed did not work; a time of it would mean nothing."""


@dataclass(frozen=True)
class Bench:
    """One comparison. `aim` is what a person is promised, in words; nothing asserts it. `after`
    ends what the measures have started."""

    name: str
    ours: Measure
    rival_name: str
    rival: Measure
    aim: str = ""
    rounds: int = 7
    after: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Result:
    """Medians and fastest times in seconds, and how many times the rival's median ours takes."""

    name: str
    ours_median: float
    ours_best: float
    rival_name: str
    rival_median: float
    rival_best: float
    rounds: int
    aim: str = ""

    @property
    def ratio(self) -> float:
        """Our median over the rival's."""
        return self.ours_median / self.rival_median

    def as_dict(self) -> dict[str, object]:
        """For the JSON report."""
        return {**asdict(self), "ratio": round(self.ratio, 3)}


def run(bench: Bench, rounds: int | None = None) -> Result:
    """Runs one warm-up of each and then `rounds` rounds, ours and the rival by turns."""
    try:
        return _run(bench, rounds or bench.rounds)
    finally:
        bench.after()


def _run(bench: Bench, count: int) -> Result:
    bench.ours()
    bench.rival()
    ours, rival = [], []
    for index in range(count):
        turns = [(ours, bench.ours), (rival, bench.rival)]
        for times, measure in turns if index % 2 == 0 else reversed(turns):
            times.append(measure())
    return Result(
        name=bench.name,
        ours_median=median(ours), ours_best=min(ours),
        rival_name=bench.rival_name, rival_median=median(rival), rival_best=min(rival),
        rounds=count, aim=bench.aim,
    )  # fmt: skip


def table(results: Iterable[Result]) -> str:
    """The results as aligned text, times in milliseconds."""
    head = ("bench", "median ms", "best ms", "rival", "median ms", "best ms", "ratio", "aim")
    rows = [head] + [
        (
            r.name, f"{r.ours_median * 1e3:.1f}", f"{r.ours_best * 1e3:.1f}",
            r.rival_name, f"{r.rival_median * 1e3:.1f}", f"{r.rival_best * 1e3:.1f}",
            f"{r.ratio:.2f}", r.aim,
        )
        for r in results
    ]  # fmt: skip
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    texts = {0, 3, 7}
    lines = (
        "  ".join(
            cell.ljust(width) if i in texts else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)
