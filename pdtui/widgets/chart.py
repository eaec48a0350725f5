"""Curves over time, drawn by plotext. Its figure is one for the whole program: UI thread only."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

from rich.text import Text

from pdtui.present.cells import Line, Span, Tone

TONES: tuple[Tone, ...] = ("accent", "ok", "warn", "busy", "bad")
"""One for each curve, in their order; a sixth begins anew."""
LEAST_WIDTH, LEAST_HEIGHT = 24, 6
STEPS_S = (5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400)
"""How far apart the times below a chart may be."""
MOST_TICKS = 6
Curve = Sequence[float | None]


def chart(at: Sequence[float], curves: Sequence[Curve], width: int, height: int) -> list[Line]:
    """`curves` over `at` (seconds before now, negative) in `width` by `height` cells; nothing when
    that is too little room, or no curve has two points."""
    drawn = [[(x, y) for x, y in zip(at, curve, strict=True) if y is not None] for curve in curves]
    if width < LEAST_WIDTH or height < LEAST_HEIGHT or not any(len(d) > 1 for d in drawn):
        return []
    colours = _colours()
    tone_of: dict[str, Tone] = {}
    for n, _ in enumerate(drawn):
        tone_of.setdefault(colours[n % len(colours)], TONES[n % len(TONES)])
    text = _draw([d for d in drawn if len(d) > 1], width, height)
    shown = [n for n, d in enumerate(drawn) if len(d) > 1]
    tones = {colours[k % len(colours)]: TONES[n % len(TONES)] for k, n in enumerate(shown)}
    return [tuple(_spans(row, tones or tone_of)) for row in text.split("\n")]


def _draw(curves: Sequence[Sequence[tuple[float, float]]], width: int, height: int) -> str:
    import plotext  # not needed for the first frame

    figure = plotext.figure
    figure.clear()
    figure.theme("simple")
    plotext.terminal.limit(False, False)
    figure.plot_size(width, height)
    for points in curves:
        signal = figure.signal([x for x, _ in points], [y for _, y in points])
        signal.lines()
        figure.draw(signal)
    first = min(x for points in curves for x, _ in points)
    figure.ruler("x", "lower").lim(first, 0).ticks(*ticks(first))
    drawn: str = figure.build().string()
    figure.clear()
    return drawn.rstrip("\n")


def ticks(first: float) -> tuple[list[float], list[str]]:
    """Round times between `first` (seconds before now, negative) and now, and what they are called:
    `-10m`; now is 0."""
    step = next((s for s in STEPS_S if -first / s <= MOST_TICKS), STEPS_S[-1])
    times = [-step * n for n in range(int(-first // step), -1, -1)]
    return [float(t) for t in times], [_called(-t) for t in times]


def _called(seconds: int) -> str:
    for size, unit in ((3600, "h"), (60, "m")):
        if seconds and seconds % size == 0:
            return f"-{seconds // size}{unit}"
    return f"-{seconds}s" if seconds else "0"


@functools.cache
def _colours() -> tuple[str, ...]:
    """The colours that plotext gives to curves, in their order, found out by drawing some."""
    flat = [[(-1.0, float(n)), (0.0, float(n))] for n in range(len(TONES))]
    rows = _draw(flat, 40, 24).split("\n")
    found: list[str] = []
    for row in reversed(rows):  # the lowest was drawn first
        for name in (name for _, name in _pieces(row) if name):
            if name not in found:
                found.append(name)
    return tuple(found)


def _pieces(row: str) -> Iterator[tuple[str, str]]:
    """Text and colour of each piece of a row of terminal output."""
    text = Text.from_ansi(row)
    at = 0
    for span in sorted(text.spans, key=lambda s: s.start):
        style = span.style
        colour = getattr(style, "color", None)
        if span.start > at:
            yield text.plain[at : span.start], ""
        yield text.plain[span.start : span.end], colour.name if colour is not None else ""
        at = max(at, span.end)
    if at < len(text.plain):
        yield text.plain[at:], ""


def _spans(row: str, tones: dict[str, Tone]) -> Iterator[Span]:
    for text, colour in _pieces(row):
        if text:
            yield Span(text, tones.get(colour, "dim"))
