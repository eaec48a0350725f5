"""The words of a drawing: spans with a tone's name, cells, columns and rows. Never a colour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from rich.cells import cell_len, set_cell_size

from pdtui.present.safe import clean

Tone = Literal["text", "dim", "strong", "accent", "ok", "warn", "bad", "busy", "off"]
TONES: tuple[Tone, ...] = get_args(Tone)
Align = Literal["left", "right"]


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of literal text in one tone; made harmless on construction. What is wrapped of a line
    goes on beneath the beginning of its span with `hang`."""

    text: str
    tone: Tone = "text"
    hang: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", clean(self.text))


Line = tuple[Span, ...]
"""What stands on one line of a text view."""


def line(*parts: Span | str) -> Line:
    """A line of spans; plain strings take the ordinary tone."""
    return tuple(p if isinstance(p, Span) else Span(p) for p in parts)


def plain(spans: Sequence[Span]) -> str:
    """The text of a line without its tones."""
    return "".join(s.text for s in spans)


def width(spans: Sequence[Span]) -> int:
    """Terminal cells a line takes."""
    return sum(cell_len(s.text) for s in spans)


@dataclass(frozen=True, slots=True)
class Cell:
    """One table cell. `rank` is what it is sorted by where its text is not (an age, a state)."""

    spans: Line = ()
    rank: float | None = field(default=None, compare=False)

    @classmethod
    def of(cls, text: str | int, tone: Tone = "text", rank: float | None = None) -> Cell:
        """A cell of one span."""
        return cls((Span(str(text), tone),), rank)

    @property
    def text(self) -> str:
        """The cell's text."""
        return plain(self.spans)


@dataclass(frozen=True, slots=True)
class Column:
    """A table column; widths in terminal cells.

    The higher `priority`, the sooner the column is left out when the terminal is narrow; 0 stays.
    A column is as wide as its widest cell, between `least` and `most`. One that may `shrink` goes
    down to its least before any column is left out; `grow` takes what is left in the end.
    """

    key: str
    title: str
    priority: int = 0
    least: int = 4
    most: int = 40
    align: Align = "left"
    shrink: bool = False
    grow: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One table row. A `heading` row opens a section and is drawn across all columns."""

    key: str
    cells: tuple[Cell, ...]
    heading: bool = False


def padded(text: str, size: int) -> str:
    """`text` in at least `size` cells: a Chinese letter takes two."""
    return text + " " * (size - cell_len(text))


def fit(spans: Sequence[Span], size: int, align: Align = "left", more: str = "…") -> Line:
    """`spans` in exactly `size` cells: padded, or cut with `more` at the end."""
    total = width(spans)
    if total <= size:
        pad = Span(" " * (size - total))
        if total == size:
            return tuple(spans)
        return (pad, *spans) if align == "right" else (*spans, pad)
    out: list[Span] = []
    room = size - cell_len(more)
    if room < 0:
        return (Span(" " * size),) if size > 0 else ()
    tone: Tone = "text"
    for span in spans:
        length = cell_len(span.text)
        tone = span.tone
        if length > room:
            cut = set_cell_size(span.text, room)
            if cell_len(span.text[: len(cut)]) > room:  # half of a wide letter became a blank
                return (*out, Span(cut[:-1], tone), Span(f"{more} ", tone))
            out.append(Span(cut, tone))
            break
        out.append(span)
        room -= length
    return (*out, Span(more, tone))
