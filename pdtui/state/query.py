"""Pure: the filter language of `/`.

Every word must match; `!word` must not; `column:word` looks in one column.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pdtui.present.cells import Column, Row


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
