"""Pure: the filter language of `/`.

Every word must match; `!word` must not; `column:word` looks in one column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pdtui.present.cells import Cell, Column, Row


@dataclass(frozen=True)
class Term:
    """One word of a filter."""

    text: str
    field: str = ""
    inverse: bool = False


def parse(query: str) -> tuple[Term, ...]:
    """The terms of a filter; letter case does not matter."""
    terms: list[Term] = []
    for word in query.casefold().split():
        inverse = word.startswith("!")
        body = word.removeprefix("!")
        field, colon, value = body.partition(":")
        if colon and value and field.isidentifier():
            terms.append(Term(value, field, inverse))
        elif body:
            terms.append(Term(body, "", inverse))
    return tuple(terms)


def select(rows: Iterable[Row], columns: Sequence[Column], query: str) -> list[Row]:
    """The rows that match; a heading stays while a row below it does."""
    terms = parse(query)
    rows = list(rows)
    if not terms:
        return rows
    places = {c.key: i for i, c in enumerate(columns)}
    out: list[Row] = []
    heading: Row | None = None
    for row in rows:
        if row.heading:
            heading = row
        elif all(_matches(row, places, t) for t in terms):
            if heading:
                out.append(heading)
                heading = None
            out.append(row)
    return out


@dataclass(frozen=True)
class Sorting:
    """The column rows are sorted by; an empty one leaves them as they come."""

    column: str = ""
    down: bool = False

    def by(self, column: str) -> Sorting:
        """Another column, or the same one the other way round."""
        return Sorting(column, bool(column) and column == self.column and not self.down)


def ordered(rows: Sequence[Row], columns: Sequence[Column], sorting: Sorting) -> list[Row]:
    """The rows sorted; rows below a heading stay below it. Equal ones stay as they come."""
    places = {c.key: i for i, c in enumerate(columns)}
    at = places.get(sorting.column)
    if at is None:
        return list(rows)
    out: list[Row] = []
    section: list[Row] = []
    for row in [*rows, None]:
        if row is not None and not row.heading:
            section.append(row)
            continue
        out += sorted(section, key=lambda r: _rank(r.cells[at]), reverse=sorting.down)
        section = []
        if row is not None:
            out.append(row)
    return out


def _rank(cell: Cell) -> tuple[tuple[int, float, str], ...]:
    """What a cell is sorted by: its own rank, else its text with its numbers as numbers."""
    if cell.rank is not None:
        return ((0, cell.rank, ""),)
    parts = _NUMBERS.split(cell.text.casefold())
    return tuple((0, float(p), "") if i % 2 else (1, 0.0, p) for i, p in enumerate(parts))


_NUMBERS = re.compile(r"(\d+)")


def _matches(row: Row, places: dict[str, int], term: Term) -> bool:
    if term.field and (at := _place(places, term.field)) is not None:
        found = term.text in row.cells[at].text.casefold()
    else:
        text = f"{term.field}:{term.text}" if term.field else term.text
        found = any(text in c.text.casefold() for c in row.cells)
    return found != term.inverse


def _place(places: dict[str, int], field: str) -> int | None:
    """The column of that key, or the first whose key begins with it."""
    if field in places:
        return places[field]
    return next((i for k, i in places.items() if k.startswith(field)), None)
