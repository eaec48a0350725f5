"""Long lists in pages: `limit`, an opaque `cursor`, and the next page's address in `Link`."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar

from fastapi import Depends, Query, Request, Response

from backend.domain.errors import Invalid

T = TypeVar("T")
DEFAULT = 1000
MOST = 5000


@dataclass
class Page:
    """What part of a list is asked for, and where the answer tells of the next one."""

    limit: int
    after: str | None
    request: Request
    response: Response

    def of(self, names: Sequence[str], item: Callable[[str], T]) -> list[T]:
        """The items of the names, in their order, that this page holds.

        The order must be the sorted one: a page goes on after the last name, so names that come
        and go between two pages neither repeat nor hide others.
        """
        wanted = [n for n in names if self.after is None or n > self.after]
        shown = wanted[: self.limit]
        if len(wanted) > self.limit:
            self.goes_on(shown[-1])
        return [item(n) for n in shown]

    def goes_on(self, last: str) -> None:
        """Tell where the next page is."""
        url = self.request.url.include_query_params(limit=self.limit, cursor=encode(last))
        self.response.headers["Link"] = f'<{url.path}?{url.query}>; rel="next"'


def encode(last: str) -> str:
    """The cursor that goes on after `last`."""
    return base64.urlsafe_b64encode(json.dumps(last).encode()).decode().rstrip("=")


def decode(cursor: str) -> str:
    """What `encode` was given. Raises Invalid (`request.cursor`)."""
    try:
        found = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        if isinstance(found, str):
            return found
    except (ValueError, binascii.Error):
        pass
    raise Invalid.of(
        "request.cursor",
        "this cursor is none that was given out here.",
        path="cursor",
        values={"cursor": cursor[:80]},
        remedy='Follow the address in the Link header (rel="next"), or start without a cursor.',
    )


def page(
    request: Request,
    response: Response,
    limit: Annotated[int, Query(ge=1, le=MOST, description="Items of a page.")] = DEFAULT,
    cursor: Annotated[
        str | None,
        Query(max_length=400, description="From the last answer's `Link`."),
    ] = None,
) -> Page:
    """The page that a request asks for."""
    return Page(limit, decode(cursor) if cursor is not None else None, request, response)


Paged = Annotated[Page, Depends(page)]
